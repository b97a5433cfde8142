"""The known name that a misspelt word comes nearest to."""

import difflib
from collections.abc import Iterable
from typing import Final

# Longer words are not worth a search for what they resemble.
_GUESSABLE: Final = 64


def closest(word: str, choices: Iterable[str]) -> str:
    """Return the choice that ``word`` comes nearest to, case aside; "" when none is near."""
    if len(word) > _GUESSABLE:
        return ""
    by_key = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(word.lower(), by_key, n=1)
    return by_key[near[0]] if near else ""
