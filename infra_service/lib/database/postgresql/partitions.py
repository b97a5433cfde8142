"""Monthly partitions of a table by its UUIDv7 key.

The first partition has everything older than the oldest month. Each month has a partition, which
the owner of the table creates months ahead. The default partition accepts rows when that was
missed, so that no insert fails; it becomes the partition of its months later.

The service's role needs no privilege on a partition: it reads and writes through the table.
"""

from __future__ import annotations

import re
import time
import uuid
from typing import Any, Final, NamedTuple

from django.db import OperationalError, connection, transaction
from django.utils import timezone
from psycopg import sql

from infra_service.lib.database.months import first_id, moment_of, month_of
from infra_service.lib.database.postgresql.schema import limit_wait

#: The months after the present one for which partitions are created.
AHEAD: Final = 3
# Each attempt waits for the table, and other statements wait behind it.
_ATTEMPTS: Final = 5
_PAUSE: Final = 2.0
_LIMIT: Final = "limit_of_partition"
_BOUNDS: Final = re.compile(r"FROM \((?:'(.+)'|MINVALUE)\) TO \('(.+)'\)", re.ASCII)


class Partition(NamedTuple):
    """A partition: ids from ``lower`` (None: from the smallest) up to, and without, ``upper``."""

    table: str
    name: str
    lower: uuid.UUID | None
    upper: uuid.UUID

    @property
    def is_month(self) -> bool:
        """Return whether it begins with a month, unlike the first partition."""
        return self.lower is not None

    def has(self, id_: uuid.UUID) -> bool:
        return (self.lower is None or self.lower <= id_) and id_ < self.upper

    def drop(self, rows: int) -> bool:
        """Drop this month if it has that number of rows and the first partition has none.

        The first partition then extends to its end. Return whether the numbers were right; without
        that, and after a crash, nothing has changed. Only the owner of the table may do it.
        """
        extended = self._replace(name=f"{self.table}_first", lower=None)
        with transaction.atomic(), connection.cursor() as cursor:
            limit_wait(cursor)
            for name, expected in ((self.name, rows), (extended.name, 0)):
                # Writers of these old rows wait; all other statements continue.
                _run(cursor, "LOCK TABLE {} IN SHARE MODE", name)
                _run(cursor, "SELECT count(*) FROM {}", name)
                if cursor.fetchone()[0] != expected:
                    return False
            for name in (self.name, extended.name):
                _run(cursor, "DROP TABLE {}", name)
            _create(cursor, extended)
        return True


def partitions_of(table: str) -> list[Partition]:
    """Return the partitions in the order of their ids, without the default partition.

    It is empty for a table without partitions, and for a missing table.
    """
    found = [
        Partition(table, name, uuid.UUID(match[1]) if match[1] else None, uuid.UUID(match[2]))
        for name, bounds in _bounds_of(table)
        if (match := _BOUNDS.search(bounds)) is not None
    ]
    return sorted(found, key=lambda partition: partition.upper)


def names_of_partitions(table: str) -> list[str]:
    """Return the names of all partitions, also of the default partition."""
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
    """Return the number of months after the present one that have partitions, at most ``AHEAD``."""
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
    """Create the missing partitions of the present month and the next ``AHEAD`` months.

    Return their number. Rows in the default partition are not moved: it becomes their partition.
    """
    (*_, newest), created = partitions_of(table), 0
    months = [month_of(timezone.now(), later=number) for number in range(AHEAD + 2)]
    last = _last_by_default(table)
    if last is not None:
        end = month_of(max(timezone.now(), moment_of(last)), later=1)
        newest = _adopt_default(newest, first_id(end))
        created += 1
    for end in months[1:]:
        if first_id(end) > newest.upper:
            newest = _named(table, newest.upper, first_id(end))
            with transaction.atomic(), connection.cursor() as cursor:
                limit_wait(cursor)
                _create(cursor, newest)
            created += 1
    return created


