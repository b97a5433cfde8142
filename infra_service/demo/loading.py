"""Load rows in bulk: COPY on PostgreSQL, large inserts elsewhere. Existing rows stay unchanged."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from django.db import connection, transaction
from django.db.models import JSONField

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from django.db.models import Model

T = TypeVar("T")

#: Rows per transaction; the next run continues an interrupted run.
BATCH = 10_000
# VACUUM also sets the visibility of new rows, which would slow down the first reader. SKIP_LOCKED:
# autovacuum may hold the table, and the load must not fail for it.
_STATISTICS = "VACUUM (ANALYZE, SKIP_LOCKED)"


def batches(total: int, first: int = 0) -> Iterator[range]:
    """Yield the row numbers from ``first`` on in batches."""
    for start in range(first, total, BATCH):
        yield range(start, min(start + BATCH, total))


def new(
    model: type[Model],
    numbers: Iterable[int],
    row_id: Callable[[int], uuid.UUID],
    build: Callable[[int], T],
) -> list[T]:
    """Build the rows for numbers without a row."""
    ids = {row_id(number): number for number in numbers}
    there = set(model._default_manager.filter(pk__in=ids).values_list("pk", flat=True))
    return [build(number) for key, number in ids.items() if key not in there]


def insert(*tables: Sequence[Model]) -> None:
    """Insert lists of rows, each of a table, in a transaction."""
    with transaction.atomic():
        for rows in tables:
            if rows and connection.vendor == "postgresql":
                _copy(rows)
            elif rows:
                type(rows[0])._default_manager.bulk_create(rows)


def _copy(rows: Sequence[Model]) -> None:
    model = type(rows[0])
    fields = model._meta.concrete_fields
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column or "") for field in fields)
    statement = f"COPY {quote(model._meta.db_table)} ({columns}) FROM STDIN"
    read = attrgetter(*(field.attname for field in fields))
    # psycopg converts all other types; a call per field would take most of the time.
    documents = [(at, f) for at, f in enumerate(fields) if isinstance(f, JSONField)]
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            values = list(read(row))
            for at, field in documents:
                values[at] = field.get_db_prep_save(values[at], connection)
            copy.write_row(values)


def refresh_statistics(*models: type[Model]) -> None:
    """Refresh the planner's statistics at once; autovacuum would do it later."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for model in models:
                cursor.execute(f"{_STATISTICS} {connection.ops.quote_name(model._meta.db_table)}")
