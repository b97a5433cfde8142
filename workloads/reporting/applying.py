"""Apply a report of a cluster's workloads.

A snapshot contains all workloads, so workloads missing from it are deleted. A delta contains only
changes. The report is compared with the stored rows without a lock. A short transaction then
replaces the time of the cluster's last report and writes the differences. The transaction fails if
another report has been applied since the comparison. Two reports therefore never mix, and readers
never see half a report.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Count, Q
from django.db.models.functions import Least, Now

from apikeys import audit
from infra_service.lib.database.retries import retrying
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster, Workload
from workloads.reporting import image_rows
from workloads.reporting.deployments import deployments_changed
from workloads.reporting.differences import Differences, compare
from workloads.reporting.errors import ClockAhead, ClusterBusy, ClusterUidMismatch, StaleReport
from workloads.reporting.reports import Applied
from workloads.reporting.short_transactions import LimitedLockWait, short_wait
from workloads.reporting.transitions import gap_before

if TYPE_CHECKING:
    import uuid

    from apikeys.actors import Actor
    from workloads.reporting.reports import Report

#: The maximum lead of a reporter's clock. A report from the far future would block every later
#: report until that time.
MAX_CLOCK_LEAD: Final = dt.timedelta(minutes=5)
# The first attempt fails if another report is applied during the comparison, or the caller changes.
# The second attempt is announced, so that only newer reports can interfere. If one does, the third
# attempt rejects the report as stale.
_ATTEMPTS: Final = 3
# The usage of nearly every workload changes each minute. An update of all 15,000 rows would write
# 20 MB of WAL. A report therefore writes a few rows immediately, but many rows only at this pace.
_FEW_MEASURED: Final = 1000
_USAGE_PACE: Final = dt.timedelta(minutes=5)
_COUNTERS: Final = {
    HealthStatus.UNSPECIFIED: "workloads_unspecified",
    HealthStatus.HEALTHY: "workloads_healthy",
    HealthStatus.DEGRADED: "workloads_degraded",
    HealthStatus.ERROR: "workloads_error",
}


@retrying
def apply_report(*, cluster_id: uuid.UUID, report: Report, actor: Actor) -> Applied:
    """Apply a report to the workloads of its cluster, without writing unchanged rows.

    Raises:
        Cluster.DoesNotExist: the cluster does not exist.
        ClusterUidMismatch: the report is from another cluster.
        ClockAhead: the report is from the future.
        StaleReport: a report with the same or a later time is already applied.
        ClusterBusy: other reports of the cluster are being applied. Nothing was stored.
        CredentialsInvalid, TokenExpired, CallerChanged: the caller was revoked, or lost
            permissions.
    """
    for attempt in range(_ATTEMPTS):
        if attempt:
            actor = actor.refresh()
            _announce(cluster_id, report)
        # 1. Load the cluster. Reject a report that is stale, or from another cluster.
        cluster = _judge(cluster_id, report)
        # 2. Compare the report with the rows, without a lock.
        changes = compare(cluster_id, report, _observed_at(cluster, report))
        # 3. Write resource usage less often than other changes.
        if _measures_many(changes) and not _is_usage_due(cluster):
            changes.postpone_usage()
        # 4. Claim the cluster and write the differences, unless another report was applied first.
        if _store(cluster, report, changes, actor):
            return Applied(
                created=len(changes.new) - changes.replaced,
                updated=changes.updated + changes.replaced,
                deleted=len(changes.deleted_ids) - changes.replaced,
                unchanged=changes.unchanged,
            )
    raise ClusterBusy


def _judge(cluster_id: uuid.UUID, report: Report) -> Cluster:
    """Return the cluster as stored before the report, or reject the report."""
    cluster = Cluster.objects.timed().get(pk=cluster_id)
    if report.cluster_uid and cluster.uid not in (None, report.cluster_uid):
        raise ClusterUidMismatch(report.cluster_uid, cluster.uid)
    if report.reported_at > cluster.read_at + MAX_CLOCK_LEAD:
        raise ClockAhead(report.reported_at, cluster.read_at)
    last, announced = cluster.last_report_at, cluster.announced_report_at
    if last and report.reported_at <= last and not _is_from_future(cluster, last):
        raise StaleReport(report.reported_at, last)
    if announced and report.reported_at < announced and not _is_from_future(cluster, announced):
        raise StaleReport(report.reported_at, announced)
    return cluster


def _observed_at(cluster: Cluster, report: Report) -> dt.datetime:
    """Return the time of the observation, which is at most the database's time."""
    return min(report.reported_at, cluster.read_at)


def _is_from_future(cluster: Cluster, reported_at: dt.datetime | None) -> bool:
    """Return whether an earlier report is from the future.

    Early releases accepted such reports, and the database's clock may be set back. Such a report
    must not cause the rejection of current reports.
    """
    return reported_at is not None and reported_at > cluster.read_at + MAX_CLOCK_LEAD


