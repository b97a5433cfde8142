"""Detection of a pooler such as pgbouncer, and of the features that it breaks.

In transaction mode, each transaction may use another server process: session state such as prepared
statements and settings is lost, or belongs to another client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg

if TYPE_CHECKING:
    from collections.abc import Mapping

# A pooler may spread statements over several server processes.
_ROUNDS: Final = 5


def is_between(connection: Any) -> bool:
    """Return whether there is a pooler: statements and connection then have different processes.

    A pooler reports its own process id. This takes a round trip.
    """
    process = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
    return bool(process != connection.info.backend_pid)


def breaks_prepared_statements(parameters: Mapping[str, Any]) -> bool:
    """Return whether two connections with these parameters mix up each other's prepared statements.

    Both use the same names for them. Only a pooler that supports prepared statements, such as
    pgbouncer from 1.21 on, separates them.

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
