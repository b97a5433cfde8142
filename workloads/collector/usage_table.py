"""A compact table of the usage of pods, with 24 bytes per pod."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from workloads.kubernetes.figures import MEASURED
from workloads.kubernetes.quantities import NANOS

if TYPE_CHECKING:
    from workloads.kubernetes.facts import PodKey, Usage

# The nanos per stored unit: nanocores and bytes, the units of the metrics API.
_NANOS: Final = {"cpu": 1, "memory": NANOS}
_UNITS: Final = tuple(_NANOS[figure.resource] for figure in MEASURED)
_MOST: Final = 2**64 - 1
# Each array is short, so that an insertion in the middle moves few elements.
_PARTS: Final = 256


class UsageTable:
    """The usage of pods by the 64-bit hash of a pod's key.

    A dictionary would require 300 bytes for each of 150,000 pods, and two tables exist while a
    reading replaces the previous one. Pods with equal hashes would be confused. The probability is
    1 in 10⁹ per process. An attacker cannot provoke a collision, because each process has a
    different hash seed.
    """

    def __init__(self) -> None:
        # The sorted hashes, and a parallel column for each figure.
        self._parts = [
            (array("q"), tuple(array("Q") for _ in MEASURED)) for _ in range(_PARTS)
        ]  # fmt: skip

    def put(self, key: PodKey, usage: Usage) -> None:
        """Store the usage of a pod, rounded up to the unit of a column."""
        number = hash(key)
        numbers, columns = self._parts[number % _PARTS]
        at = bisect_left(numbers, number)
        place = slice(at, at + numbers[at : at + 1].count(number))  # empty for a new table
        numbers[place] = array("q", [number])
        for column, nanos, unit in zip(columns, usage, _UNITS, strict=True):
            column[place] = array("Q", [min(-(-nanos // unit), _MOST)])

    def get(self, key: PodKey, /) -> Usage | None:
        """Return the usage of a pod in nanos; None if it was not measured."""
        number = hash(key)
        numbers, columns = self._parts[number % _PARTS]
        at = bisect_left(numbers, number)
        if at == len(numbers) or numbers[at] != number:
            return None
        return tuple(column[at] * unit for column, unit in zip(columns, _UNITS, strict=True))
