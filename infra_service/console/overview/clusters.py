"""Clusters by health, clusters without recent reports, and clusters with workloads in error."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Count, Subquery, Sum
from django.db.models.functions import Coalesce, Now

from infra_service.console.overview.counting import EXACT, SHOWN, Number, up_to
from workloads.cluster_health import ClusterHealth, collection_status, is_in_health, is_silent
from workloads.collection import CollectionStatus
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster, Workload
from workloads.signs import sign, word

_WORST_FIRST: Final = (
    ClusterHealth.ERROR,
    ClusterHealth.UNREACHABLE,
    ClusterHealth.DEGRADED,
    ClusterHealth.PENDING,
    ClusterHealth.HEALTHY,
)


def count_clusters() -> dict[str, Any]:
    """Return the number of clusters by health and the number of workloads in error, in one query.

    Each report stores the counts in the cluster's row, so the query reads no workloads.
    """
    now = Now()
    in_error = is_in_health(ClusterHealth.ERROR, now)
    found = Cluster.objects.order_by("id")[: EXACT + 1].aggregate(
        **{health.value: Count("pk", filter=is_in_health(health, now)) for health in ClusterHealth},
        silent=Count("pk", filter=is_silent(now)),
        errors=Coalesce(Sum("workloads_error", filter=in_error), 0),
    )
    counts = [(health, found[health]) for health in _WORST_FIRST]
    total = up_to(EXACT, sum(number for _, number in counts))
    return {
        "count": total,
        "parts": [(sign(health), word(health), number) for health, number in counts],
        "legend": [(sign(health), word(health), number, health) for health, number in counts],
        "silent": Number(found["silent"], is_more=total.is_more),
        "errors": Number(found["errors"], is_more=total.is_more),
    }


def silent_clusters() -> list[dict[str, Any]]:
    """Return the clusters without recent reports, longest first, with the collector's error."""
    silent = Cluster.objects.timed().filter(is_silent(Now()))
    longest_first = silent.order_by(Coalesce("last_received_at", "created_at"), "id")
    return [
        {
            "cluster": cluster,
            "sign": sign(status),
            "status": word(status),
            "reason": _reason(cluster, status),
        }
        for cluster in longest_first[:SHOWN]
        for status in (collection_status(cluster, cluster.read_at),)
    ]


def _reason(cluster: Cluster, status: CollectionStatus) -> str:
    """Return the collector's error reason, or an empty text if the collector reported no error."""
    if status is not CollectionStatus.FAILING:
        return ""
    return cluster.collection_error_reason.replace("_", " ").lower()


def clusters_in_error() -> list[dict[str, Any]]:
    """Return the clusters with the most workloads in error, each with an example workload."""
    clusters = list(
        Cluster.objects.filter(is_in_health(ClusterHealth.ERROR, Now())).order_by(
            "-workloads_error", "name"
        )[:SHOWN]
    )
    errors = Workload.objects.filter(health_status=HealthStatus.ERROR)
    first = errors.order_by("namespace", "name", "kind").values("pk")
    shown = Workload.objects.only("cluster_id", "namespace", "name", "kind", "status_reason")
    examples = shown.filter(pk__in=[Subquery(first.filter(cluster=c.pk)[:1]) for c in clusters])
    example_of = {workload.cluster_id: workload for workload in examples}
    return [{"cluster": c, "example": example_of.get(c.pk)} for c in clusters]
