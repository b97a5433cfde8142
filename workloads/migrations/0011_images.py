"""Which images run where. The rows follow from the workloads, with the next report of each cluster.

Safe while the service runs: the tables are new, and the column has no default.
"""

from django.db import migrations, models

_TEXTS = {
    "workloads_clusterimage": {"repository": 520, "tag": 128, "digest": 135},
    "workloads_workloadimage": {
        "repository": 520, "digest": 135, "namespace": 63, "name": 253, "kind": 11,
    },
}  # fmt: skip


def in_order_of_bytes(apps, schema_editor):
    """As the columns that they are copied from: then an index finds what begins with a text."""
    if schema_editor.connection.vendor == "postgresql":
        for table, columns in _TEXTS.items():
            changes = ", ".join(
                f'ALTER COLUMN "{name}" TYPE varchar({most}) COLLATE "C"'
                for name, most in columns.items()
            )
            schema_editor.execute(f"ALTER TABLE {table} {changes}")


class Migration(migrations.Migration):
    safe_while_running = (
        "The columns that it changes are of tables that it has just made, which are empty."
    )

    dependencies = [
        ("workloads", "0010_transitions"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="images_report_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="ClusterImage",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "cluster_id",
                        "repository",
                        "tag",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("cluster_id", models.UUIDField()),
                ("repository", models.CharField(max_length=520)),
                ("tag", models.CharField(blank=True, max_length=128)),
                ("digest", models.CharField(blank=True, max_length=135)),
                ("workloads", models.IntegerField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["repository", "tag", "digest", "cluster_id", "workloads"],
                        name="clusterimage_by_name",
                    ),
                    models.Index(
                        fields=["digest", "repository", "tag", "cluster_id"],
                        name="clusterimage_by_digest",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("workloads__gt", 0)), name="clusterimage_is_of_some"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WorkloadImage",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "workload_id",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("workload_id", models.UUIDField()),
                ("number", models.SmallIntegerField()),
                ("repository", models.CharField(max_length=520)),
                ("digest", models.CharField(blank=True, max_length=135)),
                ("cluster_id", models.UUIDField()),
                ("health_status", models.CharField(max_length=34)),
                ("namespace", models.CharField(max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("kind", models.CharField(max_length=11)),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=[
                            "repository",
                            "health_status",
                            "cluster_id",
                            "namespace",
                            "name",
                            "kind",
                            "workload_id",
                        ],
                        name="workloadimage_by_repository",
                    ),
                    models.Index(
                        fields=[
                            "digest",
                            "health_status",
                            "cluster_id",
                            "namespace",
                            "name",
                            "kind",
                            "workload_id",
                        ],
                        name="workloadimage_by_digest",
                    ),
                    models.Index(
                        fields=["cluster_id", "repository"], name="workloadimage_of_cluster"
                    ),
                ],
            },
        ),
        migrations.RunPython(in_order_of_bytes, migrations.RunPython.noop),
    ]
