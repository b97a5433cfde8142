from __future__ import annotations

import random
from typing import Final

#: The maximum pause, in seconds.
LONGEST: Final = 30.0
_MOST_DOUBLINGS: Final = 16


class Backoff:
    """Pauses in seconds that double from 1 to `most`, with a random jitter of up to a half.

    The jitter prevents many collectors from reconnecting to a recovered server simultaneously.
    """

    def __init__(self, most: float = LONGEST) -> None:
        self._most = most
        self._failures = 0

    def reset(self) -> None:
        """Restart with the shortest pause."""
        self._failures = 0

    def next_pause(self, at_least: float = 0.0) -> float:
        """Return the next pause in seconds. ``at_least`` is the Retry-After of the server."""
        pause = min(self._most, 2.0**self._failures)
        self._failures = min(self._failures + 1, _MOST_DOUBLINGS)
        return max(pause * random.uniform(0.5, 1.0), at_least)  # noqa: S311 - jitter, not a secret
