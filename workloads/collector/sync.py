"""Bringing the reports of one cluster: once, or for as long as it is asked."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog
from django.db import Error as DatabaseFault
from django.db import connection
from django.utils import timezone

from workloads.collector.backoff import Backoff
from workloads.collector.errors import ExpiredError, KubernetesError, RefusedError
from workloads.collector.listing import cluster_uid, read_cluster
from workloads.collector.metrics import PodUsage
from workloads.collector.mirror import Mirror
from workloads.collector.reflectors import reflect
from workloads.report_errors import ClockAhead, ClusterBusy, StaleReport
from workloads.reports import Report, apply_report

if TYPE_CHECKING:
    import datetime as dt
    import threading
    import uuid
    from collections.abc import Callable

    from apikeys.audit import Actor
    from workloads.collector.client import ClusterClient
    from workloads.collector.listing import Progress
    from workloads.collector.reflectors import Reflector
    from workloads.kubernetes.facts import PodKey, Usage
    from workloads.kubernetes.records import WorkloadRecord
    from workloads.reports import Applied, Place

log = structlog.get_logger("workloads.collector")

_ATTEMPTS: Final = 4
# How long changes are gathered before they are reported.
_GATHER_SECONDS: Final = 1.0
_JOIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Synced:
    """One applied report: a snapshot (`complete`) or a delta, and how long it took in all."""

    complete: bool
    workloads: int
    applied: Applied
    seconds: float


class Collector:
    """Reads one cluster and reports it.

    `interval` is how many seconds lie between two snapshots, None when only one is meant.
    """

    def __init__(
        self,
        client: ClusterClient,
        cluster_id: uuid.UUID,
        *,
        actor: Actor,
        progress: Progress,
        interval: int | None = None,
        now: Callable[[], dt.datetime] = timezone.now,
    ) -> None:
        self._client, self._cluster_id, self._actor = client, cluster_id, actor
        self._progress, self._interval, self._now = progress, interval, now
        self._uid = ""
        # As it was at the last snapshot; deltas use it until the next.
        self._usage: dict[PodKey, Usage] | None = None
        self._measured: set[str] = set()

    def once(self, stop: threading.Event) -> Synced:
        """List the cluster and apply one snapshot; a list that fails is tried again, a few times.

        Raises:
            KubernetesError: the cluster could not be read; nothing was changed.
            ClusterUidMismatch, ClockAhead, StaleReport, ClusterBusy, Cluster.DoesNotExist: see
                ``apply_report``.
        """
        started = time.monotonic()
        backoff = Backoff()
        attempt = 1
        while True:
            # Before the lists, so that of two collectors the one with the newer lists wins.
            as_of = self._now()
            try:
                self._uid = cluster_uid(self._client)
                records = read_cluster(self._client, as_of, self._progress)
            except KubernetesError as error:
                final = isinstance(error, RefusedError) and error.is_final
                if final or attempt == _ATTEMPTS or stop.is_set():
                    raise
                log.warning("list_failed", attempt=attempt, error=str(error))
                attempt += 1
                # Pages that took too long are read again at once, from the first.
                if not isinstance(error, ExpiredError):
                    stop.wait(backoff.next_pause(error.retry_after))
            else:
                return self._apply(records, as_of, started)

    def follow(self, stop: threading.Event, reported: Callable[[Synced], None]) -> None:
        """Watch the cluster until the stop event: deltas as it changes, a snapshot an interval.

        While the mirror is not current nothing is reported, so that the cluster shows as
        unreachable after a while.

        Raises:
            ClusterUidMismatch, Cluster.DoesNotExist: waiting would not help.
        """
        mirror = Mirror()
        reflectors = reflect(self._client, mirror, stop, self._progress)
        try:
            self._follow(mirror, reflectors, stop, reported)
        finally:
            stop.set()
            self._client.close()
            until = time.monotonic() + _JOIN_SECONDS
            for reflector in reflectors:
                reflector.join(max(0.0, until - time.monotonic()))

    def _follow(
        self,
        mirror: Mirror,
        reflectors: list[Reflector],
        stop: threading.Event,
        reported: Callable[[Synced], None],
    ) -> None:
        backoff = Backoff()
        next_snapshot = 0.0
        while not stop.is_set():
            pause = _GATHER_SECONDS
            try:
                if not all(reflector.is_current for reflector in reflectors):
                    synced = None
                elif mirror.is_refilled or time.monotonic() >= next_snapshot:
                    due = time.monotonic() + (self._interval or 0)
                    synced = self._snapshot(mirror)
                    next_snapshot = due
                else:
                    synced = self._delta(mirror)
                if synced:
                    reported(synced)
                    backoff.reset()
            except (StaleReport, ClockAhead, ClusterBusy, KubernetesError, DatabaseFault) as error:
                # What the report held is no longer marked as changed: only a snapshot has it all.
                next_snapshot = 0.0
                pause = backoff.next_pause()
                if not stop.is_set():
                    log.warning("report_failed", error=f"{type(error).__name__}: {error}")
                if isinstance(error, DatabaseFault):
                    _drop_connection()
            stop.wait(pause)

    def _snapshot(self, mirror: Mirror) -> Synced:
        started = time.monotonic()
        if not self._uid:
            self._uid = cluster_uid(self._client)
        while True:
            self._measured = mirror.namespaces()
            self._usage = PodUsage(self._client).read_all(self._measured)
            as_of = self._now()
            records = mirror.snapshot(as_of, self._usage)
            if self._is_measured(records):
                return self._apply(records, as_of, started)

    def _delta(self, mirror: Mirror) -> Synced | None:
        started, as_of = time.monotonic(), self._now()
        records, deleted = mirror.delta(as_of, self._usage)
        if not records and not deleted:
            return None
        if not self._is_measured(records):
            return self._snapshot(mirror)
        return self._apply(records, as_of, started, deleted)

    def _is_measured(self, records: list[WorkloadRecord]) -> bool:
        """Whether usage was read of their namespaces: in a new one, it would seem to be nothing."""
        return {record.namespace for record in records} <= self._measured

    def _apply(
        self,
        records: list[WorkloadRecord],
        as_of: dt.datetime,
        started: float,
        deleted: frozenset[Place] | None = None,
    ) -> Synced:
        report = Report(
            reported_at=as_of,
            complete=deleted is None,
            records=records,
            deleted=deleted or frozenset(),
            cluster_uid=self._uid,
            interval_seconds=self._interval,
        )
        applied = apply_report(cluster_id=self._cluster_id, report=report, actor=self._actor)
        return Synced(report.complete, len(records), applied, time.monotonic() - started)


def _drop_connection() -> None:
    """Have the next report take another connection; within a caller's transaction it cannot."""
    if not connection.in_atomic_block:
        connection.close()
