"""Tables for clusters, workloads, their images and the history of their health."""

from django.db import migrations, models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now
from django.db.models.lookups import Exact
from django.utils import timezone

import workloads.fields
from infra_service.lib.database.migration_fields import (
    compare_bytes,
    composite_key,
    optional_text,
    unindexed_key,
    uuid7_id,
)

_HEALTH = ["WORKLOAD_HEALTH_STATUS_UNSPECIFIED", "HEALTHY", "DEGRADED", "ERROR"]
_REASONS = [
    "UNAUTHENTICATED", "FORBIDDEN", "UNREACHABLE", "UNAVAILABLE", "INVALID_ANSWER", "WATCH_LOST",
    "REPORT_REFUSED", "OTHER",
]  # fmt: skip

_REPLACED = """
0001_initial 0002_byte_order 0003_collection 0004_announced_report 0005_usage_pace
0006_no_cluster_revision 0007_ephemeral_storage 0008_health_of_all_clusters
0009_workloads_of_all_clusters 0010_transitions 0011_images 0013_transitions_of_a_cluster
0014_moment_of_receipt
"""

_TEXTS = {
    "workloads_workload": {"namespace": 63, "name": 253, "kind": 11},
    "workloads_clusterimage": {"repository": 520, "tag": 128, "digest": 135},
    "workloads_workloadimage": {
        "repository": 520, "digest": 135, "namespace": 63, "name": 253, "kind": 11,
    },
}  # fmt: skip


def set_storage(_apps, schema_editor):
    for table, columns in _TEXTS.items():
        compare_bytes(schema_editor, table, columns)
    if schema_editor.connection.vendor == "postgresql":
        # Half of each page stays free, so that a measured row is updated in its place (HOT).
        schema_editor.execute("ALTER TABLE workloads_workload SET (fillfactor = 50)")


