"""Django's SQLite backend with a limit on waiting writers, which leaves threads to readers.

Readers never wait. A writer that finds the database locked waits for its timeout and blocks its
thread, so a long lock by another process could block every thread. Only a limited number of writers
waits for the lock; others wait a second for a place, and are then rejected.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from typing import Final

from django.db import OperationalError
from django.db.backends.sqlite3 import base

#: Three quarters of a gunicorn worker's threads.
_MOST: Final = max(1, int(os.environ.get("WEB_THREADS", "32")) * 3 // 4)
#: Seconds until a place is free, unless the lock is held for long.
_QUEUE_TIMEOUT: Final = 1.0

places: Final = threading.BoundedSemaphore(_MOST)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection whose transactions begin in turn."""

    transaction_mode: str

    def _start_transaction_under_autocommit(self) -> None:
        if not places.acquire(timeout=_QUEUE_TIMEOUT):
            # The error that SQLite raises after its own timeout.
            busy = sqlite3.OperationalError("database is locked")
            busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise OperationalError(*busy.args) from busy
        # Always close the cursor: Django would leave it to garbage collection, with an error that
        # refers to it. Freeing it blocks while this thread uses the connection, for example while
        # its next transaction waits for the lock.
        try:
            with self.cursor() as cursor:
                cursor.execute(f"BEGIN {self.transaction_mode}")
        finally:
            places.release()
