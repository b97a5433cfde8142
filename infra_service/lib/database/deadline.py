"""Deadlines for database queries that another server can run instead."""

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
    """Limit the time for PostgreSQL's responses in the block; then close the connections."""
    before = _moment.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _moment.reset(before)


def remaining() -> float:
    """Return the seconds until the deadline of the current block; infinite without a deadline."""
    return _moment.get() - time.monotonic()
