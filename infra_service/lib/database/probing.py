"""Test the database within a time limit, even if all pooled connections are blocked."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, cast

from django.db import OperationalError, connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

#: The timeout for connecting to each host, and for each statement, in seconds.
_BOUND: Final = 2


@contextlib.contextmanager
def connection_of_its_own() -> Iterator[BaseDatabaseWrapper]:
    """Open a connection outside the pool, which may be exhausted, and close it after the block.

    SQLite uses the existing connection, because its readers never wait.
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
            yield own
    except OperationalError:
        wrapper.watch.suspect()  # so that later probes fail immediately
        raise
