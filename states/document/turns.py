"""Turns to read documents: large ones are read one at a time."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

from infra_service.lib.api import memory
from states.document import sealing
from states.document.effort import Effort
from states.errors import StateFormatUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes of documents. Threads do not make Python faster, and keep small requests waiting for it.
_LARGE: Final = 1024 * 1024
_turn: Final = threading.Lock()
#: Who reads a large document, and who waits to; others are refused, for threads are few.
_seats: Final = threading.BoundedSemaphore(4)


@contextlib.contextmanager
def in_turn(*gzipped: bytes) -> Iterator[Effort]:
    """Return what may be spent on looking into these documents in the block.

    Raises:
        MemoryUnavailable: too many wait already, or others hold the memory.
        StateFormatUnsupported: also for a value that is nested too deeply to be looked at.
    """
    size = sum(map(sealing.size_of, gzipped))
    try:
        with _turn_of(size), memory.taken_back():
            memory.take(size)
            yield Effort(size)
    except RecursionError as error:
        raise StateFormatUnsupported("a value in it is nested too deeply") from error


@contextlib.contextmanager
def _turn_of(size: int) -> Iterator[None]:
    if size <= _LARGE:
        yield
        return
    if not _seats.acquire(blocking=False):
        raise memory.MemoryUnavailable
    try:
        with _turn:
            yield
    finally:
        _seats.release()
