"""The share of healthy time, against a plain simulation of second by second."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.workloads.conftest import NewWorkload
from tests.workloads.records import apply, at, place, record, report, stored
from workloads import availability as module
from workloads.availability import Availability, Gap, Span, availability, cut, known_spans
from workloads.history import KEPT
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster, ReportGap, Transition, Workload

DAY = dt.timedelta(days=1)
HEALTHY, DEGRADED, ERROR = HealthStatus.HEALTHY, HealthStatus.DEGRADED, HealthStatus.ERROR
MOMENTS = st.integers(0, 60)


def share(cluster: Cluster, workload_id: Any, since: float, until: float) -> Availability:
    read = Cluster.objects.timed().get(pk=cluster.pk)
    spans = known_spans(read, workload_id, at(since), at(until))
    return availability(spans, at(since), at(until))


def numbers(found: Availability) -> dict[str, float]:
    names = ("healthy", "degraded", "error", "unspecified", "unobserved")
    seconds_by_name = {name: getattr(found, name).total_seconds() for name in names}
    return {name: seconds for name, seconds in seconds_by_name.items() if seconds}


@given(
    st.lists(st.tuples(st.sampled_from(HealthStatus), MOMENTS, MOMENTS), max_size=8),
    st.lists(MOMENTS, max_size=8, unique=True).map(sorted),
    MOMENTS,
    MOMENTS,
)
def test_spans_are_cut_at_gaps_and_limits(
    parts: list[tuple[HealthStatus, int, int]], edges: list[int], since: int, until: int
) -> None:
    gaps = [Gap(at(a), at(b)) for a, b in zip(edges[::2], edges[1::2], strict=False)]
    spans = [Span(status, at(start), at(end)) for status, start, end in parts]

    found = list(cut(spans, gaps, at(since), at(until)))

    # Each second belongs to the first span that reaches it.
    expected: dict[int, str] = {}
    reached = since
    for status, start, end in sorted(spans, key=lambda span: span.start):
        for second in range(since, until):
            in_gap = any(gap.start <= at(second) < gap.end for gap in gaps)
            if start <= at(second) < end and second >= reached and not in_gap:
                expected[second] = status
        reached = max(reached, min(int((end - at(0)).total_seconds()), until))
    got = {
        int((span.start - at(0)).total_seconds()) + n: span.status
        for span in found
        for n in range(int((span.end - span.start).total_seconds()))
    }
    assert got == expected
    assert sum(((s.end - s.start).total_seconds() for s in found), 0.0) == len(expected)


# The time from the last report to the next, and the health in it.
REPORTS = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from([HEALTHY, HEALTHY, DEGRADED, ERROR, None])),
    min_size=1,
    max_size=9,
)


@given(REPORTS, st.integers(-3, 40), st.integers(1, 50), st.booleans())
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_reports_of_all_kinds_are_counted(
    db: None,
    reports: list[tuple[int, HealthStatus | None]],
    since: int,
    length: int,
    complete: bool,
) -> None:
    """A gap is more than three intervals, here of 2 s, between two reports."""
    cluster = Cluster.objects.create(name=f"c-{Cluster.objects.count()}", report_interval_seconds=2)
    known: dict[Any, dict[int, HealthStatus]] = {}
    now, was, workload_id = 0, None, None
    for pause, health in reports:
        if was is not None and pause <= 6:
            known[workload_id].update(dict.fromkeys(range(now, now + pause), was))
        now += pause
        records = [] if health is None else [record(health_status=health)]
        gone = frozenset() if complete or health else frozenset({place()})
        apply(cluster, report(now, *records, complete=complete, deleted=gone))
        was = health
        row = stored(cluster).get(place())
        workload_id = row.pk if row else workload_id
        if workload_id is not None:
            known.setdefault(workload_id, {})

    for key, seconds in known.items():
        found = share(cluster, key, since, since + length)
        inside = [status for second, status in seconds.items() if since <= second < since + length]
        assert found.healthy.total_seconds() == inside.count(HEALTHY)
        assert found.degraded.total_seconds() == inside.count(DEGRADED)
        assert found.error.total_seconds() == inside.count(ERROR)
        assert found.unobserved.total_seconds() == length - len(inside)
        if inside:
            assert found.healthy_ratio == inside.count(HEALTHY) / len(inside)
        else:
            assert found.healthy_ratio is None


def test_gap_of_a_restarted_collector_is_unobserved(cluster: Cluster) -> None:
    """Within three intervals nothing is missed; after that nothing is made up."""
    for second in (0, 60, 120, 290):
        apply(cluster, report(second, record()))
    apply(cluster, report(1000, record(health_status=ERROR)))
    apply(cluster, report(1100, record(health_status=ERROR)))
    key = stored(cluster)[place()].pk

    assert numbers(share(cluster, key, 0, 1200)) == {
        "healthy": 290, "error": 100, "unobserved": 710 + 100,
    }  # fmt: skip
    assert share(cluster, key, 0, 1200).healthy_ratio == 290 / 390
    assert share(cluster, key, 300, 900).healthy_ratio is None


def test_unspecified_health_does_not_change_the_ratio(cluster: Cluster) -> None:
    apply(cluster, report(0, record(health_status=HealthStatus.UNSPECIFIED)))
    apply(cluster, report(60, record()))
    apply(cluster, report(90, record()))
    found = share(cluster, stored(cluster)[place()].pk, 0, 90)

    assert numbers(found) == {"unspecified": 60, "healthy": 30}
    assert found.healthy_ratio == 1


def test_pruned_history_stays_complete(cluster: Cluster) -> None:
    for second in range(0, 300, 60):
        health = HEALTHY if second % 120 else ERROR
        apply(cluster, report(second, record(health_status=health)))
    key = stored(cluster)[place()].pk
    Transition.objects.filter(at__lt=at(180)).delete()

    # The row of 180 s has the health from 120 s on, and the workload's row the current health.
    assert numbers(share(cluster, key, 0, 240)) == {"error": 60, "healthy": 60, "unobserved": 120}
    Transition.objects.all().delete()
    assert numbers(share(cluster, key, 0, 240)) == {"unobserved": 240}


def test_time_before_the_retention_of_gaps_is_unobserved(
    cluster: Cluster, workload: NewWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share does not count a workload as healthy in a gap that was removed."""
    monkeypatch.setattr(module, "KEPT", KEPT)
    now = timezone.now()
    one = workload(health_since=now - 200 * DAY)
    Cluster.objects.update(last_report_at=now, last_received_at=now)

    def days(since: float, until: float) -> tuple[float, float]:
        moments = ((now - ago * DAY - at(0)).total_seconds() for ago in (since, until))
        found = share(cluster, one.pk, *moments)
        return round(found.healthy / DAY, 2), round(found.unobserved / DAY, 2)

    assert days(120, 100) == (0, 20)
    assert days(120, 60) == (30, 30)
    assert days(80, 0) == (80, 0)


def test_gaps_beyond_the_limit(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_GAPS", 2)
    apply(cluster, report(0, record()))
    apply(cluster, report(100, record()))
    key = stored(cluster)[place()].pk
    for began in (10, 30, 50):
        gap = {"began_at": at(began), "ended_at": at(began + 5)}
        ReportGap.objects.create(cluster_id=cluster.pk, **gap)

    assert numbers(share(cluster, key, 0, 100)) == {"healthy": 75, "unobserved": 25}
    assert numbers(share(cluster, key, 36, 100)) == {"healthy": 59, "unobserved": 5}


def test_cluster_without_reports_is_unobserved(cluster: Cluster, workload: Any) -> None:
    one: Workload = workload(health_since=at(0))

    assert numbers(share(cluster, one.pk, 0, 100)) == {"unobserved": 100}
    assert dt.timedelta() == share(cluster, one.pk, 0, 100).healthy
