"""Suggestions for misspelt names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filterlang.spelling import closest

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return "; did you mean 'name'?", or an empty text without a similar choice."""
    near = closest(word, choices)
    return f"; did you mean {near!r}?" if near else ""