def _measures_many(changes: Differences) -> bool:
    """Return whether too many rows differ only in usage to be written with each report."""
    return len(changes.measured) > _FEW_MEASURED


def _is_usage_due(cluster: Cluster) -> bool:
    last = cluster.usage_stored_at
    # The last time is in the future if the database's clock was set back.
    return last is None or not last <= cluster.read_at < last + _USAGE_PACE


def _announce(cluster_id: uuid.UUID, report: Report) -> None:
    """Announce the report, so that older reports are rejected during the comparison.

    Otherwise, small reports could restart the comparison of a large report repeatedly. A crash has
    no lasting effect, because the next report is newer than the announced report.
    """
    older = Q(announced_report_at=None) | Q(announced_report_at__lt=report.reported_at)
    with short_wait():
        clusters = Cluster.objects.filter(LimitedLockWait(), older, pk=cluster_id)
        clusters.update(announced_report_at=report.reported_at)


def _store(cluster: Cluster, report: Report, changes: Differences, actor: Actor) -> bool:
    """Write the report. Return False if another report was applied, or the caller changed."""
    gap = gap_before(cluster, _observed_at(cluster, report))
    writes = not changes.is_empty() or gap is not None or _lags_in_images(cluster)
    if not writes and not _is_new(cluster, report) and not _looks_ahead(cluster):
        with short_wait():
            return _claim(cluster, report, changes, actor)  # a single statement is atomic
    with short_wait(), transaction.atomic():
        if not _claim(cluster, report, changes, actor):
            return False
        if _is_new(cluster, report):
            audit.authorize_and_record(
                actor, "cluster.identify", cluster.pk, uid=report.cluster_uid
            )
        if _looks_ahead(cluster):
            rows = Workload.objects.filter(cluster=cluster, observed_at__gt=cluster.read_at)
            rows.update(observed_at=cluster.read_at)
        if gap is not None:
            gap.save(force_insert=True)
        changes.write(cluster.pk)
        if changes.deployments and cluster.last_report_at is not None:
            deployments_changed.send(
                Cluster,
                cluster_id=cluster.pk,
                at=_observed_at(cluster, report),
                changes=changes.deployments,
            )
        if _lags_in_images(cluster):
            image_rows.rebuild(cluster.pk)
        else:
            changes.images.write(cluster.pk, anew=cluster.last_report_at is None)
        if changes.any():
            _count(cluster.pk)
    return True


def _is_new(cluster: Cluster, report: Report) -> bool:
    """Return whether the report is the first that identifies the cluster."""
    return bool(report.cluster_uid) and cluster.uid is None


def _looks_ahead(cluster: Cluster) -> bool:
    """Return whether workloads of the cluster may have an observation time in the future."""
    return _is_from_future(cluster, cluster.last_report_at)


def _lags_in_images(cluster: Cluster) -> bool:
    """Return whether image rows are missing or older than the last report."""
    return cluster.images_report_at != cluster.last_report_at


def _claim(cluster: Cluster, report: Report, changes: Differences, actor: Actor) -> bool:
    """Replace the time of the last report, which also locks the cluster's row."""
    observed_at = _observed_at(cluster, report)
    values: dict[str, Any] = {
        "last_report_at": report.reported_at,
        "images_report_at": report.reported_at,
        "last_received_at": Now(),
    }
    if cluster.collection_error_at is not None and cluster.collection_error_at > cluster.read_at:
        # The database's clock was set back. This report ends the failure nevertheless.
        values["collection_error_at"] = Now()
        values["collection_failing_since"] = Least("collection_failing_since", Now())
    if report.complete:
        values["last_snapshot_at"] = observed_at
    elif cluster.last_snapshot_at is not None:
        values["last_snapshot_at"] = min(cluster.last_snapshot_at, observed_at)
    if _measures_many(changes):
        values["usage_stored_at"] = Now()
    if report.cluster_uid:
        values["uid"] = report.cluster_uid
    if report.interval_seconds is not None:
        values["report_interval_seconds"] = report.interval_seconds
    if report.collector_version:
        values["collector_version"] = report.collector_version
    as_read = Cluster.objects.filter(
        LimitedLockWait(),
        actor.unchanged(),
        pk=cluster.pk,
        uid=cluster.uid,
        last_report_at=cluster.last_report_at,
        announced_report_at=cluster.announced_report_at,
    )
    return bool(as_read.update(**values))


def _count(cluster_id: uuid.UUID) -> None:
    """Update the cluster's counts of workloads by health, using a covering index."""
    rows = Workload.objects.filter(cluster=cluster_id).values_list("health_status")
    counted = Counter(dict(rows.annotate(Count("id")).order_by()))
    Cluster.objects.filter(pk=cluster_id).update(
        **{column: counted[status.value] for status, column in _COUNTERS.items()}
    )
