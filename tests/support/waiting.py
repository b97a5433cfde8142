"""Waiting for what comes by itself, on a machine of any speed."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds within which even a machine that does ten other things is done.
PATIENCE = 120


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until the condition is true, and fail when it has not become so in this time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
