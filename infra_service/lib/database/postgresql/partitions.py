"""Create and drop monthly partitions of a table by its UUIDv7 key.

The first partition contains everything older than the oldest month. Each month has a partition,
which the owner of the table creates months ahead. If a partition is missing, the default partition
accepts the rows, so that inserts do not fail. The default partition later becomes the partition of
the missing months.

The service's role reads and writes through the table, and needs no privileges on partitions.
"""

from __future__ import annotations

import re
import time
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db import OperationalError, connection, transaction
from django.utils import timezone

from infra_service.lib.database.months import first_id, moment_of, month_of
from infra_service.lib.database.postgresql.lock_waits import limit_wait

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The number of months after the current month for which partitions are created.
AHEAD: Final = 3
#: The CHECK constraint on the ids of a table, because of which attaching the table does not read
#: it.
LIMIT: Final = "limit_of_partition"
#: The seconds between two attempts to lock a table. While an attempt waits for the lock, other
#: statements wait, too.
PAUSE: Final = 2.0
_BOUNDS: Final = re.compile(r"FROM \((?:'(.+)'|MINVALUE)\) TO \('(.+)'\)", re.ASCII)


class Partition(NamedTuple):
    """A partition with the ids from ``lower`` (None means no limit) to ``upper`` (exclusive)."""

    table: str
    name: str
    lower: uuid.UUID | None
    upper: uuid.UUID

    @property
    def is_month(self) -> bool:
        """Return whether the partition begins with a month, unlike the first partition."""
        return self.lower is not None

    def has(self, id_: uuid.UUID) -> bool:
        return (self.lower is None or self.lower <= id_) and id_ < self.upper

    def drop(self, rows: int) -> bool:
        """Drop this month if it has exactly ``rows`` rows and the first partition is empty.

        The first partition then extends to the end of the month. Return False, without a change, if
        the numbers do not match. Only the owner of the table can drop a partition.
        """
        extended = self._replace(name=f"{self.table}_first", lower=None)
        with transaction.atomic(), connection.cursor() as cursor:
            limit_wait(cursor)
            for name, expected in ((self.name, rows), (extended.name, 0)):
                # Writers of these old rows wait. All other statements continue.
                run(cursor, "LOCK TABLE {} IN SHARE MODE", name)
                run(cursor, "SELECT count(*) FROM {}", name)
                if cursor.fetchone()[0] != expected:
                    return False
            for name in (self.name, extended.name):
                run(cursor, "DROP TABLE {}", name)
            create(cursor, extended)
        return True


def partitions_of(table: str) -> list[Partition]:
    """Return the partitions in the order of their ids, without the default partition.

    The list is empty if the table has no partitions or does not exist.
    """
    found = [
        Partition(table, name, uuid.UUID(match[1]) if match[1] else None, uuid.UUID(match[2]))
        for name, bounds in _bounds_of(table)
        if (match := _BOUNDS.search(bounds)) is not None
    ]
    return sorted(found, key=lambda partition: partition.upper)


def names_of_partitions(table: str) -> list[str]:
    """Return the names of all partitions, including the default partition."""
    return sorted(name for name, _bounds in _bounds_of(table))


def _bounds_of(table: str) -> list[tuple[str, str]]:
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT child.relname, pg_get_expr(child.relpartbound, child.oid)
            FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
            WHERE inhparent = to_regclass(%s)
            """,
            [connection.ops.quote_name(table)],
        )
        found: list[tuple[str, str]] = cursor.fetchall()
    return found


def months_ready(table: str) -> int:
    """Return the number of future months with partitions, at most ``AHEAD``."""
    newest = partitions_of(table)[-1:]
    now = timezone.now()
    ends = (first_id(month_of(now, later=months + 1)) for months in range(1, AHEAD + 1))
    return sum(bool(newest) and end <= newest[0].upper for end in ends)


def is_owned(table: str) -> bool:
    """Return whether the role may create partitions of this table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass(%s)",
            [connection.ops.quote_name(table)],
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def create_ahead(table: str) -> int:
    """Create missing partitions of the current and the next ``AHEAD`` months. Return their number.

    Rows in the default partition are not moved: the default partition becomes their partition. If
    all of them are from later months, from before a clock was set back, they stay there. Otherwise,
    the partition would contain the months until then, and would not be archived before.
    """
    (*_, newest), created = partitions_of(table), 0
    months = [month_of(timezone.now(), later=number) for number in range(AHEAD + 2)]
    first, last = _ends_of_default(table)
    if first is not None and last is not None and first < first_id(months[-1]):
        # Clients insert rows until the last step, possibly in the next month.
        end = month_of(max(timezone.now(), moment_of(last)), later=2)
        newest = _adopt_default(newest, first_id(end))
        created += 1
    for end in months[1:]:
        if first_id(end) > newest.upper:
            newest = name_month(table, newest.upper, first_id(end))
            with transaction.atomic(), connection.cursor() as cursor:
                limit_wait(cursor)
                create(cursor, newest)
            created += 1
    return created


