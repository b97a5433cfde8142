"""The share of time in which a workload was healthy, relative to the observed time.

The health of a workload is known from its first to its last report, except in gaps between
reports and while the workload did not exist. The ratio ignores the time in which the health was
unknown.
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

#: The maximum number of gaps evaluated, the newest first. The time before counts as unknown.
MOST_GAPS: Final = 1000


class Span(NamedTuple):
    """A period with the same health."""

    status: str
    start: dt.datetime
    end: dt.datetime


class Gap(NamedTuple):
    """A period without reports."""

    start: dt.datetime
    end: dt.datetime


@dataclass(frozen=True, slots=True)
class Availability:
    """The time that a workload spent in each health during a period."""

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
        """Return the healthy share of the time with a known health, or None without such time."""
        judged = self.healthy + self.degraded + self.error
        return self.healthy / judged if judged else None


def availability(spans: Iterable[Span], since: dt.datetime, until: dt.datetime) -> Availability:
    """Return the time in each health. ``spans`` come from ``known_spans`` for the same period."""
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
    """Return the spans of known health of a workload between two times, even if it is deleted.

    ``cluster`` comes from ``timed()``. The spans end at the cluster's last report.

    Raises:
        WorkloadNotFound: the cluster has neither the workload nor its history.
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
    # The service deletes older gaps. Without this bound, their time would count as known.
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
    """Yield the spans between two times in order, without the gaps. ``gaps`` are ordered."""
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
