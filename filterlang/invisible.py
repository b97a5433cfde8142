"""Detection of invisible characters."""

import re
import unicodedata
from typing import Final

#: Invisible letters, marks and symbols. The categories below identify other invisible characters.
BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")
_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
_ALLOWED_SPACE: Final = frozenset(" \t\r\n")
_VARIATION_SELECTORS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def named(character: str) -> str:
    """Return the code point and its name, such as ``U+200B (ZERO WIDTH SPACE)``."""
    name = unicodedata.name(character, "a control character")
    return f"U+{ord(character):04X} ({name})"


def is_invisible(character: str) -> bool:
    """Return whether the character is invisible, or a space other than the plain space."""
    if character in _ALLOWED_SPACE:
        return False
    return (
        unicodedata.category(character) in _INVISIBLE_CATEGORIES
        or character in BLANK
        or _VARIATION_SELECTORS.match(character) is not None
    )


def first_invisible(text: str) -> str:
    """Return the name of the first invisible character in the text, or ""."""
    return next((named(character) for character in text if is_invisible(character)), "")
