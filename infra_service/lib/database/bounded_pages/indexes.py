"""Derive the indexes of a model, and find the index for a list."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from django.db import models

from infra_service.lib.database.bounded_pages.conditions import Comparison, Conditions, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class PageIndex:
    """A B-tree index: its columns with their directions, and the conditions of a partial index."""

    columns: tuple[tuple[str, bool], ...]
    demands: tuple[tuple[str, Kind], ...] = ()
    is_unique: bool = False


@dataclass(frozen=True)
class Access:
    """An index scan: the comparisons that the index decides, and the order of the rows.

    ``equal`` contains equalities and NULL tests of the first columns, ``within`` comparisons of the
    next column, and ``demanded`` those that imply the condition of a partial index. ``order`` has
    the format of ``order_by``.
    """

    index: PageIndex
    equal: tuple[Comparison, ...]
    within: tuple[Comparison, ...]
    demanded: tuple[Comparison, ...]
    order: tuple[str, ...]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All comparisons that the index decides."""
        return (*self.equal, *self.within, *self.demanded)

    @property
    def decides(self) -> frozenset[int]:
        """The ids of the comparisons that the index decides, for set operations."""
        return frozenset(id(c.lookup) for c in self.comparisons)

    def decides_all(self, conditions: Conditions) -> bool:
        """Return whether the scan decides all conditions."""
        written = {id(c.lookup) for c in conditions.comparisons if c.node is not None}
        return not conditions.others and written <= self.decides

    def is_to_be_forced(self, model: type[models.Model]) -> bool:
        """Return whether the planner uses this index only if the order includes its first column.

        If several indexes match, the planner may otherwise choose the wrong index and sort all rows
        that it finds.
        """
        fixed = {comparison.column for comparison in self.equal}
        names = [name.removeprefix("-") for name in self.order]
        rest = [name for name in names if name not in fixed]
        others = [[name for name, _ in index.columns] for index in indexes_of(model)]
        return len(fixed) == 1 or any(
            fixed.isdisjoint(columns) and columns[: len(rest)] == rest for columns in others
        )

    @property
    def finds_single_row(self) -> bool:
        """Return whether the scan finds at most one row."""
        return self.index.is_unique and len(self.equal) == len(self.index.columns)


@functools.cache
def indexes_of(model: type[models.Model]) -> tuple[PageIndex, ...]:
    """Return the model's B-tree indexes, in the order of their declaration."""
    return tuple(_indexes(model._meta))


def _indexes(meta: Any) -> Iterator[PageIndex]:
    for field in meta.concrete_fields:
        if field.unique or field.db_index:
            yield PageIndex(((field.attname, False),), is_unique=field.unique)
    if isinstance(meta.pk, models.CompositePrimaryKey):
        fields = [(name, "") for name in meta.pk.field_names]
        yield from _index(fields, None, meta, is_unique=True)
    for constraint in meta.constraints:
        if isinstance(constraint, models.UniqueConstraint) and constraint.fields:
            fields = [(name, "") for name in constraint.fields]
            yield from _index(fields, constraint.condition, meta, is_unique=True)
    for index in meta.indexes:
        if type(index) is models.Index and index.fields:
            yield from _index(index.fields_orders, index.condition, meta)


def _index(
    fields: Sequence[tuple[str, str]], condition: Any, meta: Any, *, is_unique: bool = False
) -> Iterator[PageIndex]:
    """Yield the index, unless it is partial with an unsupported condition."""
    demands = []
    for name, value in _nulls(condition) if condition else ():
        column, _, _isnull = name.partition("__")
        kind = Kind.NULL if value is None or value is True else Kind.NOT_NULL
        demands.append((meta.get_field(column).attname, kind))
    if condition and len(demands) < len(condition.children):
        return
    columns = tuple((meta.get_field(name).attname, order != "") for name, order in fields)
    yield PageIndex(columns, tuple(demands), is_unique)


def _nulls(condition: Any) -> Iterator[tuple[str, Any]]:
    """Yield the NULL tests in conditions combined by AND."""
    if condition.negated or condition.connector != condition.AND:
        return
    for child in condition.children:
        if isinstance(child, tuple) and (child[0].endswith("__isnull") or child[1] is None):
            yield child


def walk(model: type[models.Model], conditions: Conditions, page_key: Sequence[str]) -> Access:
    """Return a scan in the order of the page key.

    Among several indexes, choose the index that decides the most comparisons. A page key without an
    index is treated as indexed. A system check reports the missing index.
    """
    compared = tuple((comparison.column, comparison.kind) for comparison in conditions.comparisons)
    index = _index_to_walk(model, compared, tuple(page_key))
    return cast("Access", _walk(index, conditions, page_key))  # the access of the chosen index


