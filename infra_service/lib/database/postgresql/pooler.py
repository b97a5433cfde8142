"""Detect a pooler such as pgbouncer, and the features that it breaks.

In transaction mode, each transaction may use another server process. Session state, such as
prepared statements and settings, is lost or belongs to another client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg

if TYPE_CHECKING:
    from collections.abc import Mapping

# A pooler may distribute statements to several server processes.
_ROUNDS: Final = 5


def is_between(connection: Any) -> bool:
    """Return whether a pooler is between the client and the server. The check costs a round trip.

    A pooler reports its own process id for the connection instead of the id of the server process.
    """
    process = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
    return bool(process != connection.info.backend_pid)


def breaks_prepared_statements(parameters: Mapping[str, Any]) -> bool:
    """Return whether two connections with these parameters mix up their prepared statements.

    Both connections use the same statement names. Only a pooler that supports prepared statements,
    such as pgbouncer 1.21 or later, keeps the statements of the two connections apart.

    Raises:
        OperationalError: the database does not respond.
    """
    given = {**parameters, "prepare_threshold": 0, "autocommit": True}
    with psycopg.connect(**given) as first, psycopg.connect(**given) as second:
        try:
            for number in range(_ROUNDS):
                first.execute(f"SELECT 'first {number}'".encode())
                second.execute(f"SELECT 'second {number}'".encode())
        except psycopg.ProgrammingError:
            return True
    return False
