"""What somebody meant who has misspelt a name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# Longer words are not worth a search for what they resemble.
_GUESSABLE: Final = 64


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return "; did you mean 'name'?", or nothing when no choice is near."""
    near = (
        difflib.get_close_matches(word.lower(), list(choices), n=1)
        if len(word) <= _GUESSABLE
        else []
    )
    return f"; did you mean {near[0]!r}?" if near else ""
