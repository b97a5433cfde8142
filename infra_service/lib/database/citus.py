"""Citus, an extension that distributes tables of PostgreSQL over several servers.

It does not execute a subquery or a lateral join for each row of a distributed table, unless both
sides are on the same server. Such statements have a second form, which SQLite mostly shares.
"""

from __future__ import annotations

from typing import Any, Final

from django.db import connection

#: Whether the database has the extension, by its address.
_known: Final[dict[tuple[str, str, str], bool]] = {}


def is_used() -> bool:
    """Return whether the database has the extension; one query per process."""
    if connection.vendor != "postgresql":
        return False
    settings = connection.settings_dict
    address = settings["HOST"], str(settings["PORT"]), str(settings["NAME"])
    if address not in _known:
        with connection.cursor() as cursor:
            # Past Django's wrapper: not a statement of the request that happens to be the first.
            psycopg_cursor: Any = cursor.cursor
            psycopg_cursor.execute("SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL")
            (_known[address],) = psycopg_cursor.fetchone()
    return _known[address]


def joins_laterally() -> bool:
    """Return whether a lateral join may look up each row by a key: only on a single PostgreSQL."""
    return connection.vendor == "postgresql" and not is_used()
