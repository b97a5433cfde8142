"""Retention of transitions and report gaps."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from infra_service.lib.database.batches import remove_in_batches
from workloads.models import ReportGap, Transition

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The retention period, and the maximum number of transitions per workload.
KEPT: Final = dt.timedelta(days=90)
MOST_TRANSITIONS: Final = 1000


def remove_old_history(now: dt.datetime) -> Iterator[int]:
    """Delete history older than its retention period, and yield the row count of each batch."""
    yield from remove_in_batches(Transition.objects.filter(at__lt=now - KEPT), "at")
    yield from remove_in_batches(ReportGap.objects.filter(ended_at__lt=now - KEPT), "ended_at")
