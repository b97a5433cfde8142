"""Compare texts of changes in byte order, as the ranges of prefixes require."""

from django.db import migrations

from infra_service.lib.database.migration_fields import compare_bytes

_TEXTS = {"address": 2000, "type": 2000, "provider": 2000}


def set_order(_apps, schema_editor):
    compare_bytes(schema_editor, "change_history_change", _TEXTS)


class Migration(migrations.Migration):
    safe_while_running = "An upgrade from the last release creates the table immediately before."

    dependencies = [("change_history", "0001_changes")]

    operations = [migrations.RunPython(set_order, migrations.RunPython.noop)]
