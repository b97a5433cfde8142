"""The plan that PostgreSQL chooses for a repeated statement."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.models.lookups import IsNull

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def planned_for_values(queryset: Any) -> Iterator[None]:
    """Let PostgreSQL plan what is read in this block for its own values, where there are any.

    A prepared statement that has met common values five times is given one plan for all, and walks
    the whole table when it then meets a rare one.
    """
    connection = connections[queryset.db]
    if connection.vendor != "postgresql" or not is_selective(queryset):
        yield
        return
    with connection.cursor() as cursor:  # keeps the connection for as long as the block
        driver: Any = cursor.connection
        threshold, driver.prepare_threshold = driver.prepare_threshold, None
        try:
            yield
        finally:
            driver.prepare_threshold = threshold


def is_selective(queryset: Any) -> bool:
    """Whether the rows are selected by values, of which some may be rare and some common."""
    return any(not isinstance(leaf, IsNull) for leaf in queryset.query.where.leaves())
