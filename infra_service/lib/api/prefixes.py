"""The path that somebody meant who took another prefix: ``/v1/states`` for ``/api/v1/states``."""

from __future__ import annotations

import re
from typing import Final

from django.urls import Resolver404, resolve
from django.utils.encoding import escape_uri_path

# What API keys and tokens have, what all else has, and what belongs to no version.
_PREFIXES: Final = ("/v1/", "/api/v1/", "/api/", "/")
_GIVEN: Final = re.compile(r"/(api/)?(v[0-9]+/)?")


def path_with_right_prefix(path: str) -> str | None:
    """Return the same path where there is a view, quoted; None if no prefix makes it one."""
    rest = _GIVEN.sub("", path, count=1)
    for prefix in _PREFIXES:
        try:
            found = resolve(prefix + rest)
        except Resolver404:
            continue
        # The admin has a view for every path below it, which says that there is nothing.
        if found.func.__name__ != "catch_all_view":
            return escape_uri_path(prefix + rest)
    return None
