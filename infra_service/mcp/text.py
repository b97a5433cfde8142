"""Text from states and clusters, bounded and without invisible characters.

An assistant reads the text of a tool's result, and everybody who writes to a state or a cluster can
write some of this text. Invisible characters would hide instructions from people who check it.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final

import msgspec

#: Characters of a text, items of a list or an object, and levels of nesting.
_MOST_CHARACTERS: Final = 300
_MOST_ITEMS: Final = 30
_MOST_LEVELS: Final = 8
#: Bytes of an item as JSON; a longer item is shown as the start of its JSON.
_MOST_BYTES: Final = 3000
_START: Final = 700
_CUT: Final = "…"
#: Variation selectors, which render as nothing and can encode text.
_SELECTORS: Final = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))


def cleaned(text: str, most: int = _MOST_CHARACTERS) -> str:
    """Return at most ``most`` characters of a text, without invisible characters.

    Whitespace becomes a space. Control, format (zero-width, bidirectional and tag characters),
    private, unassigned and surrogate characters are removed.
    """
    cut = len(text) > most
    if not text.isascii() or not text.isprintable():
        text = "".join(map(_visible, text[:most]))
    return text[:most] + _CUT if cut else text


def bounded(item: Any) -> bytes:
    """Return an item of a response as JSON, with cleaned, limited text and without null fields."""
    written = msgspec.json.encode(_bounded(item, _MOST_LEVELS))
    if len(written) > _MOST_BYTES:
        written = msgspec.json.encode(cleaned(written.decode(), _START))
    return written


def _bounded(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return cleaned(value)
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return _CUT
    if isinstance(value, list):
        shown = [_bounded(each, levels - 1) for each in value[:_MOST_ITEMS]]
        return shown if len(value) <= _MOST_ITEMS else [*shown, _CUT]
    filled = [(name, each) for name, each in value.items() if each is not None]
    fields = {cleaned(name): _bounded(each, levels - 1) for name, each in filled[:_MOST_ITEMS]}
    return fields if len(filled) <= _MOST_ITEMS else {**fields, _CUT: _CUT}


def _visible(character: str) -> str:
    if character.isspace():
        return " "
    is_hidden = character in _SELECTORS or unicodedata.category(character)[0] == "C"
    return "" if is_hidden else character