def _adopt_default(newest: Partition, upper: uuid.UUID) -> Partition:
    """Turn the default partition, with its rows, into the partition of its months."""
    adopted, default = name_month(newest.table, newest.upper, upper), f"{newest.table}_default"
    with limit_removed_on_failure(default):
        with transaction.atomic(), connection.cursor() as cursor:
            limit_wait(cursor)
            run(cursor, "ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}", default, LIMIT)
            check = f"CHECK (id >= '{adopted.lower}' AND id < '{upper}')"
            run(cursor, f"ALTER TABLE {{}} ADD CONSTRAINT {{}} {check} NOT VALID", default, LIMIT)
        with transaction.atomic(), connection.cursor() as cursor:
            run(cursor, "ALTER TABLE {} VALIDATE CONSTRAINT {}", default, LIMIT)
        with transaction.atomic(), connection.cursor() as cursor:
            limit_wait(cursor)
            run(cursor, "ALTER TABLE {} DETACH PARTITION {}", adopted.table, default)
            run(cursor, "ALTER TABLE {} RENAME TO {}", default, adopted.name)
            attach(cursor, adopted)
            run(cursor, "ALTER TABLE {} DROP CONSTRAINT {}", adopted.name, LIMIT)
            run(cursor, "CREATE TABLE {} PARTITION OF {} DEFAULT", default, adopted.table)
            protect(cursor, adopted.table, default)
    return adopted


@contextmanager
def limit_removed_on_failure(table: str) -> Iterator[None]:
    """Remove the limit from the table if the block fails: it would reject rows of later months.

    The removal is repeated while a long statement, such as a backup, locks the table.
    """
    try:
        yield
    except BaseException:
        while _has_limit(table):
            with suppress(OperationalError), transaction.atomic(), connection.cursor() as cursor:
                limit_wait(cursor)
                run(cursor, "ALTER TABLE {} DROP CONSTRAINT {}", table, LIMIT)
                break
            time.sleep(PAUSE)
        raise


def _has_limit(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_constraint"
            " WHERE conrelid = to_regclass(%s) AND conname = %s)",
            [connection.ops.quote_name(table), LIMIT],
        )
        return bool(cursor.fetchone()[0])


def _ends_of_default(table: str) -> tuple[uuid.UUID | None, uuid.UUID | None]:
    """Return the smallest and the greatest id in the default partition."""
    first = "(SELECT id FROM {} ORDER BY id LIMIT 1)"
    last = "(SELECT id FROM {} ORDER BY id DESC LIMIT 1)"
    with connection.cursor() as cursor:
        run(cursor, f"SELECT {first}, {last}", *[f"{table}_default"] * 2)
        row: tuple[uuid.UUID | None, uuid.UUID | None] = cursor.fetchone()
    return row


def name_month(table: str, lower: uuid.UUID, upper: uuid.UUID) -> Partition:
    """Return a partition named after its first month."""
    return Partition(table, f"{table}_{moment_of(lower):%Y_%m}", lower, upper)


def create(cursor: Any, partition: Partition) -> None:
    """Create and attach a partition.

    This takes a weaker lock on the table than ``PARTITION OF``.
    """
    run(cursor, "CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS)", partition.name, partition.table)
    attach(cursor, partition)


def attach(cursor: Any, partition: Partition) -> None:
    """Attach the partition, which exists as a separate table."""
    lower = "MINVALUE" if partition.lower is None else f"'{partition.lower}'"
    bounds = f"FOR VALUES FROM ({lower}) TO ('{partition.upper}')"
    run(cursor, f"ALTER TABLE {{}} ATTACH PARTITION {{}} {bounds}", partition.table, partition.name)
    protect(cursor, partition.table, partition.name)


def protect(cursor: Any, table: str, partition: str) -> None:
    """Set the owner of the partition, and add triggers that it does not inherit from the table.

    A partition inherits row-level triggers, but not statement-level triggers, such as for TRUNCATE.
    On some versions of PostgreSQL, it does not inherit ENABLE ALWAYS.
    """
    cursor.execute(
        """
        SELECT tgname, pg_get_triggerdef(oid), tgtype::int & 1 = 1 OR EXISTS (
            SELECT FROM pg_trigger own WHERE own.tgrelid = to_regclass(%(partition)s)
            AND own.tgname = of_table.tgname)
        FROM pg_trigger of_table WHERE tgrelid = to_regclass(%(table)s) AND NOT tgisinternal
        """,
        {"table": table, "partition": partition},
    )
    for name, definition, exists in cursor.fetchall():
        if not exists:
            cursor.execute(definition.replace(f".{table} ", f".{partition} ", 1))
        run(cursor, "ALTER TABLE {} ENABLE ALWAYS TRIGGER {}", partition, name)
    cursor.execute(
        "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass(%s)", [table]
    )
    run(cursor, "ALTER TABLE {} OWNER TO {}", partition, cursor.fetchone()[0])


def run(cursor: Any, statement: str, *names: str) -> None:
    """Run a statement with the quoted names of tables, indexes or triggers."""
    cursor.execute(statement.format(*map(connection.ops.quote_name, names)))
