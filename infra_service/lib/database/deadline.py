"""Set deadlines for queries that another server can run instead."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_moment: Final[ContextVar[float]] = ContextVar("deadline", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit the wait for PostgreSQL's responses in the block. A timeout closes the connection."""
    before = _moment.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _moment.reset(before)


def remaining() -> float:
    """Return the seconds until the deadline of the current block, or infinity without one."""
    return _moment.get() - time.monotonic()
