"""Counters of requests: in the memory of each worker process, or in Redis (``Counters``)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Seconds; a count is of one window.
WINDOW: Final = 60


class Counters(Protocol):
    """Where the counts are."""

    def hit(self, names: Sequence[str], window: int) -> list[int]:
        """Count one more of each in this window, and return how many each has now.

        Raises:
            OSError: they cannot be reached.
        """


class MemoryCounters:
    """Counts of one worker process, in the current window.

    There is room for so many names. A new one takes the place of the one that was counted longest
    ago, so a flood of names can only make others count less.
    """

    NAMES: Final = 1 << 16

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._window = 0
        self._counts: OrderedDict[str, int] = OrderedDict()

    def hit(self, names: Sequence[str], window: int) -> list[int]:
        """Count one more of each; a few microseconds for all of them."""
        with self._lock:
            if window != self._window:
                self._window = window
                self._counts.clear()
            return [self._raise(name) for name in names]

    def _raise(self, name: str) -> int:
        count = self._counts[name] = self._counts.pop(name, 0) + 1
        if len(self._counts) > self.NAMES:
            self._counts.popitem(last=False)
        return count
