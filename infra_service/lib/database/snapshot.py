"""Read with several statements from a single snapshot of the database."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from django.db import Error, connections

from infra_service.lib.database import citus

if TYPE_CHECKING:
    from collections.abc import Iterator

# Django's transactions would lock the database on SQLite, and are READ COMMITTED on PostgreSQL.
_BEGIN: Final = {
    "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "sqlite": "BEGIN DEFERRED",
}


@contextmanager
def one_snapshot(using: str) -> Iterator[None]:
    """Hide changes by other connections that are committed during the block.

    The block must only read. Within a transaction, and on Citus, which has no snapshot of several
    servers, the block has no effect.
    """
    connection = connections[using]
    if connection.in_atomic_block or citus.is_used():
        yield
        return
    with connection.cursor() as cursor:  # keeps the connection during the block
        cursor.execute(_BEGIN[connection.vendor])
        try:
            yield
        finally:
            with suppress(Error):  # the connection is lost
                cursor.execute("ROLLBACK")
