"""Limit the ids of a page, so that PostgreSQL only reads partitions that may contain its rows.

A model with monthly partitions names the column with the time of its ids in ``time_of_id``. The
limits are the beginnings of months. All rows of a partition that is read satisfy the limits, so the
limits do not affect the choice of an index.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.models import lookups

from infra_service.lib.database.bounded_pages.conditions import Comparison, Kind, conditions_of
from infra_service.lib.database.keyset import columns_of, converted
from infra_service.lib.database.months import highest_id, lowest_id

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOWER = (lookups.GreaterThan, lookups.GreaterThanOrEqual)


def within_partitions(
    rows: Any, queryset: Any, after: tuple[Sequence[str], Sequence[Any]] | None
) -> Any:
    """Return the rows, with limits on their ids that exclude no row of the queryset.

    ``after`` is a page key and the position after which the rows begin.
    """
    column = getattr(queryset.model, "time_of_id", None)
    if column is None or connections[queryset.db].vendor != "postgresql":
        return rows
    since: list[dt.datetime] = []
    until: list[dt.datetime] = []
    for comparison in conditions_of(queryset.query).comparisons:
        if comparison.column == column:
            low, high = _limits(comparison)
            since += low
            until += high
    if after is not None:
        (first, *_), is_descending = columns_of(after[0])
        if first == column:
            moment = converted(queryset.model._meta.get_field(column), after[1][0])
            (until if is_descending else since).append(moment)
    if since:
        rows = rows.filter(pk__gte=lowest_id(max(since)))
    if until:
        rows = rows.filter(pk__lt=highest_id(min(until)))
    return rows


def _limits(comparison: Comparison) -> tuple[list[dt.datetime], list[dt.datetime]]:
    """Return the earliest and the latest time that satisfy a comparison, if they are known.

    Comparisons with null have no time.
    """
    value: Any = comparison.lookup.rhs
    if comparison.kind is Kind.IN:
        return [min(value)], [max(value)]
    if isinstance(comparison.lookup, lookups.Range):
        return [value[0]], [value[1]]
    if not isinstance(value, dt.datetime):
        return [], []
    if comparison.kind is Kind.EQUAL:
        return [value], [value]
    return ([value], []) if isinstance(comparison.lookup, _LOWER) else ([], [value])
