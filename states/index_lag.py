"""The lag of the resource index, computed without reading indexed states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from django.db.models import Count, Min
from django.utils import timezone

if TYPE_CHECKING:
    from states.models import StateQuerySet

#: Maximum states to count. Usually a few states wait, but all states wait after an upgrade from a
#: release without an index.
MOST: Final = 10_000


class Lag(NamedTuple):
    """The number of states waiting for the index, and the age of their oldest current version.

    ``waiting`` is at most ``MOST``. ``is_exact`` is true if all waiting states were counted.
    """

    waiting: int
    is_exact: bool
    oldest_seconds: float


def lag_of(states: StateQuerySet) -> Lag:
    """Return the lag of the states, reading at most ``MOST`` + 1 rows in a single query."""
    waiting = states.behind().order_by("pk")[: MOST + 1]
    found = waiting.aggregate(count=Count("pk"), oldest=Min("updated_at"))
    oldest = found["oldest"]
    age = max((timezone.now() - oldest).total_seconds(), 0.0) if oldest else 0.0
    return Lag(min(found["count"], MOST), found["count"] <= MOST, age)
