"""Django's SQLite backend, in which writers that wait leave threads to readers.

Readers wait for nobody, but a writer that finds the database locked waits for its time-out in the
thread that it has. While another process holds the lock for long, writers would come to hold every
thread. So only so many wait for the lock; others wait a second for a place, and are refused.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from typing import Final

from django.db import OperationalError
from django.db.backends.sqlite3 import base

#: Three quarters of the threads that gunicorn gives to a worker.
_MOST: Final = max(1, int(os.environ.get("WEB_THREADS", "32")) * 3 // 4)
#: Seconds in which a place becomes free, unless the lock is held for long.
_PATIENCE: Final = 1.0

places: Final = threading.BoundedSemaphore(_MOST)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection whose transactions begin in turn."""

    transaction_mode: str

    def _start_transaction_under_autocommit(self) -> None:
        if not places.acquire(timeout=_PATIENCE):
            # As SQLite says it at the end of its own time-out.
            busy = sqlite3.OperationalError("database is locked")
            busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise OperationalError(*busy.args) from busy
        # Closed, whatever comes of it: Django leaves the cursor to the garbage, with an error that
        # refers to it. Who frees it has to wait until this thread does nothing with the connection,
        # which may be for as long as its next transaction waits for the lock.
        try:
            with self.cursor() as cursor:
                cursor.execute(f"BEGIN {self.transaction_mode}")
        finally:
            places.release()
