"""Replace the serial and lineage of a document, and keep every other byte.

Writing the JSON again would round numbers with many digits, and every plan would show a change.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from states.document import sealing
from states.document.work_limit import Effort
from states.errors import StateFormatUnsupported, StateTooComplex

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Maximum members of the top-level object. Terraform writes seven.
_MOST_MEMBERS: Final = 1000
# The patterns never backtrack (``*+``), so they read no text twice. The document is valid JSON.
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NAME: Final = re.compile(rb"\s*+(" + _STRING + rb")\s*+:\s*+")
_SCALAR: Final = re.compile(_STRING + rb"|[^\s,}\]]++")
_TO_BRACKETS: Final = re.compile(
    rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+(?:(?P<open>[\[{]++)|(?P<close>[\]}]++))"
)
_NEXT: Final = re.compile(rb"\s*+([,}])")


def replace_serial_and_lineage(document: bytes, *, serial: int, lineage: str | None) -> bytes:
    """Return the document with its serial and lineage replaced. Keep null values.

    Raises:
        StateFormatUnsupported: a duplicate member makes a value ambiguous.
        StateTooComplex: the document has too many members, or too many brackets for its size.
    """
    head = sealing.read_head(document)
    wanted: dict[str, Any] = {}
    if head.serial is not None:
        wanted["serial"] = serial
    if lineage is not None:
        wanted["lineage"] = lineage
    parts: list[bytes | memoryview] = []
    end = 0
    for name, start, stop in _values(document):
        if name in wanted and document[start : start + 4] != b"null":
            parts += [memoryview(document)[end:start], msgspec.json.encode(wanted[name])]
            end = stop
    return b"".join([*parts, memoryview(document)[end:]])


def _values(document: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each member of the document, and the start and end of its value."""
    effort = Effort(len(document))
    names: set[str] = set()
    position = document.index(b"{") + 1
    while (found := _NAME.match(document, position)) is not None:
        name = msgspec.json.decode(found[1], type=str)
        if name in names:
            raise StateFormatUnsupported("a member is repeated")
        if len(names) == _MOST_MEMBERS:
            raise StateTooComplex
        names.add(name)
        stop = _end_of_value(document, found.end(), effort)
        yield name, found.end(), stop
        position = _found(_NEXT.match(document, stop)).end()


def _end_of_value(document: bytes, start: int, effort: Effort) -> int:
    """Return the end of the value that starts at this position."""
    if document[start : start + 1] not in (b"{", b"["):
        return _found(_SCALAR.match(document, start)).end()
    depth, position = 0, start
    while True:
        effort.spend(1)
        found = _found(_TO_BRACKETS.match(document, position))
        opened, closed = found.span("open"), found.span("close")
        depth += opened[1] - opened[0] - (closed[1] - closed[0])
        if depth <= 0:
            return found.end() + depth  # some brackets close outer containers
        position = found.end()


def _found(match: re.Match[bytes] | None) -> re.Match[bytes]:
    if match is None:
        raise StateFormatUnsupported("it is not JSON")
    return match
