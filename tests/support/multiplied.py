"""Copies of rows, created by the database ten times as fast as the demo data."""

from __future__ import annotations

from django.db import connection
from django.db.models import Model


def multiply(model: type[Model], times: int, *, order: str = "n, id", **written: str) -> None:
    """Create this many copies of each row, with other values in these columns; n numbers the
    copies.

    The values are SQL expressions on the copied row, and so is the physical order: the planner's
    cost of an index depends on the distance of its rows.
    """
    quote = connection.ops.quote_name
    columns = [quote(field.column or "") for field in model._meta.concrete_fields]
    others = {quote(name): value for name, value in written.items()}
    assert others.keys() <= set(columns)
    values = [others.get(column, column) for column in columns]
    table = quote(model._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE copies (n) AS"
            f" (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < {times - 1}) "
            f"INSERT INTO {table} ({', '.join(columns)}) "
            f"SELECT {', '.join(values)} FROM {table}, copies ORDER BY {order}"
        )


def another(column: str) -> str:
    """Return the id of a row's n-th copy."""
    return f"md5({column}::text || n)::uuid"


def renumbered(column: str, step: int) -> str:
    """Return the name with its final number increased by this much in each copy."""
    start, number = f"substring({column} from '^.*-')", f"substring({column} from '[0-9]+$')"
    return f"{start} || lpad(({number}::int + n * {step})::text, length({number}), '0')"
