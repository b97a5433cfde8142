"""Connections that died while they lay in the pool, or that no longer lead to the primary.

What the server or the kernel has already said of a connection waits in its socket. Looking there
costs a system call and no round trip.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Any, Final

import psycopg

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

# read_only_sql_transaction: the server is a standby, or was set to read only.
_NO_PRIMARY: Final = "25006"


def take(pool: ConnectionPool[Any]) -> Any:
    """Return a connection of the pool that is not known to be dead.

    Raises:
        PoolTimeout: there is none in time.
    """
    while not _is_alive(connection := pool.getconn()):
        drop_all(connection)
        pool.putconn(connection)  # the pool opens another one
    return connection


def drop_all(connection: Any) -> None:
    """Close a connection that was lost, and all that lie in its pool.

    What ends one, such as a failover, ends most of them, and some without a word. Those that were
    made after the first loss was noticed are good, and stay.
    """
    pool: ConnectionPool[Any] = connection._pool
    connection.close()
    if connection._created_at > pool._drained_at:
        pool.drain()


def leads_to_no_primary(error: Exception) -> bool:
    """Whether the server refused a write because it takes none."""
    return getattr(error.__cause__, "sqlstate", None) == _NO_PRIMARY


def _is_alive(connection: Any) -> bool:
    """Whether the socket holds no word from the server that the connection has ended.

    A notice or a changed setting may also wait there; neither ends a connection.
    """
    try:
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        while poll.poll(0):
            connection.pgconn.consume_input()
    except (psycopg.Error, OSError):
        return False
    return True
