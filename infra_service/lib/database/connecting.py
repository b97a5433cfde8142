"""Connection settings of PostgreSQL, and the detection of dead connections.

These are defaults of libpq parameters that ``DATABASE_URL`` can set (``?connect_timeout=5``).
Without them a connection waits for minutes for a silent host.
"""

from __future__ import annotations

from typing import Any, Final

#: In seconds, except for ``tcp_user_timeout`` in milliseconds.
_DEFAULTS: Final[dict[str, str | int]] = {
    # Per host: each unreachable host delays a new connection by this time.
    "connect_timeout": 3,
    # Disconnect after 6 s without an acknowledgement of sent data,
    "tcp_user_timeout": 6000,
    # and after 6 s of silence while waiting for a response or in the pool.
    "keepalives": 1,
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    # After a failover the former primary still accepts connections, and rejects writes.
    "target_session_attrs": "read-write",
}


#: A replica is read-only, and is read only while it is a standby.
_OF_REPLICA: Final = {"target_session_attrs": "any"}


def with_defaults(options: dict[str, Any], *, is_replica: bool = False) -> dict[str, Any]:
    """Return the options of a connection, with these defaults."""
    return {**_DEFAULTS, **(_OF_REPLICA if is_replica else {}), **options}
