"""Suggestions for a path with a wrong prefix: ``/api/v1/states`` for ``/v1/states``."""

from __future__ import annotations

import re
from typing import Final

from django.urls import Resolver404, resolve
from django.utils.encoding import escape_uri_path

# The prefixes of API keys and tokens, of all other resources, and of unversioned paths.
_PREFIXES: Final = ("/v1/", "/api/v1/", "/api/", "/")
_GIVEN: Final = re.compile(r"/(api/)?(v[0-9]+/)?")


def path_with_right_prefix(path: str) -> str | None:
    """Return the path with the prefix that leads to a view, quoted, or None."""
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
