"""Default connection parameters of PostgreSQL, which detect dead connections.

``DATABASE_URL`` can override these libpq parameters (``?connect_timeout=5``). Without them, a
connection waits several minutes for a host that does not respond.
"""

from __future__ import annotations

from typing import Any, Final

#: The parameters. Times are in seconds, except ``tcp_user_timeout``, which is in milliseconds.
_DEFAULTS: Final[dict[str, str | int]] = {
    # The timeout per host. Each unreachable host delays a new connection by this time.
    "connect_timeout": 3,
    # Disconnect after 6 s without an acknowledgement of sent data,
    "tcp_user_timeout": 6000,
    # and after 6 s of silence while waiting for a response or in the pool.
    "keepalives": 1,
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    # After a failover, the former primary may still accept connections, but rejects writes.
    "target_session_attrs": "read-write",
}


#: A replica is read-only. The service reads a replica only while it is a standby.
_OF_REPLICA: Final = {"target_session_attrs": "any"}


def with_defaults(options: dict[str, Any], *, is_replica: bool = False) -> dict[str, Any]:
    """Return the options of a connection, with these defaults."""
    return {**_DEFAULTS, **(_OF_REPLICA if is_replica else {}), **options}
