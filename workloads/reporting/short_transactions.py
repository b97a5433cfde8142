"""A transaction that waits for locks no longer than a second."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Final

from django.db import OperationalError, connection, transaction

from infra_service.database.patience import busy_timeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rest_framework.exceptions import APIException

LOCK_WAIT_MS: Final = 1000
_LOCK_NOT_AVAILABLE: Final = "55P03"


@contextlib.contextmanager
def short_transaction(busy: type[APIException]) -> Iterator[None]:
    """Run the block in a transaction; when a lock cannot be had in a second, raise `busy`.

    On PostgreSQL that is the lock of a row, on SQLite that of the whole database.
    """
    try:
        with busy_timeout(LOCK_WAIT_MS), transaction.atomic():
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}")
            yield
    except OperationalError as error:
        cause = error.__cause__
        if (
            getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE
            or getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        ):
            raise busy from error
        raise
