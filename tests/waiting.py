"""Waiting for what comes by itself, on a machine of any speed."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait until the condition is true, and fail when it has not become so in this time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
