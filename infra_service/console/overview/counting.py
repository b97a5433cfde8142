"""Approximate totals, without counting large tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db import connection

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

#: Up to here rows are counted, beyond it says "about" and asks PostgreSQL's statistics.
EXACT: Final = 10_000
#: Of what needs attention so many are counted.
MOST: Final = 1_000


class Number(NamedTuple):
    """How many there are, or that there are more than that."""

    value: int
    is_more: bool = False

    def __str__(self) -> str:
        return f"{self.value:,}{'+' if self.is_more else ''}"


def up_to(most: int, counted: int) -> Number:
    """Return the number of what was counted one further than to the bound."""
    return Number(min(counted, most), counted > most)


def number_of(queryset: QuerySet[Any]) -> Number:
    """Count the rows, no further than to the bound."""
    return up_to(MOST, queryset.order_by()[: MOST + 1].count())


def about_how_many(model: type[Model]) -> tuple[int, bool]:
    """Return how many rows the table has, and whether that is exact.

    Counting a million takes 70 ms, so PostgreSQL is asked what its statistics say.
    """
    rows = model._default_manager.order_by()[: EXACT + 1].count()
    if rows <= EXACT or connection.vendor != "postgresql":
        return (rows, True) if rows <= EXACT else (model._default_manager.count(), True)
    with connection.cursor() as cursor:
        table = model._meta.db_table
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [table])
        (estimate,) = cursor.fetchone()
    return max(estimate, rows), False
