"""Half of each page is left free, so that a measured row is updated in its place (HOT).

Pages that are there already keep their rows; they change over as those are written.
"""

from django.db import migrations, models


def _set_fillfactor(schema_editor, setting):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"ALTER TABLE workloads_workload {setting}")


def forwards(apps, schema_editor):
    _set_fillfactor(schema_editor, "SET (fillfactor = 50)")


def backwards(apps, schema_editor):
    _set_fillfactor(schema_editor, "RESET (fillfactor)")


class Migration(migrations.Migration):
    safe_while_running = "the fill factor is a note of the table's; no row is written"

    dependencies = [("workloads", "0004_announced_report")]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="usage_stored_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.RunPython(forwards, backwards),
    ]
