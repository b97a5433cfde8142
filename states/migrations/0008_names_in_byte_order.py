"""Names in the order of their bytes, on any server and as SQLite has them.

Then the index on a name also finds what begins with a text, which an index in a locale's order
does not, and the order does not change under the index when the system's libraries do.
"""

from django.db import migrations

_TABLES = ("states_application", "states_component", "states_environment")


def _set_collation(schema_editor, collation):
    if schema_editor.connection.vendor == "postgresql":
        for table in _TABLES:
            schema_editor.execute(
                f'ALTER TABLE {table} ALTER COLUMN name TYPE varchar(200) COLLATE "{collation}"'
            )


def forwards(apps, schema_editor):
    _set_collation(schema_editor, "C")


def backwards(apps, schema_editor):
    _set_collation(schema_editor, "default")


class Migration(migrations.Migration):
    dependencies = [("states", "0007_admin_permissions")]

    operations = [migrations.RunPython(forwards, backwards)]
