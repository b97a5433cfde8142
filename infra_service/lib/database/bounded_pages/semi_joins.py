"""Read rows to which another table refers, such as the components of some states.

Reading the list would test each row for a reference, and might find one match in 250,000 rows. A
page is therefore read from the referring rows. If an index of the referring rows has the order of
the list, by keys or by copies of the list's columns, the referring rows are read in this order.
Otherwise, all referring rows are read if there are few.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import connection, connections
from django.db.models import lookups
from django.db.models.expressions import RawSQL

from infra_service.lib.database import citus
from infra_service.lib.database.bounded_pages.bounded_tables import (
    compiled,
    each_of,
    from_statement,
    statement_of,
)
from infra_service.lib.database.bounded_pages.conditions import (
    Kind,
    NamedBy,
    conditions_of,
    without,
)
from infra_service.lib.database.bounded_pages.indexes import Access, ordered_by, sets, walk
from infra_service.lib.database.keyset import beyond

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from infra_service.lib.database.bounded_pages.bounded_tables import Statement
    from infra_service.lib.database.bounded_pages.conditions import Conditions

#: The maximum number of column values that are searched separately. A search may return a page.
_MOST_VALUES: Final = 100
#: The same limit if only index entries are read. SQLite limits a UNION to 500 parts.
_MOST_OWN_VALUES: Final = {"postgresql": 1_000, "sqlite": 400}


@dataclass(frozen=True)
class SemiJoin:
    """An index scan of rows that refer to a list's rows."""

    access: Access
    condition: NamedBy
    #: The number of values that are searched separately.
    values: int = 1
    #: The comparisons of the list that the scan decides, through copies in the referring rows.
    decides: frozenset[int] = frozenset()
    #: Whether the referring rows are the list's own rows, so that each key occurs once.
    is_own: bool = False

    def decides_all(self, conditions: Conditions) -> bool:
        """Return whether the reference is the only remaining condition."""
        written = {id(c.lookup) for c in conditions.comparisons if c.node is not None}
        return conditions.others == len(conditions.named) == 1 and written <= self.decides

    def keys(self, limit: int) -> Statement:
        """Return the statement that finds the referenced keys, unordered and with duplicates."""
        return statement_of(self.access, self.condition.rows, limit, [self.condition.column])

    def next_keys(self, limit: int, position: Sequence[Any] | None) -> Statement:
        """Return the statement that finds the next referenced keys after a position, sorted."""
        columns = [self.condition.column]
        after = None if position is None else (columns, position)
        sql, params = each_of(self.access, self.condition.rows, limit, columns, after)
        distinct = "" if self.is_own else "DISTINCT "
        return f'SELECT {distinct}* FROM ({sql}) "named" ORDER BY 1 LIMIT {limit:d}', params  # noqa: S608 - compiled

    def last(
        self, limit: int, position: Sequence[Any] | None, using: str
    ) -> list[int | str] | None:
        """Return the last of the next ``limit`` keys, or None if there are fewer keys."""
        sql, params = self.next_keys(limit, position)
        with connections[using].cursor() as cursor:
            cursor.execute(f"{sql} OFFSET {limit - 1:d}", params)
            found = cursor.fetchone()
        return None if found is None else [str(found[0])]

    def piece(self, queryset: Any, limit: int) -> Any:
        """Return the queryset reduced to at most ``limit`` referenced rows."""
        return self._restrict(queryset, self.keys(limit))

    def next_piece(self, queryset: Any, limit: int, position: Sequence[Any] | None) -> Any:
        """Return the queryset reduced to the next ``limit`` referenced rows."""
        return self._restrict(queryset, self.next_keys(limit, position))

    def _restrict(self, queryset: Any, keys: Statement) -> Any:
        queryset = queryset.all()
        if self.condition.is_exact:
            without(queryset.query, self.condition)
        return from_statement(queryset, *_rows_of_keys(queryset, *keys))


@dataclass(frozen=True)
class Copied(SemiJoin):
    """An index scan of the referring rows that has the order of the list, through copied columns.

    ``parts`` contains the referring rows, filtered like the list: a single part, or several parts
    that the index has in the order of the list. ``key`` is the order of the list.
    """

    parts: tuple[Any, ...] = ()
    key: tuple[str, ...] = ()

    def next_keys(self, limit: int, position: Sequence[Any] | None) -> Statement:
        """Return the statement that finds the next referenced keys after a position, sorted."""
        sql, params = self._next(limit, position)
        return f'SELECT "next"."{self.condition.column}" FROM ({sql}) "next"', params  # noqa: S608 - compiled

    def last(
        self, limit: int, position: Sequence[Any] | None, using: str
    ) -> list[int | str] | None:
        """Return the last of the next ``limit`` keys, or None if there are fewer keys."""
        sql, params = self._next(limit, position, skipped=limit - 1)
        shown = ", ".join(f'"next"."{name}"' for name in self.key)
        with connections[using].cursor() as cursor:
            cursor.execute(f'SELECT {shown} FROM ({sql}) "next"', params)  # noqa: S608 - compiled
            found = cursor.fetchone()
        return None if found is None else [str(value) for value in found]

    def _next(self, limit: int, position: Sequence[Any] | None, *, skipped: int = 0) -> Statement:
        # The planner chooses this index, because no other index has this order. Rows that refer to
        # the same row are adjacent in the index.
        columns = (*self.key, self.condition.column)

        def next_of(rows: Any, skipped: int = 0) -> Statement:
            if position is not None:
                rows = rows.filter(beyond(self.key, position, rows))
            return compiled(rows.values(*columns).order_by(*columns).distinct()[skipped:limit])

        if len(self.parts) == 1:
            return next_of(self.parts[0], skipped)
        texts, params = zip(*map(next_of, self.parts), strict=True)
        each = " UNION ALL ".join(f"SELECT * FROM ({text}) AS part" for text in texts)  # noqa: S608 - compiled
        order = ", ".join(f'"each"."{name}"' for name in columns)
        sql = f'SELECT * FROM ({each}) AS "each" ORDER BY {order}'  # noqa: S608 - compiled
        sql += f" LIMIT {limit - skipped:d} OFFSET {skipped:d}"
        return sql, tuple(itertools.chain(*params))


