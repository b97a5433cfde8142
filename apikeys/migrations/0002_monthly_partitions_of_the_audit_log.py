"""Partition the audit log by month on PostgreSQL; the present table becomes the first partition."""

from typing import ClassVar

from django.db import migrations

from apikeys.migrations._audit_log import permit_partitions
from infra_service.lib.database.postgresql.partitioning import convert


def partition(_apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        permit_partitions(schema_editor)
        convert("apikeys_auditevent")


class Migration(migrations.Migration):
    atomic = False
    safe_while_running = (
        "the table is locked for milliseconds, to rename it and attach it to a table with its "
        "columns, indexes, triggers and privileges; the previous release reads and writes that one"
    )
    dependencies: ClassVar = [("apikeys", "0001_squashed_0019_order_and_limit_of_networks")]
    # Both releases run on either form, so the reverse keeps the partitions.
    operations: ClassVar = [migrations.RunPython(partition, migrations.RunPython.noop)]
