"""Release versions, and texts that sort in the order of the versions.

The order is the precedence of Semantic Versioning 2.0.0: numbers by value, a pre-release before its
release, numeric before alphanumeric identifiers, and fewer identifiers before more. Text after
``+`` is ignored. Omitted numbers are 0.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: The maximum number of characters of a version.
MOST_CHARACTERS: Final = 100

_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = re.compile(
    rf"({_NUMBER}(?:\.{_NUMBER}){{0,2}})(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?", re.ASCII
)
_PARTS: Final = 3
#: The text after the numbers of a release, which sorts the release after its pre-releases.
_RELEASE: Final = "~"
_PRE_RELEASE: Final = "-"
#: The end of an identifier, which sorts before all characters of an identifier.
_END: Final = " "


def sort_key(version: str) -> str | None:
    """Return an ASCII text that sorts like the version, or None if the version is invalid."""
    found = _VERSION.fullmatch(version) if len(version) <= MOST_CHARACTERS else None
    if found is None:
        return None
    numbers, pre_release = found[1].split("."), found[2]
    core = "".join(map(_number, [*numbers, *["0"] * (_PARTS - len(numbers))]))
    if pre_release is None:
        return core + _RELEASE
    return core + _PRE_RELEASE + "".join(map(_identifier, pre_release.split(".")))


def _number(digits: str) -> str:
    # The length comes first, so that a longer number is greater.
    return f"{len(digits):02d}{digits}"


def _identifier(text: str) -> str:
    if text.isdigit():
        return f"0{_number(text.lstrip('0') or '0')}{_END}"
    return f"1{text}{_END}"


class VersionComparison(NamedTuple):
    """A comparison with the version of the object ``name``.

    ``operator`` is ``EXISTS``, or one of ``=``, ``<``, ``<=``, ``>`` and ``>=`` for a comparison
    with ``key``, the sort key of a version.
    """

    name: str
    operator: str
    key: str | None = None
