"""Read a list in segments: consecutive parts, each ordered by an index.

Together, the segments provide orders that a single index cannot, such as nulls last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.exceptions import EmptyResultSet, ValidationError
from django.db.models import Case, Q, Value, When

from infra_service.lib.database.bounded_pages.planning import planned_for_values
from infra_service.lib.database.bounded_pages.reading import few_rows, instances, read_page
from infra_service.lib.database.keyset import beyond, columns_of, position_of, reversed_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from infra_service.lib.database.bounded_pages.reading import Reader


class Segment(NamedTuple):
    """Rows that match a condition, in the order of a key.

    The conditions of a list's segments are disjoint.
    """

    condition: Q
    key: Sequence[str]


class SegmentPage(NamedTuple):
    """Rows in the order of reading, with the positions of their start and end.

    ``start`` is None without rows, and ``end`` is None at the end of the list. A position consists
    of the number of a segment and a position within the segment.
    """

    rows: list[Any]
    start: Sequence[int | str] | None
    end: Sequence[int | str] | None


def with_nulls_last(model: Any, key: Sequence[str]) -> Sequence[Segment]:
    """Return segments in the order of the key, with nulls in its first column last.

    Nulls are last in both directions, on all databases.
    """
    first = key[0].removeprefix("-")
    if not model._meta.get_field(first).null:
        return [Segment(Q(), key)]
    return [
        Segment(Q((f"{first}__isnull", False)), key),
        Segment(Q((f"{first}__isnull", True)), key[1:]),
    ]


def read_segments(
    queryset: Any,
    *,
    segments: Sequence[Segment],
    position: Sequence[Any] | None,
    size: int,
    backwards: bool = False,
    reader_of: Callable[[Segment], Reader] = lambda _segment: instances,
) -> SegmentPage:
    """Return up to ``size`` rows after the position, or before the position if ``backwards``.

    ``reader_of`` returns the reader of a segment (see ``read_page``).

    Raises:
        ValidationError: the position is invalid.
    """
    number, *within = position or (0,)
    if not isinstance(number, int) or not 0 <= number < len(segments):
        raise ValidationError("not a segment of the list")
    if within and len(within) != len(segments[number].key):
        raise ValidationError("not a position in the segment")
    with planned_for_values(queryset):
        read = reader_of(segments[0])
        few = _read_few(queryset, segments, position, size, backwards=backwards, read=read)
    if few is not None:
        return few
    found: list[tuple[int, Any]] = []
    for at in range(number, -1, -1) if backwards else range(number, len(segments)):
        condition, key = segments[at]
        wanted = size - len(found)
        page = read_page(
            queryset.filter(condition),
            key=reversed_key(key) if backwards else key,
            position=within or None,
            size=wanted or 1,
            read=reader_of(segments[at]),
        )
        within = []
        if not wanted:
            # The page is full. This only detects the next page.
            if page.rows or page.position is not None:
                return _segment_page(segments, found, _position_in(segments, *found[-1]))
            continue
        found += [(at, row) for row in page.rows]
        if page.position is not None:
            return _segment_page(segments, found, [at, *page.position])
    return _segment_page(segments, found, None)


def ranked_by(segments: Sequence[Segment]) -> str | None:
    """Return the column that distinguishes the segments, if all have the same order, or None."""
    columns = {name for segment in segments for name, _ in _equalities(segment)}
    plain = all(len(_equalities(segment)) == 1 for segment in segments)
    same = all(segment.key == segments[0].key for segment in segments)
    return columns.pop() if plain and same and len(columns) == 1 else None


def _equalities(segment: Segment) -> list[tuple[str, Any]]:
    condition = segment.condition
    return [] if condition.negated else [c for c in condition.children if isinstance(c, tuple)]


def _read_few(
    queryset: Any,
    segments: Sequence[Segment],
    position: Sequence[Any] | None,
    size: int,
    *,
    backwards: bool,
    read: Reader,
) -> SegmentPage | None:
    """Read all segments together if an index finds few rows, or return None.

    This requires one statement to count the rows and one to read them, instead of at least two
    statements per segment.
    """
    column = ranked_by(segments)
    if column is None:
        return None
    few = few_rows(queryset, [segment.condition for segment in segments], segments[0].key)
    if few is None:
        return None
    values = [_equalities(segment)[0][1] for segment in segments]
    key = segments[0].key
    rank: Any = Case(*(When(**{column: v}, then=Value(n)) for n, v in enumerate(values)))
    if backwards:
        key, rank = reversed_key(key), rank.desc()
    if position is not None:
        number, *within = position
        behind = segments[:number] if backwards else segments[number + 1 :]
        condition = segments[number].condition
        if within:
            condition &= Q(beyond(key, within, few))
        for segment in behind:
            condition |= segment.condition
        few = few.filter(condition)
    try:
        rows = read(few, [rank, *key], size + 1)
    except EmptyResultSet:
        rows = []
    columns, _ = columns_of(key)
    found = [(values.index(_value_of(row, column, len(columns))), row) for row in rows[:size]]
    more = len(rows) > size
    return _segment_page(segments, found, _position_in(segments, *found[-1]) if more else None)


def _value_of(row: Any, column: str, width: int) -> Any:
    """Return the value of a column in a row. In a tuple, the value follows the key."""
    if isinstance(row, tuple):
        return row[width]
    return row[column] if isinstance(row, dict) else getattr(row, column)


def _segment_page(
    segments: Sequence[Segment], found: list[tuple[int, Any]], end: Sequence[int | str] | None
) -> SegmentPage:
    start = _position_in(segments, *found[0]) if found else None
    return SegmentPage([row for _, row in found], start, end)


def _position_in(segments: Sequence[Segment], number: int, row: Any) -> list[int | str]:
    return [number, *position_of(row, columns_of(segments[number].key)[0])]
