"""Values of documents as readable JSON of limited length, for admin pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from states.document import format4
from states.document.hidden import MASK, encode
from states.document.work_limit import Effort

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Maximum rows of all tables on a page, and maximum characters of a value. They keep pages smaller
#: than documents.
MOST_ROWS: Final = 500
MOST_SHOWN: Final = 2_000
#: A value with more maps and lists is shown on a single line.
_INDENTED: Final = 50


def decoded(items: msgspec.Raw) -> list[dict[str, Any]]:
    """Return the items of a page of a document. Numbers keep their digits.

    Raises:
        StateFormatUnsupported, StateTooComplex: see ``format4.decode``.
    """
    found: list[dict[str, Any]] = format4.decode(items, Effort(len(items)))
    return found


def json_text(value: Any) -> str:
    """Return a value as JSON for display. Only the placeholder of a hidden value is unquoted."""
    if value == MASK:
        return MASK
    written = bytes(encode(value))
    # Indentation would make deeply nested values a thousand times as long.
    if written.count(b"{") + written.count(b"[") <= _INDENTED:
        written = msgspec.json.format(written, indent=2)
    return cut(written.decode())


def cut(text: str) -> str:
    """Return the text, or the beginning of a long text with the number of omitted characters."""
    more = len(text) - MOST_SHOWN
    return text if more <= 0 else f"{text[:MOST_SHOWN]}… and {more} more characters"


def with_rows_cut(tables: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield tables with at most ``MOST_ROWS`` rows in total. ``more_rows`` counts the rest."""
    left = MOST_ROWS
    for table in tables:
        rows = table["rows"]
        yield {**table, "rows": rows[:left], "more_rows": max(0, len(rows) - left)}
        left = max(0, left - len(rows))
