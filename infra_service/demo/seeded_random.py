"""Reproducible random values: the seed is the number of the row."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


class SeededRandom(random.Random):
    """Random values for a row of a kind."""

    def __init__(self, kind: int, number: int) -> None:
        super().__init__(kind << 40 | number)

    def pick(self, weights: Mapping[T, float]) -> T:
        """Return a random key by weight."""
        return self.choices(list(weights), list(weights.values()))[0]
