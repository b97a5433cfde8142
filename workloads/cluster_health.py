"""The health of a cluster, from its workloads, and the status of its collection."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Q, Value

from workloads.collection import MISSED_REPORTS, CollectionStatus

if TYPE_CHECKING:
    from django.db.models import Expression

    from workloads.models import Cluster


class ClusterHealth(StrEnum):
    """The health of a cluster. The first value that applies is used."""

    PENDING = "PENDING"
    UNREACHABLE = "UNREACHABLE"
    ERROR = "ERROR"
    DEGRADED = "DEGRADED"
    HEALTHY = "HEALTHY"


#: The choices of a serializer field.
HEALTH_STATUSES = [(status.value, status.value) for status in ClusterHealth]


def cluster_health(cluster: Cluster, now: dt.datetime) -> ClusterHealth:
    """Return the health of a cluster at the database's time ``now``, from its worst workload.

    Workloads of an unreachable cluster keep their last status.
    """
    if cluster.last_received_at is None:
        return ClusterHealth.PENDING
    if not _is_recent(cluster, cluster.last_received_at, now):
        return ClusterHealth.UNREACHABLE
    if cluster.workloads_error:
        return ClusterHealth.ERROR
    return ClusterHealth.DEGRADED if cluster.workloads_degraded else ClusterHealth.HEALTHY


def report_timeout(cluster: Cluster) -> dt.timedelta:
    """Return the time without a report after which a cluster is unreachable."""
    return dt.timedelta(seconds=MISSED_REPORTS * cluster.report_interval_seconds)


def is_in_health(health: ClusterHealth, now: Expression) -> Q:
    """Return the condition for clusters with this ``cluster_health``."""
    contact = in_contact("last_received_at", now)
    return {
        ClusterHealth.PENDING: Q(last_received_at=None),
        ClusterHealth.UNREACHABLE: Q(last_received_at__isnull=False) & ~contact,
        ClusterHealth.ERROR: contact & Q(workloads_error__gt=0),
        ClusterHealth.DEGRADED: contact & Q(workloads_error=0, workloads_degraded__gt=0),
        ClusterHealth.HEALTHY: contact & Q(workloads_error=0, workloads_degraded=0),
    }[health]


def collection_status(cluster: Cluster, now: dt.datetime) -> CollectionStatus:
    """Return the collection status of a cluster at the database's time ``now``."""
    contact = last_contact_at(cluster)
    if contact is None:
        return CollectionStatus.PENDING
    if not _is_recent(cluster, contact, now):
        return CollectionStatus.SILENT
    return CollectionStatus.OK if failing_since(cluster) is None else CollectionStatus.FAILING


def _is_recent(cluster: Cluster, moment: dt.datetime, now: dt.datetime) -> bool:
    """Return whether a time is within the last three intervals, like ``in_contact``."""
    return abs(now - moment) <= report_timeout(cluster)


def last_contact_at(cluster: Cluster) -> dt.datetime | None:
    """Return the time of the collector's last report or failure."""
    contact = (cluster.last_received_at, cluster.collection_error_at)
    return max((moment for moment in contact if moment is not None), default=None)


def failing_since(cluster: Cluster) -> dt.datetime | None:
    """Return the start of the current series of failures; None after a report."""
    failed, received = cluster.collection_error_at, cluster.last_received_at
    if failed is None or (received is not None and received >= failed):
        return None
    return cluster.collection_failing_since


def lag(cluster: Cluster, now: dt.datetime) -> dt.timedelta | None:
    """Return the age of the workload data; None before the first report."""
    seen = seen_until(cluster)
    return None if seen is None else now - seen


def seen_until(cluster: Cluster) -> dt.datetime | None:
    """Return the time of the reporter's last observation; None before the first report."""
    if cluster.last_report_at is None or cluster.last_received_at is None:
        return None
    # The reporter's clock may be ahead, but an observation precedes its arrival.
    return min(cluster.last_report_at, cluster.last_received_at)


def in_contact(moment: str, now: Expression) -> Q:
    """Return the condition that the column ``moment`` is within the last three intervals.

    A much later time is from before the database's clock was set back.
    """
    timeout = F("report_interval_seconds") * Value(dt.timedelta(seconds=MISSED_REPORTS))
    report_timeout = ExpressionWrapper(timeout, DurationField())
    since = ExpressionWrapper(now - report_timeout, DateTimeField())
    until = ExpressionWrapper(now + report_timeout, DateTimeField())
    return Q((f"{moment}__gte", since), (f"{moment}__lte", until))


def is_silent(now: Expression) -> Q:
    """Return the condition for clusters without current reports.

    Either three consecutive reports are missing, including the first reports of a new cluster, or
    the collector cannot read the cluster.
    """
    contact = in_contact("last_received_at", now)
    is_new = Q(last_received_at=None) & in_contact("created_at", now)
    failed = Q(collection_error_at__isnull=False)
    never, before = Q(last_received_at=None), Q(last_received_at__lt=F("collection_error_at"))
    return (~contact & ~is_new) | (failed & (never | before))
