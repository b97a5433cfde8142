"""Limit the rows of a list's table before the other conditions are tested.

``FROM (SELECT … FROM states_state WHERE … ORDER BY … LIMIT 5000) states_state WHERE …``: neither
PostgreSQL nor SQLite moves a condition below a LIMIT, so the outer conditions are tested for at
most that number of rows. The subquery has the name and the columns of the table.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import lookups
from django.db.models.expressions import RawSQL
from django.db.models.sql.datastructures import BaseTable

from infra_service.lib.database import citus
from infra_service.lib.database.bounded_pages.conditions import Comparison, Kind
from infra_service.lib.database.bounded_pages.partitions import within_partitions
from infra_service.lib.database.keyset import beyond

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra_service.lib.database.bounded_pages.indexes import Access

#: SQL and its parameters.
Statement = tuple[str, tuple[Any, ...]]


class OneOf(lookups.Exact):
    """``column = ANY (ARRAY[value])``, which PostgreSQL does not treat as a constant.

    PostgreSQL drops a column that equals a constant from the sort order, and can then use any index
    for the rest of the order. Because PostgreSQL expects matching rows to be spread evenly, it may
    read a million other rows in the order of the primary key. Only the first column of an index is
    compared in this form. For any other column, the scan would lose the order.
    """

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        lhs, lhs_params = self.process_lhs(compiler, connection)
        rhs, rhs_params = self.process_rhs(compiler, connection)
        return f"{lhs} = ANY (ARRAY[{rhs}])", (*lhs_params, *rhs_params)


class Piece(BaseTable):
    """A table in FROM that is reduced to the rows of a statement."""

    def __init__(self, table_name: str, alias: str, sql: str, params: Sequence[Any]) -> None:
        super().__init__(table_name, alias)
        self.sql, self.params = sql, list(params)

    def as_sql(self, compiler: Any, _connection: Any) -> Any:
        return f"({self.sql}) {compiler.quote_name_unless_alias(self.table_alias)}", self.params


def forced(comparison: Comparison) -> Any:
    """Return an equality in a form that keeps its column in the sort order on PostgreSQL."""
    lookup = comparison.lookup
    if comparison.kind is Kind.EQUAL and connection.vendor == "postgresql":
        return OneOf(lookup.lhs, lookup.rhs)
    return lookup


def from_statement(queryset: Any, sql: str, params: Sequence[Any]) -> Any:
    """Return the queryset with the statement instead of its table."""
    queryset = queryset.all()
    alias = queryset.query.get_initial_alias()
    table = queryset.model._meta.db_table
    queryset.query.alias_map[alias] = Piece(table, alias, sql, params)
    return queryset


def statement_of(
    access: Access,
    queryset: Any,
    limit: int,
    columns: Sequence[str] = (),
    after: tuple[Sequence[str], Sequence[Any]] | None = None,
) -> Statement:
    """Return the statement that finds at most ``limit`` rows through an index.

    The statement selects ``columns``, or else the columns that the queryset does not defer.
    ``after`` is a page key and the position after which the rows begin.
    """
    several = _several(access)
    if several is None or not citus.joins_laterally():
        return compiled(rows_of(access, queryset, columns, after)[:limit])
    sql, params = each_of(access, queryset, limit, columns, after)
    return f"{sql} LIMIT {limit:d}", params


def each_of(
    access: Access,
    queryset: Any,
    limit: int,
    columns: Sequence[str] = (),
    after: tuple[Sequence[str], Sequence[Any]] | None = None,
) -> Statement:
    """Return the statement that finds up to ``limit`` rows for each value of an IN comparison.

    An index scan for several values is unordered, so the planner might read the whole table. A
    separate scan for each value is ordered.
    """
    several = _several(access)
    if several is None:
        return compiled(rows_of(access, queryset, columns, after)[:limit])
    lookup: Any = several.lookup
    field = lookup.lhs.target

    def one(value: Any) -> Statement:
        equal = several._replace(kind=Kind.EQUAL, lookup=lookups.Exact(lookup.lhs, value))
        each = dataclasses.replace(access, equal=(*access.equal, equal), within=())
        return compiled(rows_of(each, queryset, columns, after)[:limit])

    values = list(dict.fromkeys(lookup.rhs))
    if not citus.joins_laterally():
        texts, params = zip(*map(one, values), strict=True)
        union = " UNION ALL ".join(f"SELECT * FROM ({text}) AS part" for text in texts)  # noqa: S608 - compiled
        return union, tuple(itertools.chain(*params))
    sql, rest = one(RawSQL('"one_of"."value"', (), output_field=field))
    prepared = [lookup.lhs.output_field.get_db_prep_value(v, connection) for v in values]
    each_value = f'UNNEST(%s::{field.db_type(connection)}[]) "one_of"("value")'
    text = f'SELECT "piece".* FROM {each_value} CROSS JOIN LATERAL ({sql}) "piece"'  # noqa: S608 - compiled
    return text, (prepared, *rest)


def _several(access: Access) -> Comparison | None:
    return next((c for c in access.within if c.kind is Kind.IN), None)


def rows_of(
    access: Access,
    queryset: Any,
    columns: Sequence[str] = (),
    after: tuple[Sequence[str], Sequence[Any]] | None = None,
) -> Any:
    """Return a query for the rows of an index scan in the queryset's table, in its order."""
    found = queryset.model._base_manager.using(queryset.db)
    found.query.get_initial_alias()
    found.query.deferred_loading = queryset.query.deferred_loading
    is_forced = bool(access.equal) and access.is_to_be_forced(queryset.model)
    deciding = access.equal[0] if is_forced else None
    for comparison in access.comparisons:
        is_first = comparison is deciding
        found.query.where.children.append(forced(comparison) if is_first else comparison.lookup)
    if after is not None:
        found = found.filter(beyond(*after, found))
    found = within_partitions(found, queryset, after)
    if columns:
        found = found.values(*columns)
    return found.order_by(*access.order)


def compiled(queryset: Any) -> Statement:
    sql, params = queryset.query.get_compiler(connection=connection).as_sql()
    return sql, tuple(params)
