"""A list's table, cut down to a bounded piece before any other condition is looked at.

``FROM (SELECT … FROM states_state WHERE … ORDER BY … LIMIT 5000) states_state WHERE …``: neither
PostgreSQL nor SQLite moves a condition below a LIMIT, so whatever stands behind it is asked of so
many rows and no more. The piece has the table's own name, and all of its columns.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import lookups
from django.db.models.expressions import RawSQL
from django.db.models.sql.datastructures import BaseTable

from apikeys.keyset import beyond
from apikeys.pages.conditions import Comparison, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apikeys.pages.indexes import Access


class OneOf(lookups.Exact):
    """``column = ANY (ARRAY[value])``: PostgreSQL takes it for no constant.

    A column that is compared with a constant is dropped from the order, and then any index in the
    order of the rest will do: the planner walks the primary key past a million other rows, because
    it believes that matching ones are spread evenly. Only the first column of an index is compared
    so: any other would lose the order.
    """

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        """Return the condition."""
        lhs, lhs_params = self.process_lhs(compiler, connection)
        rhs, rhs_params = self.process_rhs(compiler, connection)
        return f"{lhs} = ANY (ARRAY[{rhs}])", (*lhs_params, *rhs_params)


class Piece(BaseTable):
    """A table cut down to what a statement returns."""

    def __init__(self, table_name: str, alias: str, sql: str, params: Sequence[Any]) -> None:
        super().__init__(table_name, alias)
        self.sql, self.params = sql, list(params)

    def as_sql(self, compiler: Any, _connection: Any) -> Any:
        """Return the statement under the table's name."""
        return f"({self.sql}) {compiler.quote_name_unless_alias(self.table_alias)}", self.params


def forced(comparison: Comparison) -> Any:
    """Return the comparison as one that keeps its column in the order."""
    lookup = comparison.lookup
    if comparison.kind is Kind.EQUAL and connection.vendor == "postgresql":
        return OneOf(lookup.lhs, lookup.rhs)
    return lookup


def fenced(queryset: Any, sql: str, params: Sequence[Any]) -> Any:
    """Return the queryset reading from the statement instead of from its table."""
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
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that finds the rows of an access, and no more than ``limit``.

    It returns ``columns``, else those that the queryset does not defer; with ``after``, a page key
    and a position, only the rows beyond that.
    """
    several = next((c for c in access.within if c.kind is Kind.IN), None)
    if several is None or connection.vendor != "postgresql":
        return _compiled(rows_of(access, queryset, columns, after)[:limit])
    # An index that is searched for several values has no order, so that the planner might rather
    # read the whole table. One search for each value has one.
    lookup: Any = several.lookup
    field = lookup.lhs.target
    value = RawSQL('"one_of"."value"', (), output_field=field)
    one = several._replace(kind=Kind.EQUAL, lookup=lookups.Exact(lookup.lhs, value))
    each = dataclasses.replace(access, equal=(*access.equal, one), within=())
    sql, params = _compiled(rows_of(each, queryset, columns, after)[:limit])
    values = [
        lookup.lhs.output_field.get_db_prep_value(one, connection)
        for one in dict.fromkeys(lookup.rhs)
    ]
    each_value = f'UNNEST(%s::{field.db_type(connection)}[]) "one_of"("value")'
    lateral = f'CROSS JOIN LATERAL ({sql}) "piece"'
    text = f'SELECT "piece".* FROM {each_value} {lateral} LIMIT {limit:d}'  # noqa: S608 - compiled
    return text, (values, *params)


def rows_of(
    access: Access,
    queryset: Any,
    columns: Sequence[str] = (),
    after: tuple[Sequence[str], Sequence[Any]] | None = None,
) -> Any:
    """Return what an access finds of the queryset's table, in its order."""
    found = queryset.model._base_manager.all()
    found.query.get_initial_alias()
    found.query.deferred_loading = queryset.query.deferred_loading
    for comparison in access.comparisons:
        is_first = comparison is next(iter(access.equal), None)
        found.query.where.children.append(forced(comparison) if is_first else comparison.lookup)
    if after is not None:
        found = found.filter(beyond(*after, found))
    if columns:
        found = found.values(*columns)
    return found.order_by(*access.order)


def _compiled(queryset: Any) -> tuple[str, tuple[Any, ...]]:
    sql, params = queryset.query.get_compiler(connection=connection).as_sql()
    return sql, tuple(params)
