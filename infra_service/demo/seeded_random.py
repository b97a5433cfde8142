"""Reproducible random values: the seed is the number of the row."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from typing import TYPE_CHECKING, Final, TypeVar

from infra_service.lib.api.identifiers import milliseconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

#: The creation time of the first rows.
BEGINNING: Final = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)


class Chance(random.Random):
    """Random values for a row of a kind."""

    def __init__(self, kind: int, number: int) -> None:
        super().__init__(kind << 40 | number)

    def row_id(self, moment: dt.datetime = BEGINNING) -> uuid.UUID:
        """Return a UUIDv7 (RFC 9562) for the time."""
        head = milliseconds_of(moment) << 80 | 0x7 << 76 | self.getrandbits(12) << 64
        return uuid.UUID(int=head | 0b10 << 62 | self.getrandbits(62))

    def pick(self, weights: Mapping[T, float]) -> T:
        """Return a random key by weight."""
        return self.choices(list(weights), list(weights.values()))[0]
