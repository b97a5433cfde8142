"""The characters of display names, for the API, the admin, commands and imports.

Without this rule, invisible characters and changes of the text direction would let one name look
like another in a list, a log or a terminal.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from django.core.exceptions import ValidationError

from filterlang.invisible import BLANK, named

#: Control, format, private-use and surrogate characters; line and paragraph separators. Letters and
#: symbols in ``BLANK`` are invisible, too.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
# Emoji and several scripts require joiners, but not after ASCII, where they would be invisible.
_JOINED: Final = re.compile("(?<=[^\0-\x7f\u200c\u200d])[\u200c\u200d]")


def validate_display_name(text: str) -> None:
    """Refuse invisible characters in a name.

    Raises:
        ValidationError: the name contains an invisible character.
    """
    found = next(filter(_is_invisible, _JOINED.sub("", text)), None)
    if found is not None:
        raise ValidationError(
            f"Remove the invisible character {named(found)}.", code="invisible_character"
        )


def visible(text: str) -> str:
    """Return the text of another system without the characters that names cannot contain."""
    joined = {match.start() for match in _JOINED.finditer(text)}
    return "".join(c for at, c in enumerate(text) if at in joined or not _is_invisible(c))


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in _INVISIBLE or character in BLANK
