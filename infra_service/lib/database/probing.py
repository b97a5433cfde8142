"""Test the database within a time limit, even if all pooled connections are blocked."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, cast

from django.db import OperationalError, connection

from infra_service.lib.database.deadline import within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

#: The timeout for connecting to each host, and for each statement, in seconds.
_BOUND: Final = 2


@contextlib.contextmanager
def connection_of_its_own() -> Iterator[BaseDatabaseWrapper]:
    """Open a connection outside the pool, which may be exhausted, and close it after the block.

    If the server rejects another connection, for example because of its limit, use an idle
    connection of the pool, unless the server is read-only. SQLite uses the existing connection,
    because its readers never wait.
    """
    wrapper = cast("Any", connection)
    if wrapper.vendor != "postgresql":
        yield wrapper
        return
    own = wrapper.copy()
    own.settings_dict["OPTIONS"] |= {
        "pool": None,
        "connect_timeout": _BOUND,
        "request_timeouts": {"statement_timeout": _BOUND},
    }
    with wrapper.wrap_database_errors:
        wrapper.watch.refuse_if_silent()
    try:
        with contextlib.closing(own):
            try:
                own.ensure_connection()
            except OperationalError:
                if not _has_idle_connection(wrapper.pool):
                    raise
                with within(_BOUND):
                    if _is_read_only(wrapper):
                        raise
                    yield wrapper
            else:
                yield own
    except OperationalError:
        wrapper.watch.suspect()  # so that later probes fail immediately
        raise


def _has_idle_connection(pool: Any) -> bool:
    """Return whether this process has opened a pool, and one of its connections is idle."""
    return pool is not None and not pool.closed and bool(pool.get_stats()["pool_available"])


def _is_read_only(wrapper: BaseDatabaseWrapper) -> bool:
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')")
        return bool(cursor.fetchone() == ("on",))
