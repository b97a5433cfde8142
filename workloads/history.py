"""Retention of transitions and report gaps."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from workloads.models import ReportGap, Transition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

#: The retention in days, and the maximum number of transitions per workload.
KEPT: Final = dt.timedelta(days=90)
MOST_TRANSITIONS: Final = 1000
#: Rows per transaction of housekeeping; more only if a single report wrote them.
BATCH: Final = 1000


def remove_old_history(now: dt.datetime) -> Iterator[int]:
    """Delete history beyond its retention; yield the number of rows of each batch.

    The run can be stopped at any time and repeated.
    """
    yield from remove_in_batches(Transition.objects.filter(at__lt=now - KEPT), "at")
    yield from remove_in_batches(ReportGap.objects.filter(ended_at__lt=now - KEPT), "ended_at")


def remove_in_batches(old: QuerySet[Any], moment: str) -> Iterator[int]:
    """Delete the rows in the order of this indexed column; yield the size of each batch."""
    rest = old
    while moments := list(rest.order_by(moment).values_list(moment, flat=True)[:BATCH]):
        yield rest.filter(**{f"{moment}__lte": moments[-1]}).delete()[0]
        # Deleted rows stay in the index for a while; do not scan them again.
        rest = old.filter(**{f"{moment}__gt": moments[-1]})