def _rows_of_keys(queryset: Any, keys: str, params: tuple[Any, ...]) -> Statement:
    """Return the statement that reads the rows with these keys from the queryset's table.

    Each key is looked up separately. With a join, PostgreSQL may read the whole list.
    """
    key = queryset.model._meta.pk
    rows = queryset.model._base_manager.all()
    column = key.get_col(rows.query.get_initial_alias())
    rows.query.deferred_loading = queryset.query.deferred_loading
    where = rows.query.where.children
    if citus.is_used():
        with connections[queryset.db].cursor() as cursor:
            cursor.execute(keys, params)
            found = [key for (key,) in cursor.fetchall()]
        where.append(lookups.In(column, found))
        return compiled(rows)
    if connection.vendor != "postgresql":
        where.append(lookups.In(column, RawSQL(keys, params, output_field=key)))  # noqa: S611 - compiled
        return compiled(rows)
    where.append(lookups.Exact(column, RawSQL('"named"."key"', (), output_field=key)))
    row, _ = compiled(rows[:1])
    each = f'(SELECT DISTINCT * FROM ({keys}) "keys") "named"("key")'  # noqa: S608 - compiled
    return f'SELECT "row".* FROM {each} CROSS JOIN LATERAL ({row}) "row"', params  # noqa: S608 - compiled


def in_order(model: Any, conditions: Conditions, key: Sequence[str]) -> SemiJoin | None:
    """Return the scan that finds the referenced rows in the order of the list, or None."""
    if list(key) != [model._meta.pk.attname]:
        return _copied(conditions, key)
    for condition in conditions.named:
        inner = conditions_of(condition.rows.query)
        access = ordered_by(condition.rows.model, inner, condition.column)
        if access is not None and access.decides_all(inner):
            values = max((len(set(c.lookup.rhs)) for c in access.within), default=1)
            if values <= _MOST_VALUES:
                return SemiJoin(access, condition, values)
    return None


def each_in_order(model: Any, conditions: Conditions, key: Sequence[str]) -> SemiJoin | None:
    """Return the scan that finds the rows of each of several values in order, or None.

    The next keys of each value are read only from the index. Then, the rows of the first of these
    keys are read.
    """
    if list(key) != [model._meta.pk.attname]:
        return None
    access = ordered_by(model, conditions, key[0])
    if access is None or not access.within or not access.decides_all(conditions):
        return None
    values = len(set(access.within[0].lookup.rhs))
    if values > _MOST_OWN_VALUES[connection.vendor]:
        return None
    return SemiJoin(access, NamedBy(model._base_manager.all(), key[0]), values, is_own=True)


def _copied(conditions: Conditions, key: Sequence[str]) -> Copied | None:
    """Return the scan of an index with copies of the columns that order the list, or None."""
    for condition in conditions.named:
        model = condition.rows.model
        copies: frozenset[str] = getattr(model, "copied", frozenset())
        if not copies.issuperset(key):
            continue
        fixed = [c for c in conditions.comparisons if c.column in copies and c.kind is Kind.EQUAL]
        known = _fixed(condition.rows)
        rows = condition.rows.filter(
            *((c.column, c.lookup.rhs) for c in fixed if (c.column, c.lookup.rhs) not in known)
        )
        for parts in _parts_of(rows):
            inner = conditions_of(parts[0].query)
            access = walk(model, inner, key)
            names = [name for name, _ in access.index.columns]
            if access.decides_all(inner) and names[-1] == condition.column:
                decides = frozenset(id(c.lookup) for c in fixed)
                return Copied(access, condition, decides=decides, parts=parts, key=tuple(key))
    return None


def _parts_of(rows: Any) -> Iterator[tuple[Any, ...]]:
    """Yield a single part with all rows, then the parts for the values of each merged column."""
    yield (rows,)
    for column, values in getattr(rows.model, "merged", {}).items():
        yield tuple(rows.filter((column, value)) for value in values)


def _fixed(rows: Any) -> list[tuple[str, Any]]:
    """Return the columns and values of equalities, to avoid duplicate conditions."""
    comparisons = conditions_of(rows.query).comparisons
    return [(c.column, c.lookup.rhs) for c in comparisons if c.kind is Kind.EQUAL]


def found_by(conditions: Conditions) -> Iterator[SemiJoin]:
    """Yield the scans that find all referring rows, regardless of the number of rows."""
    for condition in conditions.named:
        inner = conditions_of(condition.rows.query)
        accesses = sets(condition.rows.model, inner)
        yield from (SemiJoin(a, condition) for a in accesses if a.decides_all(inner))