@functools.lru_cache(maxsize=1024)
def _index_to_walk(
    model: type[models.Model], compared: tuple[tuple[str, Kind], ...], page_key: tuple[str, ...]
) -> PageIndex:
    """Return the best index for these kinds of comparisons, independent of the values."""
    conditions = Conditions(tuple(Comparison(*pair, lookup=None) for pair in compared), 0)
    sorted_by = PageIndex(tuple((n.removeprefix("-"), n.startswith("-")) for n in page_key))
    found = [
        access
        for index in (*indexes_of(model), sorted_by)
        if (access := _walk(index, conditions, page_key)) is not None
    ]
    return max(found, key=lambda access: (access.finds_single_row, len(access.comparisons))).index


def _walk(index: PageIndex, conditions: Conditions, page_key: Sequence[str]) -> Access | None:
    demanded = _demanded(index, conditions)
    if demanded is None:
        return None
    equal = _equal(index, conditions)
    fixed = {comparison.column for comparison in equal}
    wanted = [
        (name.removeprefix("-"), name.startswith("-"))
        for name in page_key
        if name.removeprefix("-") not in fixed
    ]
    rest = index.columns[len(equal) :]
    flips = {given[1] != requested[1] for given, requested in zip(rest, wanted, strict=False)}
    one = index.is_unique and not rest
    if not one and (
        [name for name, _ in rest[: len(wanted)]] != [name for name, _ in wanted] or len(flips) > 1
    ):
        return None
    flip = True in flips
    leading = tuple(
        f"-{name}" if descending != flip else name
        for name, descending in index.columns[: len(equal)]
    )
    within = conditions.of(wanted[0][0], Kind.RANGE, Kind.NOT_NULL) if wanted and not one else ()
    return Access(index, equal, within, demanded, (*leading, *page_key))


def sets(model: type[models.Model], conditions: Conditions) -> list[Access]:
    """Return scans that find the rows in any order, regardless of the number of rows."""
    found: dict[frozenset[int], Access] = {}
    for index in indexes_of(model):
        access = _set(index, conditions)
        if access is not None:
            found.setdefault(access.decides, access)
    return [a for key, a in found.items() if not any(key < other for other in found)]


def ordered_by(model: type[models.Model], conditions: Conditions, column: str) -> Access | None:
    """Return the scan that finds the rows for each of several values in the order of a column.

    The column is unique among the rows of a value. Among several indexes, choose the index that
    decides the most comparisons.
    """
    unique = [
        {name for name, _ in index.columns}
        for index in indexes_of(model)
        if index.is_unique and not index.demands
    ]
    found = []
    for index in indexes_of(model):
        demanded, equal = _demanded(index, conditions), _equal(index, conditions)
        names = [name for name, _ in index.columns]
        within = () if len(equal) == len(names) else conditions.of(names[len(equal)], Kind.IN)[:1]
        leading = len(equal) + len(within)
        if (
            demanded is not None
            and names[leading : leading + 1] == [column]
            and any(own <= set(names[: leading + 1]) for own in unique)
        ):
            found.append(Access(index, equal, within, demanded, (*names[:leading], column)))
    return max(found, key=lambda access: len(access.comparisons), default=None)


def _set(index: PageIndex, conditions: Conditions) -> Access | None:
    demanded = _demanded(index, conditions)
    if demanded is None:
        return None
    equal = _equal(index, conditions)
    within: tuple[Comparison, ...] = ()
    if len(equal) < len(index.columns):
        following = index.columns[len(equal)][0]
        within = conditions.of(following, Kind.RANGE) or conditions.of(following, Kind.IN)[:1]
    if not (equal or within or demanded):
        return None
    order = tuple(f"-{name}" if descending else name for name, descending in index.columns)
    return Access(index, equal, within, demanded, order)


def _equal(index: PageIndex, conditions: Conditions) -> tuple[Comparison, ...]:
    """Return the equalities on the first columns of the index."""
    # A unique index may contain many rows with null.
    kinds = (Kind.EQUAL,) if index.is_unique else (Kind.EQUAL, Kind.NULL)
    found: list[Comparison] = []
    for name, _ in index.columns:
        equal = conditions.of(name, *kinds)
        if not equal:
            break
        found += equal[:1]
    return tuple(found)


def _demanded(index: PageIndex, conditions: Conditions) -> tuple[Comparison, ...] | None:
    """Return the comparisons that a partial index requires, or None if the index does not apply."""
    found: list[Comparison] = []
    for name, kind in index.demands:
        own = conditions.of(name, kind)
        if own:
            found += own[:1]
        elif kind is Kind.NULL or not conditions.of(name, Kind.EQUAL, Kind.IN, Kind.RANGE):
            return None
    return tuple(found)
