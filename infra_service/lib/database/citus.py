"""Detect Citus, an extension that distributes tables of PostgreSQL across several servers.

Citus can execute a correlated subquery or a lateral join on a distributed table only if both sides
are on the same server. Such statements therefore have a second form, which is usually also the form
for SQLite.
"""

from __future__ import annotations

from typing import Any, Final

from django.db import connection

#: Whether the extension is installed, by the address of the database.
_known: Final[dict[tuple[str, str, str], bool]] = {}

_IS_INSTALLED: Final = "SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"


def is_used() -> bool:
    """Return whether the extension is installed. The query runs once per process."""
    if connection.vendor != "postgresql":
        return False
    settings = connection.settings_dict
    address = settings["HOST"], str(settings["PORT"]), str(settings["NAME"])
    if address not in _known:
        with connection.cursor() as cursor:
            # Bypass Django's wrapper, so that the first request does not count this statement.
            psycopg_cursor: Any = cursor.cursor
            with connection.wrap_database_errors:
                psycopg_cursor.execute(_IS_INSTALLED)
                (_known[address],) = psycopg_cursor.fetchone()
    return _known[address]


def joins_laterally() -> bool:
    """Return whether the database supports lateral joins: PostgreSQL without Citus."""
    return connection.vendor == "postgresql" and not is_used()
