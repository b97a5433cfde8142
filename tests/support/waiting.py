"""Wait for a condition, on a machine of any speed."""

from __future__ import annotations

import time
from collections.abc import Callable

#: A timeout in seconds that suffices even on a busy machine.
MAX_WAIT = 120


def wait_until(condition: Callable[[], object], seconds: float = MAX_WAIT) -> None:
    """Wait until the condition is true; fail after the timeout."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