def convert(table: str) -> None:
    """Turn a table into the first partition of a table with its name, while clients use it.

    Only the last step locks the table, for some milliseconds. A repeated call continues an
    interrupted one, and does nothing after a complete one.

    Raises:
        OperationalError: other statements held the table for too long; nothing has changed.
        IntegrityError: rows have ids of the future.
    """
    with connection.cursor() as cursor:
        if not _is_plain(cursor, table):
            return
        _run(cursor, "SELECT EXISTS (SELECT FROM {})", table)
        (has_rows,) = cursor.fetchone()
    # Rows arrive until the last step, and its month may begin meanwhile.
    until = first_id(month_of(timezone.now(), later=2 if has_rows else 0))
    first = Partition(table, f"{table}_first", None, until)
    try:
        if has_rows:
            _limit_ids(first)
        for attempt in range(_ATTEMPTS):
            try:
                with transaction.atomic(), connection.cursor() as cursor:
                    limit_wait(cursor)
                    _replace_by_partitioned(cursor, first)
                break
            except OperationalError:
                if attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(_PAUSE)
    except BaseException:
        # The limit must not outlive its months.
        with transaction.atomic(), connection.cursor() as cursor:
            _run(cursor, "ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}", table, _LIMIT)
        raise
    create_ahead(table)


def _limit_ids(first: Partition) -> None:
    """Add and validate the limit of the ids, so that the last step need not read the table."""
    with transaction.atomic(), connection.cursor() as cursor:
        limit_wait(cursor)
        _run(cursor, "ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}", first.table, _LIMIT)
        cursor.execute(
            _text(
                cursor,
                "ALTER TABLE {} ADD CONSTRAINT {} CHECK (id < {upper}) NOT VALID",
                first.table, _LIMIT, upper=sql.Literal(str(first.upper)),
            )
        )  # fmt: skip
    with transaction.atomic(), connection.cursor() as cursor:
        _run(cursor, "ALTER TABLE {} VALIDATE CONSTRAINT {}", first.table, _LIMIT)


def _replace_by_partitioned(cursor: Any, first: Partition) -> None:
    """Rename the table and its indexes, and attach it to a new table with its names.

    The new table has the columns, defaults, indexes, triggers, privileges and owner of the old one.
    """
    table, old = first.table, first.name
    _run(cursor, "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", table)
    if not _is_plain(cursor, table):
        return
    cursor.execute(
        "SELECT pg_get_triggerdef(oid), tgname FROM pg_trigger"
        " WHERE tgrelid = to_regclass(%s) AND NOT tgisinternal",
        [table],
    )
    triggers = cursor.fetchall()
    cursor.execute(
        "SELECT pg_get_indexdef(indexrelid), relname, indisprimary FROM pg_index"
        " JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = to_regclass(%s)",
        [table],
    )
    indexes = cursor.fetchall()
    for _definition, index, _is_primary in indexes:
        _run(cursor, "ALTER INDEX {} RENAME TO {}", index, f"{index}_first")
    _run(cursor, "ALTER TABLE {} RENAME TO {}", table, old)
    _run(cursor, "CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS) PARTITION BY RANGE (id)", table, old)
    for definition, index, is_primary in indexes:
        if is_primary:
            _run(cursor, "ALTER TABLE {} ADD CONSTRAINT {} PRIMARY KEY (id)", table, index)
        else:
            cursor.execute(definition)
    for definition, trigger in triggers:
        _run(cursor, "DROP TRIGGER {} ON {}", trigger, old)
        cursor.execute(definition)
        _run(cursor, "ALTER TABLE {} ENABLE ALWAYS TRIGGER {}", table, trigger)
    cursor.execute(
        """
        SELECT format(
            'ALTER TABLE %%s OWNER TO %%I', %(table)s::regclass, pg_get_userbyid(relowner))
        FROM pg_class WHERE oid = %(old)s::regclass
        UNION ALL
        SELECT format('GRANT %%s ON %%s TO %%s', privilege_type, %(table)s::regclass, role)
        FROM pg_class, aclexplode(relacl), LATERAL (SELECT CASE grantee WHEN 0 THEN 'PUBLIC'
             ELSE quote_ident(pg_get_userbyid(grantee)) END AS role)  AS named
        WHERE oid = %(old)s::regclass AND grantee <> relowner
        UNION ALL
        SELECT format('REVOKE ALL ON %%s FROM %%s', %(old)s::regclass, role)
        FROM pg_class, aclexplode(relacl), LATERAL (SELECT CASE grantee WHEN 0 THEN 'PUBLIC'
             ELSE quote_ident(pg_get_userbyid(grantee)) END AS role)  AS named
        WHERE oid = %(old)s::regclass AND grantee <> relowner
        """,
        {"table": table, "old": old},
    )
    for (statement,) in cursor.fetchall():
        cursor.execute(statement)
    _attach(cursor, first)
    _run(cursor, "ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}", old, _LIMIT)
    _run(cursor, "CREATE TABLE {} PARTITION OF {} DEFAULT", f"{table}_default", table)
    _protect(cursor, table, f"{table}_default")


