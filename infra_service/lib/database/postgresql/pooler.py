"""A pooler such as pgbouncer between us and the server, and what must not be done through it.

In transaction mode each transaction may meet another server process: what belongs to a session,
such as a prepared statement or a setting, is not there any more, or is somebody else's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg

if TYPE_CHECKING:
    from collections.abc import Mapping

# A pooler may spread statements over several server processes.
_ROUNDS: Final = 5


def is_between(connection: Any) -> bool:
    """Whether the process that runs statements is another than the one that took the connection.

    A pooler names a process of its own making, because it has no other to name. One round trip.
    """
    process = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
    return bool(process != connection.info.backend_pid)


def breaks_prepared_statements(parameters: Mapping[str, Any]) -> bool:
    """Whether two connections with these parameters disturb each other's prepared statements.

    Each numbers its own, so the names are the same, which only a pooler that knows of prepared
    statements, such as pgbouncer from 1.21 on, keeps apart.

    Raises:
        OperationalError: the database does not answer.
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
