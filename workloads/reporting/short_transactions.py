"""Limit lock waits to one second."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Any, Final

from django.db import OperationalError
from django.db.models import BooleanField, Func

from infra_service.lib.database.busy_timeout import busy_timeout
from workloads.reporting.errors import ClusterBusy

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_WAIT_MS: Final = 1000
_LOCK_NOT_AVAILABLE: Final = "55P03"


class LimitedLockWait(Func):
    """A condition that is always true, and limits lock waits of its transaction to one second.

    PostgreSQL evaluates the conditions of an UPDATE before it waits for the row. Setting the limit
    in a separate statement would require a transaction and another round trip.
    """

    output_field = BooleanField()
    template = f"set_config('lock_timeout', '{LOCK_WAIT_MS}', true) IS NOT NULL"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return TRUE, because ``short_wait`` limits the wait for the database on SQLite."""
        return self.as_sql(compiler, connection, template="TRUE", **context)


@contextlib.contextmanager
def short_wait() -> Iterator[None]:
    """Raise an error if a lock is not available within a second.

    On PostgreSQL, this is the lock on a row, and requires ``LimitedLockWait`` in the statement, or
    in the first statement of the transaction. On SQLite, this is the lock on the database.

    Raises:
        ClusterBusy: another transaction holds the lock.
    """
    try:
        with busy_timeout(LOCK_WAIT_MS):
            yield
    except OperationalError as error:
        cause = error.__cause__
        if (
            getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE
            or getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        ):
            raise ClusterBusy from error
        raise
