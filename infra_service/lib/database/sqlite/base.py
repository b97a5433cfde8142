"""Django's SQLite backend with a limit on waiting writers, which keeps threads free for readers.

Readers never wait. A writer that finds the database locked waits and blocks its thread, so a long
lock of another process could block every thread. Only a limited number of writers waits for the
lock. Additional writers wait one second for a place, and are then rejected.
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
#: The maximum seconds to wait for a place.
_QUEUE_TIMEOUT: Final = 1.0

places: Final = threading.BoundedSemaphore(_MOST)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that waits for a place before it begins a transaction."""

    transaction_mode: str

    def _start_transaction_under_autocommit(self) -> None:
        if not places.acquire(timeout=_QUEUE_TIMEOUT):
            # Raise the error that SQLite raises after its own timeout.
            busy = sqlite3.OperationalError("database is locked")
            busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise OperationalError(*busy.args) from busy
        # Always close the cursor. Django would leave a cursor to garbage collection if an error
        # refers to the cursor. Destroying the cursor then blocks while this thread uses the
        # connection, for example while the next transaction waits for the lock.
        try:
            with self.cursor() as cursor:
                cursor.execute(f"BEGIN {self.transaction_mode}")
        finally:
            places.release()
