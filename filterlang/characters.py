"""Detection of invisible and lookalike characters, as in text copied from a wiki or a chat."""

import re
import unicodedata
from typing import Final

from filterlang.errors import Code, FilterError
from filterlang.grammar import STRING
from filterlang.invisible import is_invisible, named

# The backtick, and typographic, prime and full-width quotes: first single, then double quotes.
_QUOTES: Final = (
    "`\u00b4\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\uff07"
    "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u301d\u301e\uff02"
)
_ASCII: Final = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    "\u2260": "!=",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2227": "AND",
    "\u2228": "OR",
    "\u00ac": "NOT",
}
_OUTSIDE: Final = re.compile(rf"{STRING}|[^!-_a-~ \t\r\n]")
_QUOTED: Final = re.compile(rf"[{_QUOTES}]([^'\"{_QUOTES}]*)[{_QUOTES}'\"]")


def misplaced_character(text: str) -> FilterError | None:
    """Return an error for the first character outside quotes that is not allowed there.

    This is an invisible character, or a character that looks like an ASCII character.
    """
    for found in _OUTSIDE.finditer(text):
        character = found[0][0]
        if len(found[0]) == 1 and (suggestion := _replacement(text, found.start(), character)):
            message = f"{named(character)} is not allowed outside quotes"
            return FilterError(Code.CHARACTER, found.start(), message, suggestion)
    return None


def _replacement(text: str, position: int, character: str) -> str:
    if is_invisible(character):
        spaces = unicodedata.category(character).startswith("Z")
        return "write a space in its place" if spaces else "remove it"
    if character in _QUOTES:
        quoted = _QUOTED.match(text, position)
        return f"use straight quotes: '{quoted[1]}'" if quoted else "use straight quotes"
    ascii_form = _ASCII.get(character) or unicodedata.normalize("NFKC", character)
    return f"write {ascii_form} in its place" if ascii_form.isascii() else ""
