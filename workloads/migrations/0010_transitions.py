"""The history of workloads' health. It begins now for those that are there.

The default of the new column is the moment of the migration for every row that is there, which
PostgreSQL notes without writing them, and that of its birth for each that the release before writes.
"""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [
        ("workloads", "0009_workloads_of_all_clusters"),
    ]

    operations = [
        migrations.AddField(
            model_name="workload",
            name="health_since",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.CreateModel(
            name="ReportGap",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "cluster_id",
                        "ended_at",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("cluster_id", models.UUIDField()),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["ended_at"], name="gap_by_time")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("ended_at__gt", models.F("began_at"))),
                        name="gap_ends_after_it_began",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Transition",
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
                ("number", models.IntegerField()),
                ("cluster_id", models.UUIDField()),
                ("since", models.DateTimeField(null=True)),
                ("at", models.DateTimeField()),
                ("from_health_status", models.CharField(max_length=34, null=True)),
                ("to_health_status", models.CharField(max_length=34, null=True)),
                ("status_reason", models.CharField(blank=True, max_length=1024)),
            ],
            options={
                "indexes": [models.Index(fields=["at"], name="transition_by_time")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("from_health_status", None),
                                (
                                    "from_health_status__in",
                                    [
                                        "WORKLOAD_HEALTH_STATUS_UNSPECIFIED",
                                        "HEALTHY",
                                        "DEGRADED",
                                        "ERROR",
                                    ],
                                ),
                                _connector="OR",
                            ),
                            models.Q(
                                ("to_health_status", None),
                                (
                                    "to_health_status__in",
                                    [
                                        "WORKLOAD_HEALTH_STATUS_UNSPECIFIED",
                                        "HEALTHY",
                                        "DEGRADED",
                                        "ERROR",
                                    ],
                                ),
                                _connector="OR",
                            ),
                        ),
                        name="transition_health_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("from_health_status", None),
                                ("since", None),
                                ("to_health_status__isnull", False),
                            ),
                            models.Q(
                                ("from_health_status__isnull", False), ("since__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="transition_from_since",
                    ),
                ],
            },
        ),
    ]
