"""Suggestions for paths with a wrong prefix or a misspelt custom method.

``/api/v1/states`` for ``/v1/states``, and ``…:force-unlock`` for ``…:forceUnlock``.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from django.urls import Resolver404, get_resolver, resolve
from django.utils.encoding import escape_uri_path

from filterlang.spelling import closest
from infra_service.lib.api.routes import routes

# The prefixes of API keys and tokens, of all other resources, and of unversioned paths.
_PREFIXES: Final = ("/v1/", "/api/v1/", "/api/", "/")
_GIVEN: Final = re.compile(r"/(api/)?(v[0-9]+/)?")
# A method after a colon, or after a slash, as in other APIs.
_METHOD: Final = re.compile(r"(/.{1,200})[:/]([A-Za-z_-]{2,40})/?")
_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_IN_PATTERN: Final = re.compile(r"(?<!\?):([a-z-]+)")


def similar_path(path: str) -> str | None:
    """Return a similar path that leads to a view, quoted, or None."""
    return _with_right_prefix(path) or _with_right_method(path)


def _with_right_prefix(path: str) -> str | None:
    rest = _GIVEN.sub("", path, count=1)
    for prefix in _PREFIXES:
        try:
            found = resolve(prefix + rest)
        except Resolver404:
            continue
        # The admin's catch-all view, which returns 404, matches every path below it.
        if found.func.__name__ != "catch_all_view":
            return escape_uri_path(prefix + rest)
    return None


def _with_right_method(path: str) -> str | None:
    named = _METHOD.fullmatch(path)
    if named is None:
        return None
    base, written = named.groups()
    method = closest(_WORD_START.sub("-", written).replace("_", "-").lower(), _methods())
    return _with_right_prefix(f"{base}:{method}") if method else None


@functools.cache
def _methods() -> frozenset[str]:
    """Return the names of all custom methods, which stand after a colon in a path."""
    everywhere = routes(get_resolver().url_patterns)
    return frozenset(
        name for route in everywhere for name in _IN_PATTERN.findall(str(route.pattern))
    )
