"""Format text tables for the output of commands."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the headings and the rows, in columns as wide as their longest text."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


def printable(text: str) -> str:
    """Return the text on a single line, with escapes for control and format characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def moment(value: dt.datetime | None) -> str:
    """Return a time in UTC, to the minute, or "never"."""
    return "never" if value is None else f"{value.astimezone(dt.UTC):%Y-%m-%d %H:%MZ}"
