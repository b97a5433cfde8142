from __future__ import annotations

import math
import time
from typing import Final

from infra_service.lib.http_client.errors import FetchError

# The maximum accepted Retry-After, in seconds.
_LONGEST_PAUSE: Final = 300


def retry_after_seconds(header: str | None, longest: int = _LONGEST_PAUSE) -> float | None:
    """Return the seconds in a Retry-After header, at most ``longest``, or None if it has none."""
    if header is None or not header.isdecimal():
        return None
    # Python rejects numbers with thousands of digits.
    return float(min(int(header.lstrip("0")[:9] or 0), longest))


class Deadline:
    """The deadline of a whole operation. ``idle_timeout`` limits each wait, in seconds."""

    def __init__(self, seconds: float, idle_timeout: float = math.inf) -> None:
        self._at = time.monotonic() + seconds
        self._idle_timeout = idle_timeout

    def left(self) -> float:
        """Return the maximum duration of the next wait, in seconds.

        Raises:
            FetchError: the deadline has passed.
        """
        left = self._at - time.monotonic()
        if left <= 0:
            raise FetchError("the response took too long") from TimeoutError("timed out")
        return min(left, self._idle_timeout)
