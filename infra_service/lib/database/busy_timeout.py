"""Change the timeout for SQLite's write lock."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

from django.db import OperationalError, connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def busy_timeout(milliseconds: int) -> Iterator[None]:
    """Limit the wait for SQLite's lock in the block. Do nothing on other databases."""
    if connection.vendor != "sqlite":
        yield
        return
    usual = int(1000 * connection.settings_dict["OPTIONS"].get("timeout", 5))
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {milliseconds:d}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {usual:d}")


def without_waiting(write: Callable[[], int]) -> bool:
    """Run ``write`` without waiting for SQLite's lock, and return whether it changed a row."""
    with busy_timeout(0):
        try:
            return bool(write())
        except OperationalError as error:
            if getattr(error.__cause__, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                raise
            return False