class Migration(migrations.Migration):
    initial = True

    replaces = [("workloads", name) for name in _REPLACED.split()]

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Cluster",
            fields=[
                uuid7_id(),
                ("name", models.CharField(max_length=200)),
                ("uid", models.CharField(blank=True, max_length=64, null=True)),
                ("report_interval_seconds", models.IntegerField(default=60)),
                ("last_report_at", models.DateTimeField(null=True)),
                ("last_received_at", models.DateTimeField(null=True)),
                ("last_snapshot_at", models.DateTimeField(null=True)),
                ("workloads_unspecified", models.IntegerField(default=0)),
                ("workloads_healthy", models.IntegerField(default=0)),
                ("workloads_degraded", models.IntegerField(default=0)),
                ("workloads_error", models.IntegerField(default=0)),
                # Unused. Upgraded databases have it, so the release that drops it finds it.
                ("revision", models.PositiveIntegerField(db_default=0, default=0)),
                ("created_at", models.DateTimeField(default=timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(default=timezone.now)),
                ("collection_error_at", models.DateTimeField(null=True)),
                optional_text("collection_error_message", 500),
                (
                    "collection_error_reason",
                    models.CharField(
                        blank=True,
                        choices=[(reason, reason) for reason in _REASONS],
                        db_default="",
                        default="",
                        max_length=32,
                    ),
                ),
                optional_text("collection_error_resource", 100),
                ("collection_failing_since", models.DateTimeField(null=True)),
                optional_text("collector_version", 64),
                ("announced_report_at", models.DateTimeField(null=True)),
                ("usage_stored_at", models.DateTimeField(null=True)),
                ("images_report_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    UniqueConstraint(name="cluster_name_unique", fields=("name",)),
                    CheckConstraint(name="cluster_name_present", condition=~Q(name="")),
                    CheckConstraint(name="cluster_uid_present", condition=~Q(uid="")),
                    CheckConstraint(
                        name="cluster_report_interval_in_range",
                        condition=Q(report_interval_seconds__range=(1, 86400)),
                    ),
                    CheckConstraint(
                        name="cluster_report_whole_or_absent",
                        condition=Q(
                            last_received_at=None, last_report_at=None, last_snapshot_at=None
                        )
                        | Q(last_received_at__isnull=False, last_report_at__isnull=False),
                    ),
                    CheckConstraint(
                        name="cluster_snapshot_not_after_report",
                        condition=Q(last_snapshot_at=None)
                        | Q(last_snapshot_at__lte=F("last_report_at")),
                    ),
                    CheckConstraint(
                        name="cluster_failure_whole_or_absent",
                        condition=Q(
                            collection_error_at=None,
                            collection_error_reason="",
                            collection_failing_since=None,
                        )
                        | Q(
                            collection_error_reason__in=_REASONS,
                            collection_failing_since__lte=F("collection_error_at"),
                        ),
                    ),
                    CheckConstraint(
                        name="cluster_counts_not_negative",
                        condition=Q(
                            workloads_degraded__gte=0,
                            workloads_error__gte=0,
                            workloads_healthy__gte=0,
                            workloads_unspecified__gte=0,
                        ),
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="ClusterImage",
            fields=[
                composite_key("cluster_id", "repository", "tag", "digest"),
                ("cluster_id", models.UUIDField()),
                ("repository", models.CharField(max_length=520)),
                ("tag", models.CharField(blank=True, max_length=128)),
                ("digest", models.CharField(blank=True, max_length=135)),
                ("workloads", models.IntegerField()),
            ],
            options={
                "indexes": [
                    Index(
                        name="clusterimage_by_name",
                        fields=["repository", "tag", "digest", "cluster_id", "workloads"],
                    ),
                    Index(
                        name="clusterimage_by_digest",
                        fields=["digest", "repository", "tag", "cluster_id"],
                    ),
                ],
                "constraints": [
                    CheckConstraint(name="clusterimage_is_of_some", condition=Q(workloads__gt=0))
                ],
            },
        ),
        migrations.CreateModel(
            name="ReportGap",
            fields=[
                composite_key("cluster_id", "ended_at"),
                ("cluster_id", models.UUIDField()),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
            ],
            options={
                "indexes": [Index(name="gap_by_time", fields=["ended_at"])],
                "constraints": [
                    CheckConstraint(
                        name="gap_ends_after_it_began", condition=Q(ended_at__gt=F("began_at"))
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Transition",
            fields=[
                composite_key("workload_id", "number"),
                ("workload_id", models.UUIDField()),
                ("number", models.IntegerField()),
                ("cluster_id", models.UUIDField()),
                ("since", models.DateTimeField(null=True)),
                ("at", models.DateTimeField()),
                ("from_health_status", models.CharField(max_length=34, null=True)),
                ("to_health_status", models.CharField(max_length=34, null=True)),
                ("status_reason", models.CharField(blank=True, max_length=1024)),
                ("received_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    Index(name="transition_by_time", fields=["at"]),
                    Index(name="transition_of_cluster", fields=["cluster_id", "at"]),
                ],
                "constraints": [
                    CheckConstraint(
                        name="transition_health_known",
                        condition=(Q(from_health_status=None) | Q(from_health_status__in=_HEALTH))
                        & (Q(to_health_status=None) | Q(to_health_status__in=_HEALTH)),
                    ),
                    CheckConstraint(
                        name="transition_from_since",
                        condition=Q(
                            from_health_status=None, since=None, to_health_status__isnull=False
                        )
                        | Q(from_health_status__isnull=False, since__isnull=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WorkloadImage",
            fields=[
                composite_key("workload_id", "number"),
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
                    Index(
                        name="workloadimage_by_repository",
                        fields=[
                            "repository",
                            "health_status",
                            "cluster_id",
                            "namespace",
                            "name",
                            "kind",
                            "workload_id",
                        ],
                    ),
                    Index(
                        name="workloadimage_by_digest",
                        fields=[
                            "digest",
                            "health_status",
                            "cluster_id",
                            "namespace",
                            "name",
                            "kind",
                            "workload_id",
                        ],
                    ),
                    Index(name="workloadimage_of_cluster", fields=["cluster_id", "repository"]),
                ]
            },
        ),
        migrations.CreateModel(
            name="Workload",
            fields=[
                uuid7_id(),
                ("namespace", models.CharField(max_length=63)),
                ("name", models.CharField(max_length=253)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("Deployment", "Deployment"),
                            ("StatefulSet", "StatefulSet"),
                            ("DaemonSet", "DaemonSet"),
                        ],
                        max_length=11,
                    ),
                ),
                ("uid", models.CharField(blank=True, max_length=64)),
                ("labels", models.JSONField(default=dict)),
                (
                    "health_status",
                    models.CharField(
                        choices=[
                            (
                                "WORKLOAD_HEALTH_STATUS_UNSPECIFIED",
                                "WORKLOAD_HEALTH_STATUS_UNSPECIFIED",
                            ),
                            ("HEALTHY", "HEALTHY"),
                            ("DEGRADED", "DEGRADED"),
                            ("ERROR", "ERROR"),
                        ],
                        max_length=34,
                    ),
                ),
                ("status_reason", models.CharField(blank=True, max_length=1024)),
                ("replicas_desired", models.IntegerField()),
                ("replicas_ready", models.IntegerField()),
                ("replicas_available", models.IntegerField()),
                ("cpu_requests_millicores", models.BigIntegerField()),
                ("cpu_limits_millicores", models.BigIntegerField()),
                ("cpu_used_millicores", models.BigIntegerField(null=True)),
                ("memory_requests_bytes", models.BigIntegerField()),
                ("memory_limits_bytes", models.BigIntegerField()),
                ("memory_used_bytes", models.BigIntegerField(null=True)),
                ("containers", workloads.fields.VerbatimJSONField(default=list)),
                ("observed_at", models.DateTimeField()),
                unindexed_key("cluster", "workloads.cluster", models.CASCADE),
                (
                    "ephemeral_storage_requests_bytes",
                    models.BigIntegerField(db_default=0, default=0),
                ),
                ("health_since", models.DateTimeField(db_default=Now())),
            ],
            options={
                "indexes": [
                    Index(
                        name="workload_by_health",
                        fields=["cluster", "health_status", "namespace", "name", "kind"],
                    ),
                    Index(
                        name="workload_of_health",
                        fields=["health_status", "cluster", "namespace", "name", "kind"],
                    ),
                    Index(
                        name="workload_of_namespace",
                        fields=["namespace", "health_status", "cluster", "name", "kind"],
                    ),
                    Index(
                        name="workload_of_name",
                        fields=["name", "health_status", "cluster", "namespace", "kind"],
                    ),
                    Index(name="workload_by_kind", fields=["cluster", "kind", "namespace", "name"]),
                    Index(name="workload_by_name", fields=["cluster", "name", "namespace", "kind"]),
                ],
                "constraints": [
                    UniqueConstraint(
                        name="workload_of_cluster", fields=("cluster", "namespace", "name", "kind")
                    ),
                    CheckConstraint(
                        name="workload_names_present", condition=~Q(namespace="") & ~Q(name="")
                    ),
                    CheckConstraint(
                        name="workload_kind_known",
                        condition=Q(kind__in=["Deployment", "StatefulSet", "DaemonSet"]),
                    ),
                    CheckConstraint(
                        name="workload_health_known", condition=Q(health_status__in=_HEALTH)
                    ),
                    CheckConstraint(
                        name="workload_figures_not_negative",
                        condition=Q(
                            cpu_limits_millicores__gte=0,
                            cpu_requests_millicores__gte=0,
                            ephemeral_storage_requests_bytes__gte=0,
                            memory_limits_bytes__gte=0,
                            memory_requests_bytes__gte=0,
                            replicas_available__gte=0,
                            replicas_desired__gte=0,
                            replicas_ready__gte=0,
                        )
                        & (Q(cpu_used_millicores=None) | Q(cpu_used_millicores__gte=0))
                        & (Q(memory_used_bytes=None) | Q(memory_used_bytes__gte=0)),
                    ),
                    CheckConstraint(
                        name="workload_labels_are_an_object",
                        condition=Exact(workloads.fields.JsonType("labels"), "object"),
                    ),
                    CheckConstraint(
                        name="workload_containers_are_an_array",
                        condition=Exact(workloads.fields.JsonType("containers"), "array"),
                    ),
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField("cluster", "revision")]
        ),
        migrations.RunPython(set_storage),
    ]
