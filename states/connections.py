"""What a database connection keeps in memory after a large document has gone through it."""

from __future__ import annotations

from typing import Final

from django.db import connection

#: A new connection takes a few milliseconds, which is little beside a document of this size.
_LARGE: Final = 8 * 1024 * 1024


def drop_large_buffers(size_bytes: int) -> None:
    """Close the connection after a large document, for libpq never shrinks its buffers.

    Otherwise each connection of the pool would keep up to twice the largest document that it has
    ever carried.
    """
    is_pooled = connection.settings_dict["OPTIONS"].get("pool")
    if size_bytes < _LARGE or not is_pooled or connection.in_atomic_block:
        return
    connection.connection.close()  # the pool opens another one
    connection.close()
