"""Read a page without OFFSET and COUNT, with a limit on the number of rows read.

A page is read in one of three ways.

1. An index decides every condition and has the order of the list. The page contains the next rows
   of the index, which may belong to another table that refers to the list's rows (``semi_joins``).
2. An index finds at most ``MOST_ROWS`` rows, which are filtered and sorted. If it finds more rows
   for several values, and another index contains the rows of each value in order, the next rows of
   each value are read.
3. Otherwise, at most ``MOST_ROWS`` rows are read in the order of the list and filtered. The page
   may be short or even empty. The next page continues after the rows read.

The cost of any filter is therefore limited, and together, the pages contain all matching rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from django.core.exceptions import EmptyResultSet
from django.db import connections

from infra_service.lib.database.bounded_pages.bounded_tables import (
    Statement,
    forced,
    from_statement,
    rows_of,
    statement_of,
)
from infra_service.lib.database.bounded_pages.conditions import (
    Conditions,
    conditions_of,
    settle,
    weight,
)
from infra_service.lib.database.bounded_pages.indexes import Access, sets, walk
from infra_service.lib.database.bounded_pages.partitions import within_partitions
from infra_service.lib.database.bounded_pages.planning import planned_for_values
from infra_service.lib.database.bounded_pages.semi_joins import (
    SemiJoin,
    each_in_order,
    found_by,
    in_order,
)
from infra_service.lib.database.keyset import beyond, columns_of, position_of
from infra_service.lib.database.snapshot import one_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: The maximum number of rows read for a page. It is lower if a row requires many text searches.
MOST_ROWS: Final = 5_000
_LEAST_ROWS: Final = 1_000
#: The maximum number of index entries read for a page. An entry costs a tenth of a row.
_MOST_ENTRIES: Final = 50_000
_SEARCHES: Final = 10_000
#: Rows in the order of the list are scattered, and the end of the scan is read twice. Their limit
#: is therefore half the limit of an index scan. The limit of single lookups by key is a quarter.
_DEARER_IN_ORDER: Final = 2
_DEARER_BY_KEY: Final = 4


#: A function that reads rows of a queryset: its arguments are the queryset, an order for
#: ``order_by``, and a maximum number of rows.
Reader: TypeAlias = "Callable[[Any, Sequence[str], int], list[Any]]"


class Page(NamedTuple):
    """The rows of a page, and the position of the next page (or None)."""

    rows: list[Any]
    position: list[int | str] | None


class _Request(NamedTuple):
    """A requested page."""

    queryset: Any
    conditions: Conditions
    path: Access
    key: Sequence[str]
    position: Sequence[Any] | None
    size: int
    read: Reader

    def beyond(self, queryset: Any) -> Any:
        """Return the rows of the queryset after the position."""
        if self.position is None:
            return queryset
        return queryset.filter(beyond(self.key, self.position, queryset))

    def page(self, queryset: Any, order: Sequence[str]) -> Page:
        """Read the page, and an additional row to detect the next page."""
        rows = self.read(queryset, order, self.size + 1)
        if len(rows) <= self.size:
            return Page(rows, None)
        columns, _ = columns_of(self.key)
        return Page(rows[: self.size], position_of(rows[self.size - 1], columns))


def instances(queryset: Any, order: Sequence[str], limit: int) -> list[Any]:
    """Read the rows as instances."""
    return list(queryset.order_by(*order)[:limit])


def read_page(
    queryset: Any,
    *,
    key: Sequence[str],
    position: Sequence[Any] | None,
    size: int,
    read: Reader = instances,
) -> Page:
    """Return up to ``size`` rows of the queryset after the position, in the order of the key.

    ``read`` returns the first rows of a queryset in an order, as instances, as dictionaries, or as
    tuples that begin with the columns of the key.

    Raises:
        ValidationError: a value of the position is invalid for its column.
    """
    queryset = _settled(queryset)
    if queryset is None:
        return Page([], None)
    conditions = conditions_of(queryset.query)
    path = walk(queryset.model, conditions, key)
    request = _Request(queryset, conditions, path, key, position, size, read)
    with planned_for_values(queryset):
        try:
            if path.finds_single_row or path.decides_all(conditions):
                return _of_index(request)
            semi_join = in_order(queryset.model, conditions, key)
            if semi_join is not None and semi_join.decides_all(conditions):
                return request.page(semi_join.next_piece(queryset, size + 1, position), key)
            # Between the statements that read the rows and the end of a scan, a deletion would move
            # the end behind rows that were not read.
            with one_snapshot(queryset.db):
                return _bounded(request, semi_join)
        except EmptyResultSet:
            return Page([], None)


def _of_index(request: _Request) -> Page:
    path = request.path
    is_forced = not path.finds_single_row and path.is_to_be_forced(request.queryset.model)
    for first in path.equal[:1] if is_forced else ():
        first.node.children[first.position] = forced(first)
    after = None if request.position is None else (request.key, request.position)
    rows = within_partitions(request.beyond(request.queryset), request.queryset, after)
    return request.page(rows, request.path.order)


def _most_rows(queryset: Any) -> int:
    heavy = weight(queryset.query)
    return max(_LEAST_ROWS, min(MOST_ROWS, _SEARCHES // max(heavy, 1)))


def few_rows(queryset: Any, parts: Sequence[Any], key: Sequence[str]) -> Any:
    """Return a list with several segments, reduced to the few rows that an index finds.

    Return None if there are many rows, if an index decides all conditions of each segment, or if at
    most one segment can match.
    """
    settled = (_settled(queryset.filter(part)) for part in parts)
    possible = (part for part in settled if part is not None)
    first, second = next(possible, None), next(possible, None)
    if second is None or _is_decided(first, key):
        return None
    whole = _settled(queryset)
    try:
        return _few(whole, conditions_of(whole.query), _most_rows(whole))
    except EmptyResultSet:  # on Citus, the first step found no keys
        return whole.none()


def _settled(queryset: Any) -> Any:
    """Return the queryset without redundant conditions, or None if no row can match."""
    queryset = queryset.all()
    if queryset.query.is_empty():
        return None
    try:
        settle(queryset.query)
    except EmptyResultSet:
        return None
    return queryset


def _is_decided(queryset: Any, key: Sequence[str]) -> bool:
    conditions = conditions_of(queryset.query)
    semi_join = in_order(queryset.model, conditions, key)
    ways = (walk(queryset.model, conditions, key), semi_join)
    return any(way is not None and way.decides_all(conditions) for way in ways)


def _bounded(request: _Request, semi_join: SemiJoin | None) -> Page:
    most = _most_rows(request.queryset)
    few = _few(request.queryset, request.conditions, most, request.path.decides)
    if few is not None:
        return request.page(request.beyond(few), request.key)
    if semi_join is not None:
        return _of_named(request, semi_join, max(1, most // max(semi_join.values, _DEARER_BY_KEY)))
    own = each_in_order(request.queryset.model, request.conditions, request.key)
    if own is not None:
        return _of_named(request, own, min(request.size + 1, _MOST_ENTRIES // own.values))
    if weight(request.queryset.query):
        most = max(_LEAST_ROWS, most // _DEARER_IN_ORDER)
    after = None if request.position is None else (request.key, request.position)
    piece = from_statement(
        request.queryset, *statement_of(request.path, request.queryset, most, after=after)
    )
    page = request.page(piece, request.path.order)
    if page.position is not None:
        return page
    # Distinguish the end of the list from the end of the limited table.
    columns, _ = columns_of(request.key)
    last = list(rows_of(request.path, request.queryset, columns, after)[most - 1 : most])
    return page._replace(position=position_of(last[0], columns) if last else None)


def _of_named(request: _Request, semi_join: SemiJoin, most: int) -> Page:
    page = request.page(semi_join.next_piece(request.queryset, most, request.position), request.key)
    if page.position:
        return page
    if len(page.rows) == most:
        columns, _ = columns_of(request.key)
        return page._replace(position=position_of(page.rows[-1], columns))
    last = semi_join.last(most, request.position, request.queryset.db)
    return page._replace(position=last)


def _few(
    queryset: Any, conditions: Conditions, most: int, known: frozenset[int] = frozenset()
) -> Any:
    """Return the queryset reduced to the rows of the cheapest scan, or None if there are many rows.

    A single statement counts the rows of each scan up to ``most``, and only reads the indexes.
    Scans that only decide ``known`` comparisons are excluded.
    """
    accesses = [
        access for access in sets(queryset.model, conditions) if not access.decides <= known
    ]
    unique = next((access for access in accesses if access.finds_single_row), None)
    if unique is not None:
        return _piece(unique, queryset, most)
    ways: list[Access | SemiJoin] = [*accesses, *found_by(conditions)]
    if not ways:
        return None
    statements = [_counted(way, queryset, most + 1) for way in ways]
    counts = [f'(SELECT COUNT(*) FROM ({sql}) "counted")' for sql, _ in statements]  # noqa: S608 - compiled
    values = [value for _, params in statements for value in params]
    with connections[queryset.db].cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(counts)}", values)
        numbers = cursor.fetchone()
    number, way = min(zip(numbers, ways, strict=True), key=lambda pair: pair[0])
    return _piece(way, queryset, most) if number <= most else None


def _counted(way: Access | SemiJoin, queryset: Any, limit: int) -> Statement:
    if isinstance(way, SemiJoin):
        return way.keys(limit)
    return statement_of(way, queryset, limit, [name for name, _ in way.index.columns])


def _piece(way: Access | SemiJoin, queryset: Any, limit: int) -> Any:
    if isinstance(way, SemiJoin):
        return way.piece(queryset, limit)
    # Unordered, so that only matching rows are sorted. Other rows may be wide.
    return from_statement(queryset, *statement_of(replace(way, order=()), queryset, limit))
