"""Select rows of a queryset as columns of precompiled SQL.

Compiling the columns of a list takes longer than PostgreSQL needs to find the rows, so the SQL of
the columns is compiled once and reused. The conditions vary and are compiled for each request.
Cached SQL never contains values from a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.exceptions import FullResultSet
from django.db import connections
from django.db.models import OuterRef, Subquery

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import Model


class ColumnOf(Subquery):
    """A column of the row to which a foreign key refers, as a scalar subquery.

    If a page is selected as text, a single ``join`` provides all columns of this row.
    """

    def __init__(self, model: type[Model], key: str, shown: str) -> None:
        super().__init__(model._base_manager.filter(pk=OuterRef(key)).values(shown))
        self.model, self.key, self.shown = model, key, shown

    def column(self) -> str:
        """Return the SQL name of the column in the joined row."""
        field: Any = self.model._meta.get_field(self.shown)
        return f'"{self.key}"."{field.column}"'

    def join(self, table: str) -> str:
        """Return the SQL that joins the row, with the key's name as its alias."""
        meta: Any = self.model._meta
        return (
            f'LEFT JOIN "{meta.db_table}" "{self.key}"'
            f' ON "{self.key}"."{meta.pk.column}" = "{table}"."{self.key}"'
        )


class Columns(NamedTuple):
    """The selected SQL, with its parameters and the joins that it requires."""

    sql: str
    params: tuple[Any, ...] = ()
    joins: tuple[str, ...] = ()


def columns_sql(model: Any, names: Iterable[str]) -> list[str]:
    """Return the qualified SQL names of columns of a model."""
    table, meta = model._meta.db_table, model._meta
    return [f'"{table}"."{meta.get_field(name).column}"' for name in names]


def select(
    columns: Columns, queryset: Any, order: Sequence[Any], limit: int
) -> list[tuple[Any, ...]]:
    """Return these columns of the first rows of the queryset in this order.

    The order consists of columns, and may begin with an expression.

    Only the rows of the page are joined: with a join below the LIMIT, the planner may first read a
    whole table.

    Raises:
        EmptyResultSet: no row can match.
    """
    query = queryset.query
    table = query.get_initial_alias()
    compiler = query.get_compiler(using=queryset.db)
    sources, source_params = compiler.get_from_clause()
    try:
        condition, params = compiler.compile(query.where)
        where = f" WHERE {condition}"
    except FullResultSet:
        where, params = "", ()
    order_sql, order_params = _order_sql(compiler, order)
    ordered = f" ORDER BY {order_sql}"
    rows = f" FROM {' '.join(sources)}{where}{ordered} LIMIT {limit:d}"
    params = (*params, *order_params)
    if columns.joins:
        page = f'(SELECT "{table}".*{rows}) "{table}"'
        rows = f" FROM {page} {' '.join(columns.joins)}{ordered}"
        params = (*params, *order_params)
    with connections[queryset.db].cursor() as cursor:
        cursor.execute(f"SELECT {columns.sql}{rows}", (*columns.params, *source_params, *params))
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def _order_sql(compiler: Any, order: Sequence[Any]) -> tuple[str, list[Any]]:
    query = compiler.query
    names = [name for name in order if isinstance(name, str)]
    columns = columns_sql(query.model, (name.removeprefix("-") for name in names))
    texts, params = [], []
    for expression in order[: len(order) - len(names)]:
        sql, own = compiler.compile(expression.resolve_expression(query))
        texts.append(sql)
        params += own
    texts += [
        f"{column} DESC" if name.startswith("-") else column
        for name, column in zip(names, columns, strict=True)
    ]
    return ", ".join(texts), params
