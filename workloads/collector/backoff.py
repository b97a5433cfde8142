from __future__ import annotations

import random
from typing import Final

#: Seconds of the longest pause.
LONGEST: Final = 30.0
_MOST_DOUBLINGS: Final = 16
# A server that wishes for more is asked again all the same.
_LONGEST_WISH: Final = 300


def wished_pause(retry_after: str) -> float:
    """Return for how many seconds a server asks to be left alone, within reason."""
    return float(min(int(retry_after[:9]), _LONGEST_WISH)) if retry_after.isdecimal() else 0.0


class Backoff:
    """Pauses in seconds that double from 1 to `most`, each cut at random to a half at most.

    Many collectors that lost the same server do not come back to it all at once.
    """

    def __init__(self, most: float = LONGEST) -> None:
        self._most = most
        self._failures = 0

    def reset(self) -> None:
        """Begin again with the shortest pause."""
        self._failures = 0

    def next_pause(self, at_least: float = 0.0) -> float:
        """Return the next pause, and no less than the server asked for."""
        pause = min(self._most, 2.0**self._failures)
        self._failures = min(self._failures + 1, _MOST_DOUBLINGS)
        return max(pause * random.uniform(0.5, 1.0), at_least)  # noqa: S311 - jitter, not a secret
