"""The share of time in which a workload was healthy, relative to the observed time.

The health of a workload is known at reports, and between two reports that are close enough. It is
unknown before its history begins, in gaps between reports, after the last report, and while the
workload did not exist. Unknown time counts neither as healthy nor as unhealthy.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import DateTimeField, Value

from workloads.cluster_health import seen_until
from workloads.history import KEPT
from workloads.kubernetes.health import HealthStatus
from workloads.models import ReportGap, Transition, Workload
from workloads.reporting.errors import WorkloadNotFound

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, Sequence

    from workloads.models import Cluster

#: The newest gaps that are evaluated; earlier time counts as unknown.
MOST_GAPS: Final = 1000


class Span(NamedTuple):
    """A health during a period."""

    status: str
    start: dt.datetime
    end: dt.datetime


class Gap(NamedTuple):
    """A period without reports."""

    start: dt.datetime
    end: dt.datetime


@dataclass(frozen=True, slots=True)
class Availability:
    """The durations of each health of a workload, between two times."""

    since: dt.datetime
    until: dt.datetime
    healthy: dt.timedelta
    degraded: dt.timedelta
    error: dt.timedelta
    unspecified: dt.timedelta

    @property
    def unobserved(self) -> dt.timedelta:
        """Return the duration without an observation."""
        known = self.healthy + self.degraded + self.error + self.unspecified
        return self.until - self.since - known

    @property
    def healthy_ratio(self) -> float | None:
        """Return the share of healthy time in the time with a known health, 0 to 1, or None."""
        judged = self.healthy + self.degraded + self.error
        return self.healthy / judged if judged else None


def availability(spans: Iterable[Span], since: dt.datetime, until: dt.datetime) -> Availability:
    """Add up the spans of ``known_spans`` for the same period."""
    durations = dict.fromkeys(HealthStatus, dt.timedelta())
    for status, start, end in spans:
        durations[HealthStatus(status)] += end - start
    return Availability(
        since,
        until,
        healthy=durations[HealthStatus.HEALTHY],
        degraded=durations[HealthStatus.DEGRADED],
        error=durations[HealthStatus.ERROR],
        unspecified=durations[HealthStatus.UNSPECIFIED],
    )


def known_spans(
    cluster: Cluster, workload_id: uuid.UUID, since: dt.datetime, until: dt.datetime
) -> list[Span]:
    """Return the known spans of a workload between two times, even of a deleted workload.

    ``cluster`` was read by ``timed()`` beforehand; the spans end at its last report.

    Raises:
        WorkloadNotFound: the cluster has no such workload, and no history of it.
    """
    before = Transition.objects.filter(workload_id=workload_id, cluster_id=cluster.pk)
    still = Value(None, DateTimeField())
    now = Workload.objects.filter(pk=workload_id, cluster=cluster)
    # A single statement, so that no report is applied in between.
    found: list[Any] = list(
        before.values_list("from_health_status", "since", "at").union(
            now.values_list("health_status", "health_since", still), all=True
        )
    )
    if not found:
        raise WorkloadNotFound
    seen = seen_until(cluster) or since
    # Older gaps are deleted; without this bound, their time would count as known.
    since = max(since, cluster.read_at - KEPT)
    spans = [Span(status, start, end or seen) for status, start, end in found if start is not None]
    return list(cut(spans, _gaps(cluster, since, until), since, min(until, seen)))


def _gaps(cluster: Cluster, since: dt.datetime, until: dt.datetime) -> list[Gap]:
    """Return the gaps of a period, in order of time."""
    gaps = ReportGap.objects.filter(cluster_id=cluster.pk, ended_at__gt=since, began_at__lt=until)
    rows = gaps.order_by("-ended_at").values_list("began_at", "ended_at")[: MOST_GAPS + 1]
    newest = [Gap(*row) for row in rows]
    if len(newest) > MOST_GAPS:
        newest[MOST_GAPS] = Gap(since, newest[MOST_GAPS].end)
    return newest[::-1]


def cut(
    spans: Iterable[Span], gaps: Sequence[Gap], since: dt.datetime, until: dt.datetime
) -> Iterator[Span]:
    """Yield the spans between two times in order, without the gaps, which are ordered too."""
    covered, number = since, 0
    for status, begin, finish in sorted(spans, key=lambda span: span.start):
        # Spans overlap if the database's clock was set back; no moment counts twice.
        start, end = max(begin, covered), min(finish, until)
        covered = max(covered, end)
        while start < end:
            while number < len(gaps) and gaps[number].end <= start:
                number += 1
            gap = gaps[number] if number < len(gaps) else Gap(end, end)
            if gap.start > start:
                yield Span(status, start, min(gap.start, end))
            start = gap.end if gap.start < end else end
