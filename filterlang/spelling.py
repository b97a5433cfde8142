"""Suggest a known name for a misspelt or abbreviated word."""

import difflib
import re
from collections.abc import Iterable
from typing import Final

# Longer words are not worth a search for similar names.
_GUESSABLE: Final = 64
_SIMILARITY: Final = 0.8
#: The maximum number of added and omitted characters. A replaced character counts twice.
_DIFFERENT: Final = 3
_ABBREVIATED: Final = 3
# Prefixes that change the meaning and are not misspellings, as in unlocked or NOT_ACTIVE.
_PREFIX: Final = re.compile(r"(?:un|in|im|ir|non|not|no|dis|de|ex|re|pre|a|i|n)[ _-]?")


def closest(word: str, choices: Iterable[str]) -> str:
    """Return the only plausible choice for ``word``, ignoring case, or "" if there is none.

    A wrong guess between two names would produce a valid filter with another meaning.
    """
    if len(word) > _GUESSABLE:
        return ""
    by_key = {choice.lower(): choice for choice in choices}
    key = word.lower()
    if key in by_key:
        return by_key[key]
    near = [
        (different, other)
        for other in difflib.get_close_matches(key, by_key, n=2, cutoff=_SIMILARITY)
        if (different := _differences(key, other)) <= _DIFFERENT
    ]
    if not near and len(key) >= _ABBREVIATED:
        near = [(0, other) for other in by_key if other.startswith(key)]
    near.sort()
    if not near or (len(near) > 1 and near[0][0] == near[1][0]):
        return ""
    meant = near[0][1]
    for longer, other in ((key, meant), (meant, key)):
        if longer.endswith(other) and _PREFIX.fullmatch(longer.removesuffix(other)):
            return ""
    return by_key[meant]


def _differences(one: str, other: str) -> int:
    blocks = difflib.SequenceMatcher(None, one, other).get_matching_blocks()
    return len(one) + len(other) - 2 * sum(block.size for block in blocks)
