"""Detect and drop stale connections of a pool: dead, or connected to a former primary.

The socket shows whether a connection is closed. This costs a system call, but no round trip.
"""

from __future__ import annotations

import select
import threading
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import psycopg

from infra_service.lib.database import deadline

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

# read_only_sql_transaction: the server is a standby, or was set to read-only.
_NO_PRIMARY: Final = "25006"

# All connections that pools have opened. Unreferenced connections are garbage collected.
_opened: Final[WeakSet[Any]] = WeakSet()
_counting: Final = threading.Lock()


def check_out(pool: ConnectionPool[Any]) -> Any:
    """Return a connection of the pool that is not known to be dead.

    Raises:
        PoolTimeout: no connection becomes free in time.
    """
    left = deadline.remaining()
    timeout = (left,) if left < pool.timeout else ()
    while not _is_alive(connection := pool.getconn(*timeout)):
        drop_all(connection)
        pool.putconn(connection)  # the pool opens a replacement
    return connection


def count(connection: Any) -> None:
    """Count a new connection of a pool until it is closed."""
    with _counting:
        _opened.add(connection)


def open_in(pool: ConnectionPool[Any]) -> int:
    """Return the number of open connections of the pool, in use or not.

    The pool's ``pool_size`` also counts connections that the pool is trying to open. While the
    server is down, this applies to all counted connections.
    """
    with _counting:
        opened = list(_opened)
    return sum(one._pool is pool and not one.closed for one in opened)


def drop_all(connection: Any) -> None:
    """Close a lost connection, and all idle connections of its pool.

    The cause of a loss, such as a failover, usually ends most connections, some without notice.
    Connections opened after the first detected loss are kept.
    """
    pool: ConnectionPool[Any] = connection._pool
    connection.close()
    if connection._created_at > pool._drained_at:
        pool.drain()


def is_read_only_server(error: Exception) -> bool:
    """Return whether the server rejected a write because it is read-only."""
    return getattr(error.__cause__, "sqlstate", None) == _NO_PRIMARY


def _is_alive(connection: Any) -> bool:
    """Return whether the connection is open, according to the data in its socket.

    The data may be a notice or a changed setting, which does not end the connection.
    """
    try:
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        while poll.poll(0):
            connection.pgconn.consume_input()
    except (psycopg.Error, OSError):
        return False
    return True
