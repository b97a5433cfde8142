"""Rows in bulk: COPY on PostgreSQL, large inserts elsewhere. What is there is left alone."""

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

#: Rows of a transaction: a run that was stopped is continued by the next.
BATCH = 10_000
# VACUUM also marks the new rows as visible to all, which their first reader would have to do.
# A table that is locked is being vacuumed or analysed already, and the load is not to fail for it.
_STATISTICS = "VACUUM (ANALYZE, SKIP_LOCKED)"


def batches(total: int, first: int = 0) -> Iterator[range]:
    """Yield the numbers of the rows from the first, a batch at a time."""
    for start in range(first, total, BATCH):
        yield range(start, min(start + BATCH, total))


def new(
    model: type[Model],
    numbers: Iterable[int],
    row_id: Callable[[int], uuid.UUID],
    build: Callable[[int], T],
) -> list[T]:
    """Build the rows of those numbers whose ids are not there yet."""
    ids = {row_id(number): number for number in numbers}
    there = set(model._default_manager.filter(pk__in=ids).values_list("pk", flat=True))
    return [build(number) for key, number in ids.items() if key not in there]


def insert(*tables: Sequence[Model]) -> None:
    """Insert rows, one list of them a table, in one transaction."""
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
    # psycopg knows the types of all but these; asking each field would take most of the time.
    documents = [(at, f) for at, f in enumerate(fields) if isinstance(f, JSONField)]
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            values = list(read(row))
            for at, field in documents:
                values[at] = field.get_db_prep_save(values[at], connection)
            copy.write_row(values)


def refresh_statistics(*models: type[Model]) -> None:
    """Tell PostgreSQL's planner what has been loaded; it would find out by itself in a while."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for model in models:
                cursor.execute(f"{_STATISTICS} {connection.ops.quote_name(model._meta.db_table)}")