def _adopt_default(newest: Partition, upper: uuid.UUID) -> Partition:
    """Turn the default partition with its rows into the partition of its months."""
    adopted, default = _named(newest.table, newest.upper, upper), f"{newest.table}_default"
    with transaction.atomic(), connection.cursor() as cursor:
        limit_wait(cursor)
        _run(cursor, "ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}", default, _LIMIT)
        cursor.execute(
            _text(
                cursor,
                "ALTER TABLE {} ADD CONSTRAINT {} CHECK (id >= {lower} AND id < {upper}) NOT VALID",
                default, _LIMIT,
                lower=sql.Literal(str(adopted.lower)), upper=sql.Literal(str(upper)),
            )
        )  # fmt: skip
    with transaction.atomic(), connection.cursor() as cursor:
        _run(cursor, "ALTER TABLE {} VALIDATE CONSTRAINT {}", default, _LIMIT)
    with transaction.atomic(), connection.cursor() as cursor:
        limit_wait(cursor)
        _run(cursor, "ALTER TABLE {} DETACH PARTITION {}", adopted.table, default)
        _run(cursor, "ALTER TABLE {} RENAME TO {}", default, adopted.name)
        _attach(cursor, adopted)
        _run(cursor, "ALTER TABLE {} DROP CONSTRAINT {}", adopted.name, _LIMIT)
        _run(cursor, "CREATE TABLE {} PARTITION OF {} DEFAULT", default, adopted.table)
        _protect(cursor, adopted.table, default)
    return adopted


def _last_by_default(table: str) -> uuid.UUID | None:
    """Return the greatest id in the default partition."""
    with connection.cursor() as cursor:
        _run(cursor, "SELECT id FROM {} ORDER BY id DESC LIMIT 1", f"{table}_default")
        row = cursor.fetchone()
    return row and row[0]


def _named(table: str, lower: uuid.UUID, upper: uuid.UUID) -> Partition:
    return Partition(table, f"{table}_{moment_of(lower):%Y_%m}", lower, upper)


def _create(cursor: Any, partition: Partition) -> None:
    """Create a partition. Attaching it locks the table less than creating it as a partition."""
    _run(cursor, "CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS)", partition.name, partition.table)
    _attach(cursor, partition)


def _attach(cursor: Any, partition: Partition) -> None:
    lower = "MINVALUE" if partition.lower is None else str(partition.lower)
    cursor.execute(
        _text(
            cursor,
            "ALTER TABLE {} ATTACH PARTITION {} FOR VALUES FROM ({lower}) TO ({upper})",
            partition.table, partition.name,
            lower=sql.SQL("MINVALUE") if partition.lower is None else sql.Literal(lower),
            upper=sql.Literal(str(partition.upper)),
        )
    )  # fmt: skip
    _protect(cursor, partition.table, partition.name)


def _protect(cursor: Any, table: str, partition: str) -> None:
    """Give the partition the table's owner, and the triggers that a partition does not inherit.

    It inherits triggers for each row, but neither those for a statement, such as TRUNCATE, nor, on
    some versions of PostgreSQL, that they always fire.
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
        _run(cursor, "ALTER TABLE {} ENABLE ALWAYS TRIGGER {}", partition, name)
    cursor.execute(
        "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass(%s)", [table]
    )
    _run(cursor, "ALTER TABLE {} OWNER TO {}", partition, cursor.fetchone()[0])


def _is_plain(cursor: Any, table: str) -> bool:
    cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", [table])
    return bool(cursor.fetchone()[0] == "r")


def _run(cursor: Any, statement: str, *names: str) -> None:
    """Run a statement with these names of tables, indexes and triggers."""
    cursor.execute(_text(cursor, statement, *names))


def _text(cursor: Any, statement: str, *names: str, **values: sql.Composable) -> str:
    composed = sql.SQL(statement).format(*map(sql.Identifier, names), **values)  # type: ignore[arg-type]  # not a literal
    return composed.as_string(cursor.cursor.connection)
