"""Reports, and how old the last one of each cluster is, for Prometheus."""

from __future__ import annotations

from collections import Counter as Tally
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from workloads.cluster_health import ClusterHealth, cluster_health
from workloads.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPORTS: Final = Counter("infra_workload_reports", "Reports that were applied.", ["kind"])
SNAPSHOTS: Final = _REPORTS.labels("snapshot")
DELTAS: Final = _REPORTS.labels("delta")

#: So many clusters have series of their own, by name: a scrape must end.
MAX_CLUSTERS: Final = 1000


class ClusterCollector(Collector):
    """What clusters are like now, in one query. Their names, which are unique, are the labels."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return clusters by health; by cluster the age of its report and its workloads."""
        by_health = GaugeMetricFamily(
            "infra_clusters", "Clusters by their health.", labels=["health"]
        )
        age = GaugeMetricFamily(
            "infra_cluster_report_age_seconds",
            "Since the last report, of clusters that have reported.",
            labels=["cluster"],
        )
        interval = GaugeMetricFamily(
            "infra_cluster_report_interval_seconds",
            "How long the cluster is expected to be silent.",
            labels=["cluster"],
        )
        workloads = GaugeMetricFamily(
            "infra_cluster_workloads",
            "Workloads by their health in the last report.",
            labels=["cluster", "health"],
        )
        health = Tally(dict.fromkeys(ClusterHealth, 0))
        for cluster in Cluster.objects.timed().order_by("name")[:MAX_CLUSTERS]:
            now = cluster.read_at
            health[cluster_health(cluster, now)] += 1
            interval.add_metric([cluster.name], cluster.report_interval_seconds)
            if cluster.last_received_at is not None:
                silence = (now - cluster.last_received_at).total_seconds()
                age.add_metric([cluster.name], silence)
            for name, count in cluster.workload_counts().items():
                if name != "total":
                    workloads.add_metric([cluster.name, name], count)
        for value, count in health.items():
            by_health.add_metric([value.lower()], count)
        return iter((by_health, age, interval, workloads))
