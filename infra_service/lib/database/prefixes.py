"""Express a prefix condition as a range, which an index serves on both databases."""

from __future__ import annotations

from typing import Final

from django.db.models import Q

#: The last character in byte order.
LAST_CHARACTER: Final = "\U0010ffff"


def starts_with(column: str, prefix: str) -> Q:
    """Return the condition that a column, which is in byte order, starts with the prefix."""
    return Q((f"{column}__gte", prefix), (f"{column}__lt", prefix + LAST_CHARACTER))
