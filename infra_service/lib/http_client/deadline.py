from __future__ import annotations

import math
import time

from infra_service.lib.http_client.errors import FetchError


class Deadline:
    """The time by which everything must be done; ``silence`` limits each wait, in seconds."""

    def __init__(self, seconds: float, silence: float = math.inf) -> None:
        self._at = time.monotonic() + seconds
        self._silence = silence

    def left(self) -> float:
        """Return the seconds that the next wait may last.

        Raises:
            FetchError: the deadline has passed.
        """
        left = self._at - time.monotonic()
        if left <= 0:
            raise FetchError("the answer took too long") from TimeoutError("timed out")
        return min(left, self._silence)
