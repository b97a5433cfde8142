"""Approximate totals, without counting large tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

#: The largest exact count. PostgreSQL's statistics provide an estimate of larger counts.
EXACT: Final = 10_000
#: The largest exact count of objects that need attention.
MOST: Final = 1_000
#: The maximum number of objects that the overview shows for each finding.
SHOWN: Final = 5


class Number(NamedTuple):
    """A count, or a lower bound if ``is_more``."""

    value: int
    is_more: bool = False

    def __str__(self) -> str:
        return f"{self.value:,}{'+' if self.is_more else ''}"


def up_to(most: int, counted: int) -> Number:
    """Return the number for ``counted``, a count that was limited to ``most + 1``."""
    return Number(min(counted, most), counted > most)


def total_of(numbers: Sequence[Number]) -> Number:
    """Return the sum, which is a lower bound if a number is a lower bound."""
    return Number(sum(n.value for n in numbers), is_more=any(n.is_more for n in numbers))


def number_of(queryset: QuerySet[Any]) -> Number:
    """Count the rows up to ``MOST``."""
    return up_to(MOST, queryset.order_by()[: MOST + 1].count())


def about_how_many(queryset: QuerySet[Any], index: str) -> tuple[int, bool]:
    """Return the number of rows, and whether the number is exact.

    Counting a million rows takes 70 ms, so PostgreSQL's statistics of the partial index of these
    rows provide large numbers.
    """
    rows = queryset.order_by()[: EXACT + 1].count()
    if rows <= EXACT or connection.vendor != "postgresql":
        return (rows, True) if rows <= EXACT else (queryset.count(), True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [index])
        (estimate,) = cursor.fetchone()
    return max(estimate, rows), False
