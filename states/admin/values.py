"""Values of documents as pages show them: short enough, and JSON that people can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from states.document.hidden import MASK, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Rows of all the tables on a page, and characters of a value: a page must not become as large as
#: a document.
MOST_ROWS: Final = 500
MOST_SHOWN: Final = 2_000
#: A value with more maps and lists in it is shown in one line.
_INDENTED: Final = 50


def json_text(value: Any) -> str:
    """Return JSON for people; what stands for a hidden value is not in quotes, as no value is."""
    if value == MASK:
        return MASK
    written = bytes(encode(value))
    # Indented, what is nested deeply would be a thousand times as long.
    if written.count(b"{") + written.count(b"[") <= _INDENTED:
        written = msgspec.json.format(written, indent=2)
    return cut(written.decode())


def cut(text: str) -> str:
    """Return the beginning of a long text, and how much more there is."""
    more = len(text) - MOST_SHOWN
    return text if more <= 0 else f"{text[:MOST_SHOWN]}… and {more} more characters"


def with_rows_cut(tables: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield tables with no more ``rows`` than a page shows; ``more_rows`` counts the others."""
    left = MOST_ROWS
    for table in tables:
        rows = table["rows"]
        yield {**table, "rows": rows[:left], "more_rows": max(0, len(rows) - left)}
        left = max(0, left - len(rows))
