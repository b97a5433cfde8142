"""Suggest a path instead of a path with a wrong prefix or a misspelt word or custom method.

Examples: ``/api/v1/states`` for ``/v1/states``, ``…:force-unlock`` for ``…:forceUnlock``, and
``/v1/api-keys`` for ``/v1/apikeys``.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from django.urls import Resolver404, get_resolver, resolve
from django.utils.encoding import escape_uri_path

from filterlang.spelling import closest
from infra_service.lib.api.routes import routes

# The prefixes of paths: API keys and tokens, other resources, and unversioned paths.
_PREFIXES: Final = ("/v1/", "/api/v1/", "/api/", "/")
_GIVEN: Final = re.compile(r"/(api(?:/|$))?(v[0-9]+(?:/|$))?")
# A custom method after a colon, or after a slash as in other APIs.
_METHOD: Final = re.compile(r"(/.{1,200})[:/]([A-Za-z_-]{2,40})/?")
_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_IN_PATTERN: Final = re.compile(r"(?<!\?):([a-z-]+)")
# A variable in a pattern: a group of a regular expression, or <…>.
_VARIABLE: Final = re.compile(r"\(\?P<\w+>[^)]*\)|<[^>]*>")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_-]{2,40}")
#: Names of custom methods in other APIs, with their names in this API.
_SYNONYMS: Final = {"unlock": "force-unlock", "rollback": "restore", "revert": "restore"}
#: The maximum number of segments that are compared with known words.
_MOST_SEGMENTS: Final = 8


def similar_path(path: str) -> str | None:
    """Return a similar path that resolves to a view, percent-encoded, or None."""
    return _with_right_prefix(path) or _with_right_method(path) or _with_right_word(path)


def _with_right_prefix(path: str) -> str | None:
    rest = _GIVEN.sub("", path, count=1)
    if not rest:
        return None
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
    name = _as_in_paths(written)
    method = _SYNONYMS.get(name) or closest(name, _methods())
    return _with_right_prefix(f"{base}:{method}") if method else None


def _with_right_word(path: str) -> str | None:
    """Return the path with one segment replaced by a similar word from known paths, or None."""
    segments = _GIVEN.sub("", path, count=1).split("/")
    for number, segment in enumerate(segments[:_MOST_SEGMENTS]):
        if _WORD.fullmatch(segment) is None:
            continue
        if word := closest(_as_in_paths(segment), _words() - {segment}):
            replaced = [*segments[:number], word, *segments[number + 1 :]]
            if found := _with_right_prefix("/" + "/".join(replaced)):
                return found
    return None


def _as_in_paths(name: str) -> str:
    return _WORD_START.sub("-", name).replace("_", "-").lower()


@functools.cache
def _methods() -> frozenset[str]:
    """Return the names of all custom methods, which follow a colon in a path."""
    everywhere = routes(get_resolver().url_patterns)
    return frozenset(
        name for route in everywhere for name in _IN_PATTERN.findall(str(route.pattern))
    )


@functools.cache
def _words() -> frozenset[str]:
    """Return the words between the slashes of all known paths."""
    everywhere = routes(get_resolver().url_patterns)
    words = (
        segment.partition(":")[0].strip("^$?")
        for route in everywhere
        for segment in _VARIABLE.sub("", str(route.pattern)).split("/")
    )
    return frozenset(word for word in words if _WORD.fullmatch(word))
