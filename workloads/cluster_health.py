"""Health of a cluster: from its workloads, and from how long ago it was last heard of."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workloads.models import Cluster

#: A reporter that has missed so many reports in a row is gone.
MISSED_REPORTS: Final = 3


class ClusterHealth(StrEnum):
    """The wire values; the first that applies is shown."""

    PENDING = "PENDING"
    UNREACHABLE = "UNREACHABLE"
    ERROR = "ERROR"
    DEGRADED = "DEGRADED"
    HEALTHY = "HEALTHY"


#: For a serializer's field.
HEALTH_STATUSES = [(status.value, status.value) for status in ClusterHealth]


def cluster_health(cluster: Cluster, now: dt.datetime) -> ClusterHealth:
    """Judge a cluster at `now` (aware), by our clock; a cluster is as well as its worst workload.

    The workloads of one that is unreachable keep their last status.
    """
    if cluster.last_received_at is None:
        return ClusterHealth.PENDING
    patience = dt.timedelta(seconds=MISSED_REPORTS * cluster.report_interval_seconds)
    if now - cluster.last_received_at > patience:
        return ClusterHealth.UNREACHABLE
    if cluster.workloads_error:
        return ClusterHealth.ERROR
    return ClusterHealth.DEGRADED if cluster.workloads_degraded else ClusterHealth.HEALTHY
