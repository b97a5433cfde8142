"""Usage of the pods of a cluster, in 24 bytes per pod."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from workloads.kubernetes.figures import MEASURED
from workloads.kubernetes.quantities import NANOS

if TYPE_CHECKING:
    from workloads.kubernetes.facts import PodKey, Usage

# The nanos in what amounts are kept in: nanocores and bytes, in which the metrics API measures.
_NANOS: Final = {"cpu": 1, "memory": NANOS}
_UNITS: Final = tuple(_NANOS[figure.resource] for figure in MEASURED)
_MOST: Final = 2**64 - 1
# Each is short, so that a number put into the middle of it moves little.
_PARTS: Final = 256


class UsageTable:
    """The usage of pods, found by the 64 bits that Python makes of a pod's key.

    A dictionary would take 300 bytes of each of 150,000 pods, and there are two while one reading
    follows another. Two pods of the same 64 bits would be taken for one: among so many that is one
    process of a thousand million, and nobody can bring it about, since each process makes others.
    """

    def __init__(self) -> None:
        # The keys' numbers in their order, and beside them a column for each figure.
        self._parts = [
            (array("q"), tuple(array("Q") for _ in MEASURED)) for _ in range(_PARTS)
        ]  # fmt: skip

    def put(self, key: PodKey, usage: Usage) -> None:
        """Keep what a pod uses; what is finer than the unit of a column is rounded up."""
        number = hash(key)
        numbers, columns = self._parts[number % _PARTS]
        at = bisect_left(numbers, number)
        place = slice(at, at + numbers[at : at + 1].count(number))  # empty when it is new
        numbers[place] = array("q", [number])
        for column, nanos, unit in zip(columns, usage, _UNITS, strict=True):
            column[place] = array("Q", [min(-(-nanos // unit), _MOST)])

    def get(self, key: PodKey, /) -> Usage | None:
        """Return what a pod uses, in nanos; None when it was not measured."""
        number = hash(key)
        numbers, columns = self._parts[number % _PARTS]
        at = bisect_left(numbers, number)
        if at == len(numbers) or numbers[at] != number:
            return None
        return tuple(column[at] * unit for column, unit in zip(columns, _UNITS, strict=True))
