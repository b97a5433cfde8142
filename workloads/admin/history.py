"""The history section of a workload's page: health in recent days, and transitions."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from typing import TYPE_CHECKING, Any, Final

from infra_service.lib.admin.templatetags.charts import shares
from workloads.admin.figures import mark
from workloads.availability import availability, known_spans
from workloads.kubernetes.health import HealthStatus
from workloads.models import Transition
from workloads.signs import sign, word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from workloads.availability import Availability, Span
    from workloads.models import Cluster, Workload

#: The maximum number of transitions on the page of a workload.
SHOWN: Final = 20
_DAYS: Final = 7
_CELL: Final = dt.timedelta(hours=2)
_CELLS: Final = 12 * _DAYS
_UNOBSERVED: Final = ""
# From best to worst. A cell shows its worst status, so that short failures stay visible.
_RISING: Final = (
    _UNOBSERVED, HealthStatus.HEALTHY, HealthStatus.UNSPECIFIED, HealthStatus.DEGRADED,
    HealthStatus.ERROR,
)  # fmt: skip


def history_of(workload: Workload, cluster: Cluster) -> dict[str, Any]:
    """Return the context of the history section. ``cluster`` comes from ``timed()``."""
    until = cluster.read_at
    since = until - _CELLS * _CELL
    spans = known_spans(cluster, workload.pk, since, until)
    newest = Transition.objects.filter(workload_id=workload.pk).order_by("-number")
    rows = list(newest[: SHOWN + 1])
    return {
        "strip": _strip(spans, since),
        "share": _share(availability(spans, since, until)),
        "transitions": [
            {
                "at": row.at,
                "before": _shown(row.from_health_status, "Did not exist"),
                "after": _shown(row.to_health_status, "Gone"),
                "reason": row.status_reason,
            }
            for row in rows[:SHOWN]
        ],
        "older": len(rows) > SHOWN,
    }


def _strip(spans: Iterable[Span], since: dt.datetime) -> str:
    """Return a bar of the period, in which each cell of two hours shows its worst health."""
    parts, start = [], since
    for status, cells in itertools.groupby(_cells(spans, since)):
        length = sum(1 for _ in cells) * _CELL
        named = word(status) if status else "Not observed"
        label = f"{named} from {start:%d %b %H:%M} UTC"
        parts.append((sign(status), label, length // dt.timedelta(hours=1)))
        start += length
    return shares("history", parts, f"Health in the last {_DAYS} days", unit="h")


def _cells(spans: Iterable[Span], since: dt.datetime) -> Iterator[str]:
    worst = [0] * _CELLS
    for status, start, end in spans:
        rank = _RISING.index(HealthStatus(status))
        for cell in range((start - since) // _CELL, math.ceil((end - since) / _CELL)):
            worst[cell] = max(worst[cell], rank)
    return (str(_RISING[rank]) for rank in worst)


def _share(found: Availability) -> str:
    """Return the share of healthy time as text, rounded down: 100 % means no unhealthy time."""
    if found.healthy_ratio is None:
        return f"No health was reported in the last {_DAYS} days."
    text = f"Healthy for {math.floor(found.healthy_ratio * 10_000) / 100:g} %"
    missing = found.unobserved // dt.timedelta(hours=1)
    unseen = f"; {missing} h were not observed" if missing else ""
    return f"{text} of the observed time in the last {_DAYS} days{unseen}."


def _shown(status: str | None, absent: str) -> str:
    return absent if status is None else mark(status)
