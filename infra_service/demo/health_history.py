"""The history of a demo cluster: reports of the last few days, with incidents of workloads."""

from __future__ import annotations

import datetime as dt
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from infra_service.demo.seeded_random import SeededRandom
from workloads.collection import MAX_REPORT_INTERVAL
from workloads.kubernetes.health import HealthStatus
from workloads.reporting.reports import Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workloads.kubernetes.records import WorkloadRecord

_PAST_SEED: Final = 12
_MINUTE, _HOUR, _DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)
_INCIDENTS: Final = 14
#: The interval between incidents. Each incident ends before the next begins.
_TURN: Final = 16 * _HOUR
_LONGEST: Final = 2 * _HOUR
#: The number of workloads that every incident affects, and the maximum share of other workloads.
_FLAPPING, _SHARE = 2, 0.1
#: The weights of the first reasons of an incident, and of the reasons after an escalation.
_BEGINS: Final = {"ReplicasNotReady": 3, "RestartsIncreasing": 2}
_WORSENS: Final = {"CrashLoopBackOff": 3, "ImagePullBackOff": 1, "OOMKilled": 1}
_GAP_BEFORE, _GAP = 3 * _DAY, 7 * _HOUR


def report_at(
    moment: dt.datetime,
    records: Sequence[WorkloadRecord],
    *,
    complete: bool = False,
    interval: int = MAX_REPORT_INTERVAL,
) -> Report:
    """Return a report of changed workloads, or of all workloads if ``complete``."""
    return Report(reported_at=moment, complete=complete, records=records, interval_seconds=interval)


def past_reports(
    number: int, records: Sequence[WorkloadRecord], now: dt.datetime, *, has_gap: bool
) -> list[Report]:
    """Return the past reports of a cluster, which lead to the workloads in ``records``."""
    rng, began = SeededRandom(_PAST_SEED, number), now - _INCIDENTS * _TURN
    healthy = [_with(one, HealthStatus.HEALTHY, "") for one in records]
    reports = [report_at(began, healthy, complete=True)]
    for turn in range(_INCIDENTS - 1):
        reports += _incident(rng, began + (turn + rng.uniform(0.1, 0.8)) * _TURN, healthy)
    if has_gap:
        gap_start, gap_end = now - _GAP_BEFORE, now - _GAP_BEFORE + _GAP
        # Omit reports around the gap, so that no incident overlaps the gap.
        reports = [
            r for r in reports if not gap_start - _LONGEST < r.reported_at < gap_end + _LONGEST
        ]
        reports += [report_at(gap_start, [], interval=_HOUR.seconds), report_at(gap_end, [])]
    reports.append(report_at(now - 20 * _MINUTE, records, complete=True))
    return sorted(reports, key=attrgetter("reported_at"))


def _incident(
    rng: SeededRandom, began: dt.datetime, healthy: Sequence[WorkloadRecord]
) -> Iterator[Report]:
    """Yield the reports of an incident: degraded, partly in error, healthy again."""
    count = int(rng.random() * _SHARE * len(healthy))
    affected = [*healthy[:_FLAPPING], *rng.sample(healthy[_FLAPPING:], count)]
    reason, worse = rng.pick(_BEGINS), rng.pick(_WORSENS)
    yield report_at(began, [_with(one, HealthStatus.DEGRADED, reason) for one in affected])
    began += rng.uniform(2, 10) * _MINUTE
    yield report_at(began, [_with(one, HealthStatus.ERROR, worse) for one in affected[::2]])
    yield report_at(began + rng.uniform(10, 110) * _MINUTE, affected)


def _with(record: WorkloadRecord, health: HealthStatus, reason: str) -> WorkloadRecord:
    return replace(record, health_status=health, status_reason=reason)
