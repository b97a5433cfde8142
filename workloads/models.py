from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Greatest, Now
from django.db.models.lookups import Exact
from django.utils import timezone
from uuid_utils.compat import uuid7

from workloads.bound import inside_clusters
from workloads.collection import (
    DEFAULT_REPORT_INTERVAL,
    FAILURE_REASONS,
    MAX_MESSAGE,
    MAX_REPORT_INTERVAL,
    MAX_RESOURCE,
)
from workloads.fields import JsonType, VerbatimJSONField
from workloads.history import ReportGap, Transition
from workloads.images import ClusterImage, WorkloadImage
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.figures import MEASURED, RESERVED
from workloads.kubernetes.health import HealthStatus

__all__ = ["Cluster", "ClusterImage", "Workload", "WorkloadImage"]

if TYPE_CHECKING:
    import datetime as dt
    import uuid

    from apikeys.grants import Binding

__all__ = ["Cluster", "ReportGap", "Transition", "Workload"]

MAX_COLLECTOR_VERSION = 64
# Also the database's default: processes of the version before register clusters during an upgrade.
_EMPTY: Any = {"default": "", "db_default": ""}
#: Kubernetes' own limits: a namespace is a DNS label, a name a DNS subdomain (RFC 1123).
MAX_NAMESPACE = 63
MAX_NAME = 253
# The names are the wire format.
KINDS = [(kind.value, kind.value) for kind in WorkloadKind]
HEALTH_STATUSES = [(status.value, status.value) for status in HealthStatus]


class ClusterQuerySet(models.QuerySet["Cluster"]):
    """Rules over many clusters."""

    def inside(self, binding: Binding) -> ClusterQuerySet:
        """Those that a token with this binding sees."""
        return inside_clusters(self, binding, "pk")

    def timed(self) -> ClusterQuerySet:
        """Return each with ``read_at``, the database's time, from which ages are reckoned."""
        return self.annotate(read_at=Now())  # type: ignore[no-redef]  # its type is declared below


