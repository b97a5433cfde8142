"""The health history of demo workloads over the last days."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from infra_service.demo.seeded_random import Chance
from workloads.kubernetes.health import HealthStatus
from workloads.models import ReportGap, Transition

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from workloads.models import Workload

_PAST: Final = 12
_MINUTE, _HOUR, _DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)
#: Days with incidents, and weights for the incidents per workload: most have 0, a few flap.
_DAYS: Final = 10
_LONGEST: Final = 3 * _HOUR
_TROUBLES: Final = {0: 60, 1: 20, 2: 10, 4: 7, 40: 3}
#: Weights for the first reason of an incident, and for the reason it escalates to.
_BEGINS: Final = {"ReplicasNotReady": 3, "RestartsIncreasing": 2}
_WORSENS: Final = {"": 5, "CrashLoopBackOff": 3, "ImagePullBackOff": 1, "OOMKilled": 1}

# A health status and its reason.
_Health = tuple[str, str]
_HEALTHY: Final = (HealthStatus.HEALTHY.value, "")


def report_gap_of(cluster_id: uuid.UUID, now: dt.datetime) -> ReportGap:
    """Return a gap of some hours in the reports of a cluster."""
    return ReportGap(
        cluster_id=cluster_id, began_at=now - 3 * _DAY, ended_at=now - 3 * _DAY + 7 * _HOUR
    )


def past_of(workload: Workload, gap: ReportGap | None, now: dt.datetime) -> Iterator[Transition]:
    """Yield the transitions of a workload, and set the time of its current health."""
    chance = Chance(_PAST, workload.pk.int % 2**40)
    changes = [(now - chance.uniform(_DAYS, 80) * _DAY, _HEALTHY)]
    for moment, health in _changes(chance, now):
        # Changes in the gap were not observed, nor the end of an incident that began just before
        # it.
        is_seen = gap is None or not gap.began_at - _LONGEST < moment <= gap.ended_at
        if is_seen and moment > changes[-1][0] and health != changes[-1][1]:
            changes.append((moment, health))
    is_now = (workload.health_status, workload.status_reason)
    if is_now != changes[-1][1]:
        changes.append((now - chance.uniform(10, 200) * _MINUTE, is_now))
    since: dt.datetime | None = None
    before: str | None = None
    for number, (moment, (status, reason)) in enumerate(changes, 1):
        yield Transition(
            workload_id=workload.pk, number=number, cluster_id=workload.cluster_id, since=since,
            at=moment, received_at=moment, from_health_status=before, to_health_status=status,
            status_reason=reason,
        )  # fmt: skip
        since, before = moment, status
    workload.health_since = changes[-1][0]


def _changes(chance: Chance, now: dt.datetime) -> Iterator[tuple[dt.datetime, _Health]]:
    """Yield the times and health of incidents: degraded, perhaps in error, healthy again."""
    count = chance.pick(_TROUBLES)
    for moment in sorted(now - chance.uniform(0.5, _DAYS) * _DAY for _ in range(count)):
        yield moment, (HealthStatus.DEGRADED.value, chance.pick(_BEGINS))
        worse = chance.pick(_WORSENS)
        if worse:
            yield moment + chance.uniform(2, 10) * _MINUTE, (HealthStatus.ERROR.value, worse)
        yield moment + chance.uniform(10, 120) * _MINUTE, _HEALTHY
