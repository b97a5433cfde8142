"""Count requests per window in the memory of each worker. Redis is an alternative store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The length of a counting window in seconds.
WINDOW: Final = 60


class Counters(Protocol):
    """The interface of a store of counters."""

    def hit(self, names: Sequence[str], window: int) -> list[int]:
        """Increment each counter in this window, and return the new counts.

        Raises:
            OSError: the store is unreachable.
        """


class MemoryCounters:
    """The counters of a worker process in the current window.

    The number of names is limited. A new name replaces the least recently counted name, so a flood
    of names can only reduce other counts.
    """

    NAMES: Final = 1 << 16

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._window = 0
        self._counts: OrderedDict[str, int] = OrderedDict()

    def hit(self, names: Sequence[str], window: int) -> list[int]:
        """Increment each counter, which takes a few microseconds."""
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
