"""The model of workloads, as last reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce, Greatest, Now
from django.db.models.lookups import Exact

from infra_service.lib.uuids import uuid7
from workloads.fields import JsonType, VerbatimJSONField
from workloads.kubernetes.facts import (
    MAX_NAME,
    MAX_NAMESPACE,
    MAX_STATUS_REASON,
    MAX_UID,
    WorkloadKind,
)
from workloads.kubernetes.figures import MEASURED, RESERVED
from workloads.kubernetes.health import HealthStatus
from workloads.models.clusters import Cluster
from workloads.models.of_cluster import inside_clusters

if TYPE_CHECKING:
    import uuid

    from apikeys.bindings import Binding

MAX_KIND: Final = 11
MAX_HEALTH_STATUS: Final = 34
# The values are part of the API.
KINDS: Final = [(kind.value, kind.value) for kind in WorkloadKind]
HEALTH_STATUSES: Final = [(status.value, status.value) for status in HealthStatus]


def _figures_not_negative() -> Q:
    reserved = {f"{figure.name}__gte": 0 for figure in RESERVED}
    condition = Q(
        replicas_desired__gte=0, replicas_ready__gte=0, replicas_available__gte=0, **reserved
    )
    for figure in MEASURED:
        condition &= Q((figure.name, None)) | Q((f"{figure.name}__gte", 0))
    return condition


class WorkloadQuerySet(models.QuerySet["Workload"]):
    def inside(self, binding: Binding) -> WorkloadQuerySet:
        return inside_clusters(self, binding, "cluster_id")

    def as_fresh_as(self, snapshot: Any) -> WorkloadQuerySet:
        """Annotate ``last_updated_at``. ``snapshot`` is the time of the cluster's last snapshot.

        A snapshot does not write unchanged workloads, although it confirms them.
        """
        confirmed = Coalesce(snapshot, "observed_at")
        return self.annotate(last_updated_at=Greatest("observed_at", confirmed))


class Workload(models.Model):
    """A Deployment, StatefulSet or DaemonSet of a cluster, as last reported.

    Reports write only changed rows. ``last_updated_at`` in the API is therefore the later of
    ``observed_at`` and the cluster's ``last_snapshot_at``.
    """

    #: Columns compared in byte order, so that a prefix is a range.
    byte_ordered = frozenset({"namespace", "name", "kind"})

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(
        primary_key=True, default=uuid7, editable=False
    )
    # The indexes below contain the column. A separate index would mislead the planner.
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, db_index=False)
    namespace = models.CharField(max_length=MAX_NAMESPACE)
    name = models.CharField(max_length=MAX_NAME)
    kind = models.CharField(max_length=MAX_KIND, choices=KINDS)
    # The Kubernetes uid. An object with the same name but a different uid is a different object.
    uid = models.CharField(max_length=MAX_UID, blank=True)
    labels = models.JSONField(default=dict)
    health_status = models.CharField(max_length=MAX_HEALTH_STATUS, choices=HEALTH_STATUSES)
    status_reason = models.CharField(max_length=MAX_STATUS_REASON, blank=True)
    replicas_desired = models.IntegerField()
    replicas_ready = models.IntegerField()
    replicas_available = models.IntegerField()
    # The figures in ``workloads/kubernetes/figures.py``. Usage is null if it is not measured.
    cpu_requests_millicores = models.BigIntegerField()
    cpu_limits_millicores = models.BigIntegerField()
    cpu_used_millicores = models.BigIntegerField(null=True)
    memory_requests_bytes = models.BigIntegerField()
    memory_limits_bytes = models.BigIntegerField()
    memory_used_bytes = models.BigIntegerField(null=True)
    # The database default is for the previous release, which omits the column during an upgrade.
    ephemeral_storage_requests_bytes = models.BigIntegerField(default=0, db_default=0)
    # [{"name", "image", "restart_count", "state", "ready"}], in this order of keys.
    containers = VerbatimJSONField(default=list)
    observed_at = models.DateTimeField()
    # The time of the last change in health or reason. The database default is for the previous
    # release, which omits the column during an upgrade.
    health_since = models.DateTimeField(db_default=Now())

    objects = WorkloadQuerySet.as_manager()

    class Meta:
        constraints = [
            # Also the order of lists.
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
            # Each index ends with the order of lists, so that pages need no sorting.
            models.Index(
                name="workload_by_health",
                fields=["cluster", "health_status", "namespace", "name", "kind"],
            ),
            # For the list of all clusters, ordered by health.
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
