"""Find duplicate member names in JSON objects."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


class _DuplicateError(Exception):
    """A JSON object with a duplicate member name."""


def duplicate_member(body: bytes | bytearray) -> str | None:
    """Return a duplicate member name of an object in valid JSON, or None.

    Decoders keep the last member, but a proxy may have checked the first.
    """
    try:
        # Numbers are not converted, because Python rejects long integers.
        json.loads(body, object_pairs_hook=_unique, parse_int=str, parse_float=str)
    except _DuplicateError as found:
        return str(found)
    return None


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise _DuplicateError(next(name for name, count in counts.items() if count > 1))
