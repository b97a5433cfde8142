"""Health of a cluster: from its workloads, and from how long ago it was last heard of."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import Q

from workloads.collection import MISSED_REPORTS, heard_within_patience

if TYPE_CHECKING:
    from django.db.models import Expression

    from workloads.models import Cluster


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
    """Judge a cluster, which is as well as its worst workload, at `now` of the database's clock.

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


def is_in_health(health: ClusterHealth, now: Expression) -> Q:
    """Return the condition for the clusters that ``cluster_health`` judges so."""
    heard = heard_within_patience("last_received_at", now)
    return {
        ClusterHealth.PENDING: Q(last_received_at=None),
        ClusterHealth.UNREACHABLE: Q(last_received_at__isnull=False) & ~heard,
        ClusterHealth.ERROR: heard & Q(workloads_error__gt=0),
        ClusterHealth.DEGRADED: heard & Q(workloads_error=0, workloads_degraded__gt=0),
        ClusterHealth.HEALTHY: heard & Q(workloads_error=0, workloads_degraded=0),
    }[health]
