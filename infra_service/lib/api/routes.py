from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.urls import URLPattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def routes(patterns: Sequence[Any]) -> Iterator[URLPattern]:
    """Yield the routes in these patterns, and in all patterns that they include."""
    for entry in patterns:
        if isinstance(entry, URLPattern):
            yield entry
        else:
            yield from routes(entry.url_patterns)
