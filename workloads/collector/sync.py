"""Report a cluster once or continuously."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog
from django.utils import timezone

from workloads.collector.backoff import LONGEST, Backoff
from workloads.collector.destinations import NotReportedError, ReportingEndedError
from workloads.collector.errors import ExpiredError, KubernetesError, RefusedError
from workloads.collector.listing import cluster_uid, read_cluster
from workloads.collector.mirror import Mirror
from workloads.collector.trouble_notifier import TroubleNotifier, publish_failure
from workloads.collector.troubles import FailuresInARow
from workloads.collector.usage import UsageReader
from workloads.collector.watching import reflect
from workloads.reporting.reports import Report

if TYPE_CHECKING:
    import datetime as dt
    import threading
    from collections.abc import Callable, Sequence

    from workloads.collector.client import ClusterClient
    from workloads.collector.destinations import Destination
    from workloads.collector.listing import Progress
    from workloads.collector.troubles import Trouble
    from workloads.collector.watching import Reflector
    from workloads.kubernetes.records import WorkloadRecord
    from workloads.reporting.reports import Applied, Place

log = structlog.get_logger("workloads.collector")

_ATTEMPTS: Final = 4
# Seconds in which changes are collected before they are reported.
_GATHER_SECONDS: Final = 1.0
_FIRST_USAGE_SECONDS: Final = 5.0
_JOIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Synced:
    """An applied report: a snapshot (`complete`) or a delta, with its total duration."""

    complete: bool
    applied: Applied
    seconds: float


class Collector:
    """A collector that reads a cluster, or some of its namespaces, and reports the workloads.

    `interval` is the number of seconds between two snapshots, or None for a single snapshot.
    """

    def __init__(
        self,
        client: ClusterClient,
        destination: Destination,
        *,
        progress: Progress,
        interval: int | None = None,
        namespaces: Sequence[str] = (),
    ) -> None:
        self._client, self._destination = client, destination
        self._progress, self._interval = progress, interval
        self._namespaces = namespaces
        self._uid = ""
        self._reflectors: list[Reflector] = []
        self._failures = FailuresInARow("report")

    @property
    def troubles(self) -> list[Trouble]:
        """Return the troubles that prevent a report, after several consecutive failures."""
        found = [reflector.trouble for reflector in self._reflectors]
        return list(filter(None, [*found, self._failures.trouble]))

    def once(self, stop: threading.Event) -> Synced:
        """List the cluster and apply a snapshot. Retry a failed list up to three times.

        Raises:
            KubernetesError: the cluster could not be read. Nothing was changed.
            NotReportedError, ReportingEndedError: the cluster was read, but not reported.
        """
        started = time.monotonic()
        backoff = Backoff()
        attempt = 1
        while True:
            # Read the clock before the lists, so that the newer lists win if two collectors run.
            as_of = timezone.now()
            try:
                self._uid = cluster_uid(self._client)
                records = read_cluster(self._client, as_of, self._progress, self._namespaces)
            except KubernetesError as error:
                final = isinstance(error, RefusedError) and error.is_final
                if final or attempt == _ATTEMPTS or stop.is_set():
                    if not stop.is_set():
                        publish_failure(self._destination, error)
                    raise
                log.warning("list_failed", attempt=attempt, error=str(error))
                attempt += 1
                # If the pages expired, restart the list immediately.
                if not isinstance(error, ExpiredError):
                    stop.wait(backoff.next_pause(error.retry_after))
            except Exception as error:
                publish_failure(self._destination, error)
                raise
            else:
                return self._apply(records, as_of, started)

    def follow(
        self,
        stop: threading.Event,
        reported: Callable[[Synced], None],
        troubled: Callable[[list[Trouble]], None] = lambda _: None,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """Watch the cluster until the stop event. Report deltas, and a snapshot per interval.

        While the mirror is stale, nothing is reported, so that the cluster eventually becomes
        unreachable. `troubled` is called when the troubles change, and `beat` in each round. The
        stop event belongs to this collector, which sets it at the end.

        Raises:
            ReportingEndedError: no later report can succeed.
        """
        mirror = Mirror()
        usage = UsageReader(self._client, self._namespaces, self._interval or 0, stop)
        self._reflectors = reflect(self._client, mirror, stop, self._progress, self._namespaces)
        usage.start()
        try:
            # Otherwise the first report after a restart would contain unknown usage.
            usage.latest(wait=_FIRST_USAGE_SECONDS)
            notifier = TroubleNotifier(self._destination, self._interval or 0, troubled)

            def finish_round() -> None:
                notifier.notify(self.troubles)
                beat()

            self._follow(mirror, usage, stop, reported, finish_round)
        finally:
            stop.set()
            self._client.close()
            until = time.monotonic() + _JOIN_SECONDS
            for thread in (*self._reflectors, usage):
                thread.join(max(0.0, until - time.monotonic()))

    def _follow(
        self,
        mirror: Mirror,
        usage: UsageReader,
        stop: threading.Event,
        reported: Callable[[Synced], None],
        finish_round: Callable[[], None],
    ) -> None:
        # At most half an interval, so that a recovered service receives a report in time.
        backoff = Backoff(most=min(LONGEST, (self._interval or 2 * LONGEST) / 2))
        next_snapshot = 0.0
        while not stop.is_set():
            pause = _GATHER_SECONDS
            try:
                if self._is_current():
                    if mirror.is_refilled or time.monotonic() >= next_snapshot:
                        due = time.monotonic() + (self._interval or 0)
                        synced = self._snapshot(mirror, usage)
                        next_snapshot = due if synced else 0.0
                    else:
                        synced = self._delta(mirror, usage)
                    if synced:
                        reported(synced)
                        backoff.reset()
                        self._failures.clear()
            except ReportingEndedError:
                raise
            except Exception as error:
                # The mirror no longer marks the changes of the lost report, so only a snapshot
                # contains them.
                next_snapshot = 0.0
                pause = backoff.next_pause(getattr(error, "retry_after", 0.0))
                if not isinstance(error, NotReportedError | KubernetesError):
                    log.exception("report_failed_unexpectedly")
                if not stop.is_set():
                    self._failures.add("report_failed", error)
            finish_round()
            stop.wait(pause)

    def _is_current(self) -> bool:
        return all(reflector.is_current for reflector in self._reflectors)

    def _snapshot(self, mirror: Mirror, usage: UsageReader) -> Synced | None:
        started = time.monotonic()
        # Read each time, because the address or the kubeconfig may change to another cluster.
        self._uid = cluster_uid(self._client)
        # The mirror may have become stale during the request.
        if not self._is_current():
            return None
        as_of = timezone.now()
        records = mirror.snapshot(self._client.server_time(as_of), usage.latest())
        return self._apply(records, as_of, started)

    def _delta(self, mirror: Mirror, usage: UsageReader) -> Synced | None:
        started, as_of = time.monotonic(), timezone.now()
        records, deleted = mirror.delta(self._client.server_time(as_of), usage.latest())
        if not records and not deleted:
            return None
        return self._apply(records, as_of, started, deleted)

    def _apply(
        self,
        records: Sequence[WorkloadRecord],
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
        applied = self._destination.apply(report)
        return Synced(report.complete, applied, time.monotonic() - started)
