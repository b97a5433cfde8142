"""Load rows in bulk, without changing existing rows."""

from __future__ import annotations

import datetime as dt
import uuid
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from django.db import connection, transaction

from infra_service.demo.seeded_random import SeededRandom
from infra_service.lib.database.bulk import Writer
from infra_service.lib.database.months import milliseconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from django.db.models import Model

T = TypeVar("T")

#: The creation time of the first rows.
BEGINNING: Final = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)

#: The number of rows per transaction. The next run continues an interrupted run.
BATCH = 10_000
# VACUUM also sets the visibility of new rows, which would otherwise slow down the first reader.
# SKIP_LOCKED prevents a failure while autovacuum has locked the table.
_STATISTICS = "VACUUM (ANALYZE, SKIP_LOCKED)"


def batches(total: int, first: int = 0) -> Iterator[range]:
    """Yield the row numbers in batches, starting with ``first``."""
    for start in range(first, total, BATCH):
        yield range(start, min(start + BATCH, total))


def row_id(rng: SeededRandom, moment: dt.datetime = BEGINNING) -> uuid.UUID:
    """Return a reproducible UUIDv7 (RFC 9562) for the time."""
    head = milliseconds_of(moment) << 80 | 0x7 << 76 | rng.getrandbits(12) << 64
    return uuid.UUID(int=head | 0b10 << 62 | rng.getrandbits(62))


def new(
    model: type[Model],
    numbers: Iterable[int],
    row_id: Callable[[int], uuid.UUID],
    build: Callable[[int], T],
) -> list[T]:
    """Build the rows that do not exist yet."""
    ids = {row_id(number): number for number in numbers}
    there = set(model._default_manager.filter(pk__in=ids).values_list("pk", flat=True))
    return [build(number) for key, number in ids.items() if key not in there]


def insert(*tables: Sequence[Model]) -> None:
    """Insert lists of rows, one list per table, in one transaction."""
    with transaction.atomic():
        for rows in filter(None, tables):
            fields = type(rows[0])._meta.concrete_fields
            writer = Writer(type(rows[0]), [field.name for field in fields])
            read = attrgetter(*(field.attname for field in fields))
            writer.insert(writer.new_row(read(row)) for row in rows)


def refresh_statistics(*models: type[Model]) -> None:
    """Refresh the planner's statistics immediately, instead of waiting for autovacuum."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for model in models:
                cursor.execute(f"{_STATISTICS} {connection.ops.quote_name(model._meta.db_table)}")
