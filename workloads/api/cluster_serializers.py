"""Serializers of clusters and of the collection of their workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from infra_service.lib.api.fields import (
    NameField,
    StrictSerializer,
    TextField,
    TimestampField,
    WholeField,
    WordField,
    described,
)
from workloads.cluster_health import HEALTH_STATUSES as CLUSTER_HEALTH_STATUSES
from workloads.cluster_health import cluster_health, collection_status, failing_since, lag
from workloads.collection import (
    COLLECTION_STATUSES,
    DEFAULT_REPORT_INTERVAL,
    FAILURE_REASONS,
    MAX_COLLECTOR_VERSION,
    MAX_MESSAGE,
    MAX_REPORT_INTERVAL,
    MAX_RESOURCE,
)
from workloads.reporting.errors import shown

if TYPE_CHECKING:
    from workloads.models import Cluster


@described("The workloads of a cluster, counted by their health.")
class WorkloadCountsSerializer(serializers.Serializer[Any]):
    total = serializers.IntegerField(help_text="The sum of the other counts.")
    healthy = serializers.IntegerField(help_text="Number of HEALTHY workloads.")
    degraded = serializers.IntegerField(help_text="Number of DEGRADED workloads.")
    error = serializers.IntegerField(help_text="Number of workloads in ERROR.")
    unspecified = serializers.IntegerField(
        help_text="Number of workloads with an unspecified health."
    )


@described(
    "The status of a cluster's reports, with the reason for a failure. Times come from the "
    "database's clock."
)
class CollectionSerializer(serializers.Serializer[Any]):
    status = serializers.SerializerMethodField(
        help_text="PENDING before the first report or failure; SILENT after three intervals "
        "without a report or a failure; FAILING if the last message was a failure; "
        "otherwise OK."
    )
    last_success_at = TimestampField(
        source="last_received_at",
        allow_null=True,
        help_text="Time when the service applied the last report.",
    )
    lag_seconds = serializers.SerializerMethodField(
        help_text="Age of the workload data, in seconds; null before the first report."
    )
    failing_since = serializers.SerializerMethodField(
        help_text="Start of the current series of failures; null after a report."
    )
    last_error_at = TimestampField(
        source="collection_error_at",
        allow_null=True,
        help_text="Time of the last failure, even if a report followed.",
    )
    last_error_reason = serializers.CharField(
        source="collection_error_reason",
        help_text="A CollectionFailureReason; empty before the first failure.",
    )
    last_error_resource = serializers.CharField(
        source="collection_error_resource",
        help_text="The resource that the collector could not read.",
    )
    last_error_message = serializers.CharField(
        source="collection_error_message",
        help_text=f"At most {MAX_MESSAGE} characters, without text that looks like a credential.",
    )
    collector_version = serializers.CharField(
        help_text="The collector's own version string, such as agent/1.2; may be empty."
    )

    @extend_schema_field(serializers.ChoiceField(COLLECTION_STATUSES))
    def get_status(self, cluster: Cluster) -> str:
        """Return the collection status at the time of the query."""
        return collection_status(cluster, cluster.read_at).value

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_lag_seconds(self, cluster: Cluster) -> int | None:
        """Return the age of the workload data in whole seconds."""
        behind = lag(cluster, cluster.read_at)
        return None if behind is None else int(behind.total_seconds())

    @extend_schema_field(TimestampField(allow_null=True))
    def get_failing_since(self, cluster: Cluster) -> str | None:
        """Return the start of the current series of failures."""
        since = failing_since(cluster)
        return None if since is None else shown(since)


@described("The reason why a collector cannot report.")
class FailureSerializer(StrictSerializer):
    reason = WordField(
        [reason for reason, _ in FAILURE_REASONS], help_text="The category of the failure."
    )
    resource = TextField(
        max_length=MAX_RESOURCE,
        allow_blank=True,
        default="",
        help_text="The resource that the collector could not read, such as pods.",
    )
    message = TextField(
        max_length=10 * MAX_MESSAGE,
        allow_blank=True,
        default="",
        help_text="A message for operators. The service removes text that looks like a credential "
        f"and stores at most {MAX_MESSAGE} characters.",
    )
    collector_version = TextField(
        max_length=MAX_COLLECTOR_VERSION,
        allow_blank=True,
        default="",
        help_text="The collector's own version string, such as agent/1.2.",
    )


@described("A cluster that reports its workloads. Report times are null before the first report.")
class ClusterSerializer(StrictSerializer):
    id = serializers.UUIDField(
        read_only=True,
        help_text="Assigned by the service. Ids increase in the order of registration.",
    )
    name = NameField(help_text="A display name, unique among clusters.")
    uid = serializers.CharField(
        read_only=True, allow_null=True, help_text="The uid of the cluster's kube-system namespace."
    )
    report_interval_seconds = WholeField(
        min_value=1,
        max_value=MAX_REPORT_INTERVAL,
        default=DEFAULT_REPORT_INTERVAL,
        help_text="Maximum time between two reports, in seconds. After three intervals without a "
        f"report, the cluster is UNREACHABLE. The default is {DEFAULT_REPORT_INTERVAL}.",
    )
    health_status = serializers.SerializerMethodField(
        help_text="ERROR or DEGRADED according to the worst workload, otherwise HEALTHY; PENDING "
        "before the first report; UNREACHABLE after three intervals without a report."
    )
    workload_counts = WorkloadCountsSerializer(
        read_only=True, help_text="Number of workloads by health_status."
    )
    last_report_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Time of the last report, by the reporter's clock.",
    )
    last_received_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Time when the service received the last report, by the database's clock.",
    )
    last_snapshot_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Time of the last snapshot, by the reporter's clock.",
    )
    collection = CollectionSerializer(
        source="*", read_only=True, help_text="The status of the cluster's reports."
    )
    created_at = TimestampField(read_only=True, help_text="Registration time.")
    updated_at = TimestampField(
        read_only=True, help_text="Time of the last change to the name or the report interval."
    )

    @extend_schema_field(serializers.ChoiceField(CLUSTER_HEALTH_STATUSES))
    def get_health_status(self, cluster: Cluster) -> str:
        """Return the cluster's health at the time of the query."""
        return cluster_health(cluster, cluster.read_at).value