class Cluster(models.Model):
    """A Kubernetes cluster whose workloads are reported.

    Its health follows from the counts and from the age of its last report, so that a list of
    clusters reads one table; whoever writes workloads keeps the counts, in the same transaction.
    """

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(
        primary_key=True, default=uuid7, editable=False
    )
    name = models.CharField(max_length=200)
    # The uid of its kube-system namespace: tells a report that came to the wrong cluster.
    uid = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - null until reported
    report_interval_seconds = models.IntegerField(default=DEFAULT_REPORT_INTERVAL)
    # The reporter's clock, which orders its reports; then ours, which says how old the last one is.
    last_report_at = models.DateTimeField(null=True)
    last_received_at = models.DateTimeField(null=True)
    # The last report that said all: what was in it unchanged is as fresh as that.
    last_snapshot_at = models.DateTimeField(null=True)
    workloads_unspecified = models.IntegerField(default=0)
    workloads_healthy = models.IntegerField(default=0)
    workloads_degraded = models.IntegerField(default=0)
    workloads_error = models.IntegerField(default=0)
    # The newest report that is being applied, when an older one came in between: those are late.
    announced_report_at = models.DateTimeField(null=True)
    # The last report that the rows of images follow. Another one than the last report was applied
    # by a release that knows no images: then they are made anew.
    images_report_at = models.DateTimeField(null=True)
    # When the usage of very many workloads was last written for its own sake.
    usage_stored_at = models.DateTimeField(null=True)
    # Why the collector could not report, when it last said so. It fails while that is newer than
    # `last_received_at`; otherwise `collection_failing_since` is of an earlier failure.
    collection_error_at = models.DateTimeField(null=True)
    collection_failing_since = models.DateTimeField(null=True)
    collection_error_reason = models.CharField(
        max_length=32, blank=True, choices=FAILURE_REASONS, **_EMPTY
    )
    collection_error_resource = models.CharField(max_length=MAX_RESOURCE, blank=True, **_EMPTY)
    collection_error_message = models.CharField(max_length=MAX_MESSAGE, blank=True, **_EMPTY)
    # What the collector calls itself, with its version.
    collector_version = models.CharField(max_length=MAX_COLLECTOR_VERSION, blank=True, **_EMPTY)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now)

    objects = ClusterQuerySet.as_manager()
    #: Of those that are read by ``timed()``.
    read_at: dt.datetime

    class Meta:
        constraints = [
            models.UniqueConstraint(name="cluster_name_unique", fields=["name"]),
            models.CheckConstraint(name="cluster_name_present", condition=~Q(name="")),
            models.CheckConstraint(name="cluster_uid_present", condition=~Q(uid="")),
            models.CheckConstraint(
                name="cluster_report_interval_in_range",
                condition=Q(report_interval_seconds__range=(1, MAX_REPORT_INTERVAL)),
            ),
            models.CheckConstraint(
                name="cluster_report_whole_or_absent",
                condition=Q(last_report_at=None, last_received_at=None, last_snapshot_at=None)
                | Q(last_report_at__isnull=False, last_received_at__isnull=False),
            ),
            models.CheckConstraint(
                name="cluster_snapshot_not_after_report",
                condition=Q(last_snapshot_at=None) | Q(last_snapshot_at__lte=F("last_report_at")),
            ),
            models.CheckConstraint(
                name="cluster_failure_whole_or_absent",
                condition=Q(
                    collection_error_at=None,
                    collection_failing_since=None,
                    collection_error_reason="",
                )
                | Q(
                    collection_failing_since__lte=F("collection_error_at"),
                    collection_error_reason__in=[reason for reason, _ in FAILURE_REASONS],
                ),
            ),
            models.CheckConstraint(
                name="cluster_counts_not_negative",
                condition=Q(
                    workloads_unspecified__gte=0,
                    workloads_healthy__gte=0,
                    workloads_degraded__gte=0,
                    workloads_error__gte=0,
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def workload_counts(self) -> dict[str, int]:
        """Return how many workloads there are, in all and by health."""
        counts = {
            "healthy": self.workloads_healthy,
            "degraded": self.workloads_degraded,
            "error": self.workloads_error,
            "unspecified": self.workloads_unspecified,
        }
        return {"total": sum(counts.values()), **counts}


def _figures_not_negative() -> Q:
    reserved = {f"{figure.name}__gte": 0 for figure in RESERVED}
    condition = Q(
        replicas_desired__gte=0, replicas_ready__gte=0, replicas_available__gte=0, **reserved
    )
    for figure in MEASURED:
        condition &= Q((figure.name, None)) | Q((f"{figure.name}__gte", 0))
    return condition


class WorkloadQuerySet(models.QuerySet["Workload"]):
    """Rules over many workloads."""

    def inside(self, binding: Binding) -> WorkloadQuerySet:
        """Those of the clusters that a token with this binding sees."""
        return inside_clusters(self, binding, "cluster_id")

    def as_fresh_as(self, snapshot: Any) -> WorkloadQuerySet:
        """Return each with ``last_updated_at``; ``snapshot`` is when its cluster last told all.

        What a snapshot leaves as it was is not written, and yet as fresh as the snapshot.
        """
        heard = Coalesce(snapshot, "observed_at")
        return self.annotate(last_updated_at=Greatest("observed_at", heard))


class Workload(models.Model):
    """A Deployment, StatefulSet or DaemonSet of a cluster, as it was last reported.

    Only what changed is written; ``last_updated_at`` of the API is the later of ``observed_at``
    and the cluster's ``last_snapshot_at``.
    """

    #: Columns in the order of bytes, in which what begins with a text is a range.
    byte_ordered = frozenset({"namespace", "name", "kind"})

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(
        primary_key=True, default=uuid7, editable=False
    )
    # The indexes below have it among their columns; one on it alone would mislead the planner.
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, db_index=False)
    namespace = models.CharField(max_length=MAX_NAMESPACE)
    name = models.CharField(max_length=MAX_NAME)
    kind = models.CharField(max_length=11, choices=KINDS)
    # What Kubernetes calls it; another uid under the same name is another object.
    uid = models.CharField(max_length=64, blank=True)
    labels = models.JSONField(default=dict)
    health_status = models.CharField(max_length=34, choices=HEALTH_STATUSES)
    status_reason = models.CharField(max_length=1024, blank=True)
    replicas_desired = models.IntegerField()
    replicas_ready = models.IntegerField()
    replicas_available = models.IntegerField()
    # The figures of ``workloads/kubernetes/figures.py``; null when nobody measures.
    cpu_requests_millicores = models.BigIntegerField()
    cpu_limits_millicores = models.BigIntegerField()
    cpu_used_millicores = models.BigIntegerField(null=True)
    memory_requests_bytes = models.BigIntegerField()
    memory_limits_bytes = models.BigIntegerField()
    memory_used_bytes = models.BigIntegerField(null=True)
    # Also the database's default: the version before writes rows without it during an upgrade.
    ephemeral_storage_requests_bytes = models.BigIntegerField(default=0, db_default=0)
    # [{"name", "image", "restart_count", "state", "ready"}], in this order of keys.
    containers = VerbatimJSONField(default=list)
    observed_at = models.DateTimeField()
    # Since when health and reason are what they are. The database's default is for the version
    # before, which writes rows without it during an upgrade.
    health_since = models.DateTimeField(db_default=Now())

    objects = WorkloadQuerySet.as_manager()

    class Meta:
        constraints = [
            # Also the order of the pages.
            models.UniqueConstraint(
                name="workload_of_cluster", fields=["cluster", "namespace", "name", "kind"]
            ),
            models.CheckConstraint(
                name="workload_names_present", condition=~Q(namespace="") & ~Q(name="")
            ),
            models.CheckConstraint(
                name="workload_kind_known",
                condition=Q(kind__in=[kind for kind, _ in KINDS]),
            ),
            models.CheckConstraint(
                name="workload_health_known",
                condition=Q(health_status__in=[status for status, _ in HEALTH_STATUSES]),
            ),
            models.CheckConstraint(
                name="workload_figures_not_negative",
                condition=_figures_not_negative(),
            ),
            models.CheckConstraint(
                name="workload_labels_are_an_object",
                condition=Exact(JsonType("labels"), "object"),
            ),
            models.CheckConstraint(
                name="workload_containers_are_an_array",
                condition=Exact(JsonType("containers"), "array"),
            ),
        ]
        indexes = [
            # Each ends with the order of the pages, so that a page is read and never sorted.
            models.Index(
                name="workload_by_health",
                fields=["cluster", "health_status", "namespace", "name", "kind"],
            ),
            # Of all clusters at once, which are listed by health.
            models.Index(
                name="workload_of_health",
                fields=["health_status", "cluster", "namespace", "name", "kind"],
            ),
            models.Index(
                name="workload_of_namespace",
                fields=["namespace", "health_status", "cluster", "name", "kind"],
            ),
            models.Index(
                name="workload_of_name",
                fields=["name", "health_status", "cluster", "namespace", "kind"],
            ),
            models.Index(name="workload_by_kind", fields=["cluster", "kind", "namespace", "name"]),
            models.Index(name="workload_by_name", fields=["cluster", "name", "namespace", "kind"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
