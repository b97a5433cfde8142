"""Many rows from a few, which a database copies ten times as fast as the demo data makes them."""

from __future__ import annotations

from django.db import connection
from django.db.models import Model


def multiply(model: type[Model], times: int, *, order: str = "n, id", **written: str) -> None:
    """Let there be so many of each row, with other values in these columns; n numbers the copies.

    The values are SQL, of the row that is copied, and so is the order in which they lie in the
    table: the planner asks what reading an index costs where its rows lie apart.
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
    """Return the id that a row of this id has in the n-th copy."""
    return f"md5({column}::text || n)::uuid"


def renumbered(column: str, step: int) -> str:
    """Return the name with the number at its end further by so much in each copy."""
    start, number = f"substring({column} from '^.*-')", f"substring({column} from '[0-9]+$')"
    return f"{start} || lpad(({number}::int + n * {step})::text, length({number}), '0')"
