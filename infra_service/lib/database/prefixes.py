"""The condition for a prefix, as a range that an index serves on both databases."""

from __future__ import annotations

from typing import Final

from django.db.models import Q

#: Columns of names are ordered by their bytes, where nothing sorts after it.
_LAST_CHARACTER: Final = "\U0010ffff"


def starts_with(column: str, prefix: str) -> Q:
    """Return the condition that a column, which is ordered by its bytes, starts with the prefix."""
    return Q((f"{column}__gte", prefix), (f"{column}__lt", prefix + _LAST_CHARACTER))
