"""Detect Citus, an extension that distributes tables of PostgreSQL across several servers.

Citus can execute a correlated subquery or a lateral join on a distributed table only if both sides
are on the same server. Such statements therefore have a second form, which is usually also the form
for SQLite.
"""

from __future__ import annotations

from typing import Any, Final

from django.db import connection

#: The distributed tables by the address of the database, or None without the extension.
_known: Final[dict[tuple[str, str, str], frozenset[str] | None]] = {}

_IS_INSTALLED: Final = "SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"
_TABLES: Final = "SELECT logicalrelid::text FROM pg_dist_partition"


def is_used() -> bool:
    """Return whether the extension is installed. The queries run once per process."""
    return _tables() is not None


def tables() -> frozenset[str]:
    """Return the names of the tables whose rows are on workers."""
    return _tables() or frozenset()


def _tables() -> frozenset[str] | None:
    if connection.vendor != "postgresql":
        return None
    settings = connection.settings_dict
    address = settings["HOST"], str(settings["PORT"]), str(settings["NAME"])
    if address not in _known:
        with connection.cursor() as cursor:
            # Bypass Django's wrapper, so that the first request does not count these statements.
            psycopg_cursor: Any = cursor.cursor
            with connection.wrap_database_errors:
                found = None
                if psycopg_cursor.execute(_IS_INSTALLED).fetchone()[0]:
                    found = frozenset(name for (name,) in psycopg_cursor.execute(_TABLES))
                _known[address] = found
    return _known[address]


def joins_laterally() -> bool:
    """Return whether the database supports lateral joins: PostgreSQL without Citus."""
    return connection.vendor == "postgresql" and not is_used()
