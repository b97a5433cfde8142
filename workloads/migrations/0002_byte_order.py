"""Names in the order of their bytes, on any server and as SQLite has them.

Kubernetes' names are ASCII. An order that depends on the server's locale would be slower to
compare, and would change under an index when the system's libraries do.
"""

from django.db import migrations

_COLUMNS = {"namespace": "varchar(63)", "name": "varchar(253)", "kind": "varchar(11)"}


def _set_collation(schema_editor, collation):
    if schema_editor.connection.vendor == "postgresql":
        changes = ", ".join(
            f'ALTER COLUMN {column} TYPE {kind} COLLATE "{collation}"'
            for column, kind in _COLUMNS.items()
        )
        schema_editor.execute(f"ALTER TABLE workloads_workload {changes}")


def forwards(apps, schema_editor):
    _set_collation(schema_editor, "C")


def backwards(apps, schema_editor):
    _set_collation(schema_editor, "default")


class Migration(migrations.Migration):
    dependencies = [("workloads", "0001_initial")]

    operations = [migrations.RunPython(forwards, backwards)]
