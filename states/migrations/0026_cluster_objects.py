"""What a resource is in a Kubernetes cluster, and the index by which workloads are joined with it.

Safe while the service runs: the column is null, and its collation is changed before it has a value,
neither of which writes a row; on PostgreSQL the index is built and dropped concurrently. What was
indexed before has none until its state is indexed again, which ``index_states`` does by itself.
"""

from django.db import migrations, models

from infra_service.database.under_traffic import AddIndexUnderTraffic


def in_order_of_bytes(apps, schema_editor):
    """As the other texts of the table; and to compare bytes is what a join does fastest."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            'ALTER TABLE states_resourceentry ALTER COLUMN "cluster_object"'
            ' TYPE varchar(317) COLLATE "C"'
        )


class Migration(migrations.Migration):
    safe_while_running = (
        "The column that it changes it has just added, without a value: no row is written."
    )
    atomic = False

    dependencies = [("states", "0025_used_versions")]

    operations = [
        migrations.AddField(
            model_name="resourceentry",
            name="cluster_object",
            field=models.CharField(max_length=317, null=True),
        ),
        migrations.RunPython(in_order_of_bytes, migrations.RunPython.noop),
        AddIndexUnderTraffic(
            model_name="resourceentry",
            index=models.Index(
                name="resource_by_cluster_object",
                fields=["cluster_object"],
                condition=models.Q(cluster_object__isnull=False),
            ),
        ),
    ]
