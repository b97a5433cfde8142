"""How long it is kept what became of workloads, and what removes it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from workloads.models import ReportGap, Transition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

#: How long history is kept, and how many transitions of a workload at most.
KEPT: Final = dt.timedelta(days=90)
MOST_TRANSITIONS: Final = 1000
#: Rows that housekeeping removes in one transaction, and more only if they are of one report.
BATCH: Final = 1000


def remove_old_history(now: dt.datetime) -> Iterator[int]:
    """Remove what ended longer ago than it is kept, and yield how many rows each batch removed.

    It can be stopped at any moment and run again.
    """
    yield from _remove(Transition.objects.filter(at__lt=now - KEPT), "at")
    yield from _remove(ReportGap.objects.filter(ended_at__lt=now - KEPT), "ended_at")


def _remove(old: QuerySet[Any], moment: str) -> Iterator[int]:
    rest = old
    while moments := list(rest.order_by(moment).values_list(moment, flat=True)[:BATCH]):
        yield rest.filter(**{f"{moment}__lte": moments[-1]}).delete()[0]
        # What was deleted stays in the index for a while, and is not walked past again.
        rest = old.filter(**{f"{moment}__gt": moments[-1]})
