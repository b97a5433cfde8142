"""Rows of a queryset as columns whose text is given: compiled by whoever compiles it once.

Building and compiling what a list shows takes longer than PostgreSQL needs to find the rows. It is
the same for each request; the conditions are not, and they are compiled each time, as Django does
it. No value of a request is ever part of a text that is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import FullResultSet
from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from infra_service.database.pages.fences import Statement


def columns_sql(model: Any, names: Iterable[str]) -> list[str]:
    """Return how a statement names columns of a model's table."""
    table, meta = model._meta.db_table, model._meta
    return [f'"{table}"."{meta.get_field(name).column}"' for name in names]


def select(
    columns: Statement, queryset: Any, order: Sequence[str], limit: int
) -> list[tuple[Any, ...]]:
    """Return the first rows of the queryset in this order, as these columns.

    Raises:
        EmptyResultSet: its conditions let nothing pass.
    """
    query = queryset.query
    query.get_initial_alias()
    compiler = query.get_compiler(using=queryset.db)
    sources, source_params = compiler.get_from_clause()
    try:
        condition, params = compiler.compile(query.where)
        where = f" WHERE {condition}"
    except FullResultSet:
        where, params = "", ()
    names = columns_sql(query.model, (name.removeprefix("-") for name in order))
    ordered = ", ".join(
        f"{column} DESC" if name.startswith("-") else column
        for name, column in zip(order, names, strict=True)
    )
    text, values = columns
    sql = f"SELECT {text} FROM {' '.join(sources)}{where} ORDER BY {ordered} LIMIT {limit:d}"  # noqa: S608 - compiled
    with connections[queryset.db].cursor() as cursor:
        cursor.execute(sql, (*values, *source_params, *params))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
