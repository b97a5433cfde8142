"""Decode the items of a list in a single response, each as soon as it has arrived.

msgspec decodes faster, but only complete documents. The standard library's decoder also returns the
position where a value ends.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from workloads.kubernetes.raw import JsonObject

# The maximum characters of an item or another member. The metrics of a pod have a few hundred.
_LONGEST: Final = 2**20
_SPACES: Final = re.compile(r"[ \t\n\r]*")
_decode: Final = json.JSONDecoder().raw_decode


def list_items(blocks: Iterable[bytes]) -> Iterator[JsonObject]:
    """Yield the `items` of a JSON object that arrives in blocks.

    Raises:
        ValueError, RecursionError: the blocks are not a complete JSON object.
    """
    text = _Text(blocks)
    for _ in text.entries("{", "}"):
        name = text.value()
        text.consume(":")
        if name != "items" or text.next() == "n":  # null: no items
            text.value()
            continue
        for _ in text.entries("[", "]"):
            if text.next() != "{":
                raise ValueError("an item is not an object")
            yield text.value()
    if text.next():
        raise ValueError("unexpected data follows the list")


class _Text:
    """JSON text that arrives in pieces. Only the current piece is in memory."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._pieces = codecs.iterdecode(blocks, "utf-8")
        self._text, self._at = "", 0

    def entries(self, opening: str, closing: str) -> Iterator[None]:
        """Yield before each entry of an object or an array. The caller consumes the entry."""
        self.consume(opening)
        if self.next() == closing:
            self.consume(closing)
            return
        while True:
            yield
            if self.consume("," + closing) == closing:
                return

    def consume(self, expected: str) -> str:
        """Consume the next character, which must be one of the expected characters."""
        found = self.next()
        if not found or found not in expected:
            raise ValueError(f"{found!r} is not one of {expected!r}")
        self._at += 1
        return found

    def next(self) -> str:
        """Return the next character after white space without consuming it; "" at the end."""
        while True:
            spaces = _SPACES.match(self._text, self._at)
            self._at = spaces.end() if spaces else self._at
            if self._at < len(self._text) or not self._append_piece():
                return self._text[self._at : self._at + 1]

    def value(self) -> Any:
        """Consume the next value. A value at the end of a piece may continue in the next piece."""
        self.next()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except ValueError:
                if not self._append_piece():
                    raise
            else:
                if end < len(self._text) or not self._append_piece():
                    self._at = end
                    return value

    def _append_piece(self) -> bool:
        """Append the next piece, and return whether there was one."""
        rest = self._text[self._at :]
        if len(rest) > _LONGEST:
            raise ValueError(f"an entry has more than {_LONGEST} characters")
        more = next(self._pieces, "")
        self._text, self._at = rest + more, 0
        return more != ""
