"""Retention of transitions and report gaps."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from workloads.models import ReportGap, Transition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

#: The retention period, and the maximum number of transitions per workload.
KEPT: Final = dt.timedelta(days=90)
MOST_TRANSITIONS: Final = 1000
#: Rows deleted per transaction. A batch may be larger, because it includes all rows with its last
#: time.
BATCH: Final = 1000


def remove_old_history(now: dt.datetime) -> Iterator[int]:
    """Delete history older than its retention period, and yield the row count of each batch.

    The deletion can be interrupted and repeated at any time.
    """
    yield from remove_in_batches(Transition.objects.filter(at__lt=now - KEPT), "at")
    yield from remove_in_batches(ReportGap.objects.filter(ended_at__lt=now - KEPT), "ended_at")


def remove_in_batches(old: QuerySet[Any], moment: str) -> Iterator[int]:
    """Delete rows in the order of this indexed column, and yield the size of each batch."""
    rest = old
    while moments := list(rest.order_by(moment).values_list(moment, flat=True)[:BATCH]):
        yield rest.filter(**{f"{moment}__lte": moments[-1]}).delete()[0]
        # Deleted rows stay in the index for a while. Do not scan them again.
        rest = old.filter(**{f"{moment}__gt": moments[-1]})
