from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from infra_service.lib.api.fields import (
    KnownListField,
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
from workloads.kubernetes.figures import FIGURES, MEASURED
from workloads.managed import MOST_MANAGING, Join
from workloads.models import HEALTH_STATUSES, KINDS
from workloads.reporting.errors import shown

if TYPE_CHECKING:
    from workloads.models import Cluster


@described("A container of a workload's template, over all its live pods.")
class ContainerSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    image = serializers.CharField()
    restart_count = serializers.IntegerField()
    state = serializers.CharField(help_text="The worst of running, waiting and terminated.")
    ready = serializers.BooleanField()
    running = KnownListField(
        child=serializers.CharField(),
        help_text="References with digests to the images of its pods: several during a rollout, or "
        "after a tag has moved. Absent while no digest is known.",
    )


@extend_schema_field(serializers.DictField(child=serializers.CharField()))
class LabelsField(serializers.JSONField):
    """Labels, as they are stored."""


@extend_schema_field(ContainerSerializer(many=True))
class ContainersField(serializers.JSONField):
    """Containers, as they are stored."""


@described("A workload. Usage is null without metrics.")
class WorkloadSerializer(serializers.Serializer[Any]):
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
    # A field for each figure, in the order of the response.
    vars().update(
        {
            f.name: serializers.IntegerField(read_only=True, allow_null=f in MEASURED)
            for f in FIGURES
        }
    )
    containers = ContainersField(read_only=True)
    last_updated_at = TimestampField(read_only=True)


@described("A resource of a state that manages a workload.")
class ManagedBySerializer(serializers.Serializer[Any]):
    state_id = serializers.UUIDField()
    component_id = serializers.UUIDField()
    environment_id = serializers.UUIDField()
    address = serializers.CharField()
    joined_by = serializers.ChoiceField(
        [join.value for join in Join],
        help_text="METADATA_UID: the uid is this object's. HELM_RELEASE: the namespace, and the "
        "label app.kubernetes.io/instance, match a helm_release, which may belong to "
        "another cluster: a state does not contain its cluster.",
    )


@described("A workload, and which resources of states manage it.")
class ManagedWorkloadSerializer(WorkloadSerializer):
    managed = serializers.BooleanField(
        read_only=True,
        help_text="Whether a resource of any state manages it, including states that you cannot "
        "see.",
    )
    managed_by = ManagedBySerializer(
        many=True,
        read_only=True,
        help_text="Of states that you can read; empty for a token without state:read or with a "
        f"cluster binding. {MOST_MANAGING} at most.",
    )


@described("An image that runs in clusters that the token sees.")
class ImageSerializer(serializers.Serializer[Any]):
    registry = serializers.CharField()
    repository = serializers.CharField(help_text="With its registry.")
    tag = serializers.CharField(help_text="Empty where a digest alone names the image.")
    digest = serializers.CharField(help_text="Empty while it is not known.")
    workloads = serializers.IntegerField(
        source="in_workloads", help_text="How many workloads run it."
    )
    clusters = serializers.IntegerField(
        source="in_clusters", help_text="In how many clusters it runs."
    )


@described("How many workloads a cluster has, by their health.")
class WorkloadCountsSerializer(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    healthy = serializers.IntegerField()
    degraded = serializers.IntegerField()
    error = serializers.IntegerField()
    unspecified = serializers.IntegerField()


@described(
    "The status of a cluster's reports, with the reason of a failure. Times are "
    "those of the "
    "database's clock."
)
class CollectionSerializer(serializers.Serializer[Any]):
    status = serializers.SerializerMethodField(
        help_text="PENDING before the first report or failure; SILENT after three intervals "
        "without a report or a failure; FAILING when the last message was a failure; "
        "else OK."
    )
    last_success_at = TimestampField(
        source="last_received_at",
        allow_null=True,
        help_text="When the last report was applied.",
    )
    lag_seconds = serializers.SerializerMethodField(
        help_text="Age of the displayed data at the reporter."
    )
    failing_since = serializers.SerializerMethodField(
        help_text="Null unless the last that was heard is a failure."
    )
    last_error_at = TimestampField(
        source="collection_error_at",
        allow_null=True,
        help_text="Time of the last reported failure, including resolved failures.",
    )
    last_error_reason = serializers.CharField(source="collection_error_reason")
    last_error_resource = serializers.CharField(
        source="collection_error_resource", help_text="The resource that could not be read."
    )
    last_error_message = serializers.CharField(source="collection_error_message")
    collector_version = serializers.CharField()

    @extend_schema_field(serializers.ChoiceField(COLLECTION_STATUSES))
    def get_status(self, cluster: Cluster) -> str:
        """Return the collection status at the time of the query."""
        return collection_status(cluster, cluster.read_at).value

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_lag_seconds(self, cluster: Cluster) -> int | None:
        """Return whole seconds."""
        behind = lag(cluster, cluster.read_at)
        return None if behind is None else int(behind.total_seconds())

    @extend_schema_field(TimestampField(allow_null=True))
    def get_failing_since(self, cluster: Cluster) -> str | None:
        """Return the start of the current series of failures."""
        since = failing_since(cluster)
        return None if since is None else shown(since)


@described("The reason why a collector cannot report.")
class FailureSerializer(StrictSerializer):
    reason = WordField([reason for reason, _ in FAILURE_REASONS])
    resource = TextField(max_length=MAX_RESOURCE, allow_blank=True, default="")
    message = TextField(max_length=10 * MAX_MESSAGE, allow_blank=True, default="")
    collector_version = TextField(max_length=MAX_COLLECTOR_VERSION, allow_blank=True, default="")


@described("A cluster whose workloads are reported. Times are null before the first report.")
class ClusterSerializer(StrictSerializer):
    id = serializers.UUIDField(read_only=True)
    name = TextField(max_length=200)
    uid = serializers.CharField(
        read_only=True, allow_null=True, help_text="The uid of its kube-system namespace."
    )
    report_interval_seconds = WholeField(
        min_value=1,
        max_value=MAX_REPORT_INTERVAL,
        default=DEFAULT_REPORT_INTERVAL,
        help_text="How far apart its reports are at most; after three it counts as unreachable. "
        f"{DEFAULT_REPORT_INTERVAL} unless it is given.",
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
        read_only=True,
        allow_null=True,
        help_text="When that report arrived, by the database's clock.",
    )
    last_snapshot_at = TimestampField(read_only=True, allow_null=True)
    collection = CollectionSerializer(source="*", read_only=True)
    created_at = TimestampField(read_only=True)
    updated_at = TimestampField(read_only=True)

    @extend_schema_field(serializers.ChoiceField(CLUSTER_HEALTH_STATUSES))
    def get_health_status(self, cluster: Cluster) -> str:
        """Return the cluster's health at the time of the query."""
        return cluster_health(cluster, cluster.read_at).value

    @extend_schema_field(WorkloadCountsSerializer())
    def get_workload_counts(self, cluster: Cluster) -> dict[str, int]:
        """Return the counts that each report updates."""
        return cluster.workload_counts()
