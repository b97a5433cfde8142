"""How long SQLite waits for its one write lock."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def busy_timeout(milliseconds: int) -> Iterator[None]:
    """Wait no longer than this in the block; PostgreSQL has limits of its own."""
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
