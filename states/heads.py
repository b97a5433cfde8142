"""Another serial and lineage in a document, and every other byte as it was.

Writing the JSON anew would round a number of 25 digits, and every plan would show a change.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from states import documents
from states.errors import StateFormatUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
#: What stands before the first value and before each other one; and what ends the document.
_NAME: Final = re.compile(rb'\s*[{,]\s*("(?:[^"\\]|\\.)*")\s*:\s*')
_END: Final = re.compile(rb"\s*\{?\s*\}\s*\Z")


def with_head(document: bytes, *, serial: int, lineage: str | None) -> bytes:
    """Return the document with this serial and lineage, where it has them; a null one stays.

    Raises:
        StateFormatUnsupported: a name stands twice, so that nobody knows which one counts.
    """
    head = documents.read_head(document)
    wanted: dict[str, Any] = {}
    if head.serial is not None:
        wanted["serial"] = serial
    if lineage is not None:
        wanted["lineage"] = lineage
    parts, end = [], 0
    for name, start, stop in _values(document):
        if name in wanted and document[start:stop] != b"null":
            parts += [document[end:start], msgspec.json.encode(wanted[name])]
            end = stop
    return b"".join([*parts, document[end:]])


def _values(document: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield where the value of each member of the object stands, from start to stop.

    The decoder has found the values but does not tell where, so here they are walked over. A name
    that stands twice is one that the decoder gives once.
    """
    position = 0
    for name, raw in _members.decode(document).items():
        value = memoryview(raw)
        found = _NAME.match(document, position)
        if found is None or msgspec.json.decode(found[1]) != name:
            raise _ambiguous()
        start, position = found.end(), found.end() + len(value)
        if memoryview(document)[start:position] != value:
            raise _ambiguous()
        yield name, start, position
    if _END.match(document, position) is None:
        raise _ambiguous()


def _ambiguous() -> StateFormatUnsupported:
    return StateFormatUnsupported("a name stands twice in it")
