"""Prometheus metrics of reports, clusters and collections."""

from __future__ import annotations

from collections import Counter as Tally
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from workloads.cluster_health import (
    ClusterHealth,
    cluster_health,
    collection_status,
    failing_since,
    lag,
    last_contact_at,
)
from workloads.collection import CollectionStatus
from workloads.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REPORTS: Final = Counter("infra_workload_reports", "Applied reports.", ["kind"])
SNAPSHOTS: Final = _REPORTS.labels("snapshot")
DELTAS: Final = _REPORTS.labels("delta")

#: The maximum number of clusters in the metrics, which limits the duration of a scrape.
MAX_CLUSTERS: Final = 1000


class ClusterCollector(Collector):
    """The current state of clusters, read in one query. The labels are the cluster names."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the clusters by health and by collection status, and the metrics per cluster."""
        health = Tally(dict.fromkeys(ClusterHealth, 0))
        collection = Tally(dict.fromkeys(CollectionStatus, 0))
        of_clusters = _OfClusters()
        for cluster in Cluster.objects.timed().order_by("name")[:MAX_CLUSTERS]:
            health[cluster_health(cluster, cluster.read_at)] += 1
            status = collection_status(cluster, cluster.read_at)
            collection[status] += 1
            of_clusters.add(cluster, status)
        yield _gauge(
            "infra_clusters", "Clusters by health, up to 1,000 clusters.", "health", health
        )
        yield _gauge(
            "infra_cluster_collections",
            "Clusters by collection status, up to 1,000 clusters.",
            "status",
            collection,
        )
        yield from of_clusters.gauges()


class _OfClusters:
    """The metrics per cluster."""

    def __init__(self) -> None:
        self.age = GaugeMetricFamily(
            "infra_cluster_report_age_seconds",
            "Time since the last applied report; absent before the first.",
            labels=["cluster"],
        )
        self.contact_age = GaugeMetricFamily(
            "infra_cluster_heard_age_seconds",
            "Time since the last applied report or reported failure; absent before the first.",
            labels=["cluster"],
        )
        self.lag = GaugeMetricFamily(
            "infra_cluster_lag_seconds",
            "Time since the last observation by the reporter's clock, at least the report age.",
            labels=["cluster"],
        )
        self.failing = GaugeMetricFamily(
            "infra_cluster_collection_failing_seconds",
            "Duration of the current series of collection failures, by the reason of the last "
            "failure; absent for a silent cluster.",
            labels=["cluster", "reason"],
        )
        self.interval = GaugeMetricFamily(
            "infra_cluster_report_interval_seconds",
            "Expected maximum time between two reports.",
            labels=["cluster"],
        )
        self.workloads = GaugeMetricFamily(
            "infra_cluster_workloads",
            "Workloads by health, after the last applied report.",
            labels=["cluster", "health"],
        )

    def gauges(self) -> tuple[GaugeMetricFamily, ...]:
        return self.age, self.contact_age, self.lag, self.failing, self.interval, self.workloads

    def add(self, cluster: Cluster, status: CollectionStatus) -> None:
        names, now = [cluster.name], cluster.read_at
        self.interval.add_metric(names, cluster.report_interval_seconds)
        if cluster.last_received_at is not None:
            self.age.add_metric(names, (now - cluster.last_received_at).total_seconds())
        if (contact_age := last_contact_at(cluster)) is not None:
            self.contact_age.add_metric(names, (now - contact_age).total_seconds())
        if (behind := lag(cluster, now)) is not None:
            self.lag.add_metric(names, behind.total_seconds())
        since = failing_since(cluster)
        if since is not None and status is CollectionStatus.FAILING:
            reason = cluster.collection_error_reason.lower()
            self.failing.add_metric([*names, reason], (now - since).total_seconds())
        for health, count in cluster.workload_counts().items():
            if health != "total":
                self.workloads.add_metric([*names, health], count)


def _gauge(name: str, documentation: str, label: str, counts: Mapping[Any, int]) -> Any:
    gauge = GaugeMetricFamily(name, documentation, labels=[label])
    for value, count in counts.items():
        gauge.add_metric([value.lower()], count)
    return gauge
