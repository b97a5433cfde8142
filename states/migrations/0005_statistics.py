"""Finer statistics for the columns that are filtered by ranges.

With a hundred steps each is 10,000 of a million rows, and the planner takes what lies in the long
tail of the last one for thousands of rows where there are a few.
"""

from django.db import migrations

_COLUMNS = ("serial", "size_bytes", "updated_at")


def _set_statistics(schema_editor, target):
    if schema_editor.connection.vendor == "postgresql":
        changes = ", ".join(f"ALTER COLUMN {name} SET STATISTICS {target}" for name in _COLUMNS)
        schema_editor.execute(f"ALTER TABLE states_state {changes}")


def forwards(apps, schema_editor):
    _set_statistics(schema_editor, 1000)


def backwards(apps, schema_editor):
    _set_statistics(schema_editor, -1)


class Migration(migrations.Migration):
    dependencies = [("states", "0004_catalogue_indexes")]

    operations = [migrations.RunPython(forwards, backwards)]
