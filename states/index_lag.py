"""How far the index of resources is behind the states, without looking at those that are in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from django.db.models import Count, Min
from django.utils import timezone

if TYPE_CHECKING:
    from states.models import StateQuerySet

#: So many states are looked at. Usually a few wait; all of them after an upgrade from a release
#: without an index.
MOST: Final = 10_000


class Lag(NamedTuple):
    """How many states wait to be indexed, and for how long the oldest current version of them."""

    waiting: int
    oldest_seconds: float

    @property
    def is_exact(self) -> bool:
        """Whether all that wait were looked at."""
        return self.waiting <= MOST


def lag_of(states: StateQuerySet) -> Lag:
    """Look at those of the states that wait, one further than ``MOST``; one query."""
    waiting = states.behind().order_by("pk")[: MOST + 1]
    found = waiting.aggregate(count=Count("pk"), oldest=Min("updated_at"))
    oldest = found["oldest"]
    age = max((timezone.now() - oldest).total_seconds(), 0.0) if oldest else 0.0
    return Lag(found["count"], age)
