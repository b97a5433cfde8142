"""Control the query plans of repeated statements on PostgreSQL."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.models.lookups import IsNull

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def planned_for_values(queryset: Any) -> Iterator[None]:
    """Disable generic plans for the queries in the block if the rows depend on values.

    After five executions with common values, PostgreSQL would use a generic plan for a prepared
    statement, and read the whole table for a rare value.
    """
    connection = connections[queryset.db]
    if connection.vendor != "postgresql" or not is_selective(queryset):
        yield
        return
    with connection.cursor() as cursor:  # keeps the connection during the block
        driver: Any = cursor.connection
        threshold, driver.prepare_threshold = driver.prepare_threshold, None
        try:
            yield
        finally:
            driver.prepare_threshold = threshold


def is_selective(queryset: Any) -> bool:
    """Return whether the rows depend on values, some of which may be rare and others common."""
    return any(not isinstance(leaf, IsNull) for leaf in queryset.query.where.leaves())
