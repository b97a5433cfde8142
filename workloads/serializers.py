from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apikeys.fields import StrictSerializer, TextField, TimestampField, WholeField
from workloads.cluster_health import HEALTH_STATUSES as CLUSTER_HEALTH_STATUSES
from workloads.cluster_health import cluster_health
from workloads.models import (
    DEFAULT_REPORT_INTERVAL,
    HEALTH_STATUSES,
    KINDS,
    MAX_REPORT_INTERVAL,
)

if TYPE_CHECKING:
    from workloads.models import Cluster


class ContainerSerializer(serializers.Serializer[Any]):
    """One container of a workload's template, over all its live pods."""

    name = serializers.CharField()
    image = serializers.CharField()
    restart_count = serializers.IntegerField()
    state = serializers.CharField(help_text="The worst of running, waiting and terminated.")
    ready = serializers.BooleanField()


@extend_schema_field(serializers.DictField(child=serializers.CharField()))
class LabelsField(serializers.JSONField):
    """Labels, as they are stored."""


@extend_schema_field(ContainerSerializer(many=True))
class ContainersField(serializers.JSONField):
    """Containers, as they are stored."""


class WorkloadSerializer(serializers.Serializer[Any]):
    """A workload. Usage is null when nobody measures it."""

    id = serializers.UUIDField(read_only=True)
    cluster_id = serializers.UUIDField(read_only=True)
    namespace = serializers.CharField(read_only=True)
    name = serializers.CharField(read_only=True)
    kind = serializers.ChoiceField(KINDS, read_only=True)
    labels = LabelsField(read_only=True)
    health_status = serializers.ChoiceField(HEALTH_STATUSES, read_only=True)
    status_reason = serializers.CharField(read_only=True)
    replicas_desired = serializers.IntegerField(read_only=True)
    replicas_ready = serializers.IntegerField(read_only=True)
    replicas_available = serializers.IntegerField(read_only=True)
    cpu_requests_millicores = serializers.IntegerField(read_only=True)
    cpu_limits_millicores = serializers.IntegerField(read_only=True)
    cpu_used_millicores = serializers.IntegerField(read_only=True, allow_null=True)
    memory_requests_bytes = serializers.IntegerField(read_only=True)
    memory_limits_bytes = serializers.IntegerField(read_only=True)
    memory_used_bytes = serializers.IntegerField(read_only=True, allow_null=True)
    containers = ContainersField(read_only=True)
    last_updated_at = TimestampField(read_only=True)


class WorkloadCountsSerializer(serializers.Serializer[Any]):
    """How many workloads a cluster has, by their health."""

    total = serializers.IntegerField()
    healthy = serializers.IntegerField()
    degraded = serializers.IntegerField()
    error = serializers.IntegerField()
    unspecified = serializers.IntegerField()


class ClusterSerializer(StrictSerializer):
    """A cluster whose workloads are reported. Times are null before the first report."""

    id = serializers.UUIDField(read_only=True)
    name = TextField(max_length=200)
    uid = serializers.CharField(
        read_only=True, allow_null=True, help_text="The uid of its kube-system namespace."
    )
    report_interval_seconds = WholeField(
        min_value=1,
        max_value=MAX_REPORT_INTERVAL,
        default=DEFAULT_REPORT_INTERVAL,
        help_text="How far apart its reports are at most; after three it counts as unreachable.",
    )
    health_status = serializers.SerializerMethodField(
        help_text="As the worst of its workloads; PENDING before the first report, UNREACHABLE "
        "when three reports in a row have not come."
    )
    workload_counts = serializers.SerializerMethodField(help_text="Workloads by health_status.")
    last_report_at = TimestampField(
        read_only=True, allow_null=True, help_text="By the reporter's clock."
    )
    last_received_at = TimestampField(
        read_only=True, allow_null=True, help_text="When that came, by the service's clock."
    )
    last_snapshot_at = TimestampField(read_only=True, allow_null=True)
    created_at = TimestampField(read_only=True)
    updated_at = TimestampField(read_only=True)

    @extend_schema_field(serializers.ChoiceField(CLUSTER_HEALTH_STATUSES))
    def get_health_status(self, cluster: Cluster) -> str:
        """Judge the cluster as it is now."""
        return cluster_health(cluster, timezone.now()).value

    @extend_schema_field(WorkloadCountsSerializer())
    def get_workload_counts(self, cluster: Cluster) -> dict[str, int]:
        """Return the counts that every report keeps."""
        return cluster.workload_counts()
