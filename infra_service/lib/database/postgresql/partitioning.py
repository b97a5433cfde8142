"""Convert a table to monthly partitions, while clients use the table."""

from __future__ import annotations

import time
from typing import Any, Final

from django.db import OperationalError, connection, transaction
from django.utils import timezone

from infra_service.lib.database.months import first_id, month_of
from infra_service.lib.database.postgresql.lock_waits import limit_wait
from infra_service.lib.database.postgresql.partitions import (
    LIMIT,
    PAUSE,
    Partition,
    attach,
    create_ahead,
    limit_removed_on_failure,
    protect,
    run,
)

_ATTEMPTS: Final = 5


def convert(table: str) -> None:
    """Turn a table in use into the first partition of a new table with the same name.

    Only the last step locks the table, for a few milliseconds. A repeated call continues an
    interrupted conversion, and does nothing after a complete conversion.

    Raises:
        OperationalError: other statements locked the table for too long. Nothing has changed.
        IntegrityError: rows have ids from the future.
    """
    with connection.cursor() as cursor:
        if not _is_plain(cursor, table):
            return
        run(cursor, "SELECT EXISTS (SELECT FROM {})", table)
        (has_rows,) = cursor.fetchone()
    # Clients insert rows until the last step, possibly in the next month.
    until = first_id(month_of(timezone.now(), later=2 if has_rows else 0))
    first = Partition(table, f"{table}_first", None, until)
    with limit_removed_on_failure(table):
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
                time.sleep(PAUSE)
    create_ahead(table)


def _limit_ids(first: Partition) -> None:
    """Add and validate a limit on the ids, so that the last step does not read the table."""
    with transaction.atomic(), connection.cursor() as cursor:
        limit_wait(cursor)
        run(cursor, "ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}", first.table, LIMIT)
        check = f"CHECK (id < '{first.upper}')"
        run(cursor, f"ALTER TABLE {{}} ADD CONSTRAINT {{}} {check} NOT VALID", first.table, LIMIT)
    with transaction.atomic(), connection.cursor() as cursor:
        run(cursor, "ALTER TABLE {} VALIDATE CONSTRAINT {}", first.table, LIMIT)


def _replace_by_partitioned(cursor: Any, first: Partition) -> None:
    """Rename the table and its indexes, and attach it to a new table with the old names.

    The new table has the columns, defaults, indexes, triggers, privileges and owner of the old
    table.
    """
    table, old = first.table, first.name
    run(cursor, "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", table)
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
        run(cursor, "ALTER INDEX {} RENAME TO {}", index, f"{index}_first")
    run(cursor, "ALTER TABLE {} RENAME TO {}", table, old)
    run(cursor, "CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS) PARTITION BY RANGE (id)", table, old)
    for definition, index, is_primary in indexes:
        if is_primary:
            run(cursor, "ALTER TABLE {} ADD CONSTRAINT {} PRIMARY KEY (id)", table, index)
        else:
            cursor.execute(definition)
    for definition, trigger in triggers:
        run(cursor, "DROP TRIGGER {} ON {}", trigger, old)
        cursor.execute(definition)
        run(cursor, "ALTER TABLE {} ENABLE ALWAYS TRIGGER {}", table, trigger)
    cursor.execute(
        """
        WITH granted AS (
            SELECT privilege_type, CASE grantee WHEN 0 THEN 'PUBLIC'
                ELSE quote_ident(pg_get_userbyid(grantee)) END AS role
            FROM pg_class, aclexplode(relacl)
            WHERE oid = %(old)s::regclass AND grantee <> relowner
        )
        SELECT format(
            'ALTER TABLE %%s OWNER TO %%I', %(table)s::regclass, pg_get_userbyid(relowner))
        FROM pg_class WHERE oid = %(old)s::regclass
        UNION ALL
        SELECT format('GRANT %%s ON %%s TO %%s', privilege_type, %(table)s::regclass, role)
        FROM granted
        UNION ALL
        SELECT format('REVOKE ALL ON %%s FROM %%s', %(old)s::regclass, role) FROM granted
        """,
        {"table": table, "old": old},
    )
    for (statement,) in cursor.fetchall():
        cursor.execute(statement)
    attach(cursor, first)
    run(cursor, "ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}", old, LIMIT)
    run(cursor, "CREATE TABLE {} PARTITION OF {} DEFAULT", f"{table}_default", table)
    protect(cursor, table, f"{table}_default")


def _is_plain(cursor: Any, table: str) -> bool:
    cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", [table])
    return bool(cursor.fetchone()[0] == "r")
