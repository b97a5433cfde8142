"""Documents are encrypted, so PostgreSQL must not spend time on compressing them."""

from django.db import migrations


def _set_storage(schema_editor, storage):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            f"ALTER TABLE states_stateversion ALTER COLUMN document SET STORAGE {storage}"
        )


def forwards(apps, schema_editor):
    _set_storage(schema_editor, "EXTERNAL")


def backwards(apps, schema_editor):
    _set_storage(schema_editor, "EXTENDED")


class Migration(migrations.Migration):
    dependencies = [("states", "0001_initial")]

    operations = [migrations.RunPython(forwards, backwards)]
