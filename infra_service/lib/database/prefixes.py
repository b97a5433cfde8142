"""Express a prefix condition as a range, which an index serves on both databases."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Q

from filterlang.lookups import Piece, TextMatches

#: The last character in byte order.
_LAST_CHARACTER: Final = "\U0010ffff"
#: UTF-8 cannot encode the code points from the first to the last surrogate.
_BEFORE_SURROGATES: Final = 0xD7FF
_AFTER_SURROGATES: Final = 0xE000


def starts_with(model: Any, column: str, prefix: str) -> Q:
    """Return the condition that a column starts with the prefix.

    The condition is a range only for a column in byte order. In the order of a language, a range
    would omit texts.
    """
    if column not in getattr(model, "byte_ordered", ()):
        return Q((f"{column}__{TextMatches.lookup_name}", Piece(prefix, at_start=True)))
    end = end_of(prefix)
    least = Q((f"{column}__gte", prefix))
    return least if end is None else least & Q((f"{column}__lt", end))


def end_of(prefix: str) -> str | None:
    """Return the first text in byte order that follows all texts with the prefix, if any."""
    rest = prefix.rstrip(_LAST_CHARACTER)
    if not rest:
        return None
    code = ord(rest[-1])
    return rest[:-1] + chr(_AFTER_SURROGATES if code == _BEFORE_SURROGATES else code + 1)
