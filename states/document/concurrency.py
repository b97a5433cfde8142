"""Limit concurrent reads of documents: large documents are read one at a time."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

from infra_service.lib.api import memory
from states.document import sealing
from states.document.work_limit import Effort
from states.errors import StateFormatUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes of documents. Threads do not make Python faster, and keep small requests waiting for it.
_LARGE: Final = 1024 * 1024
_reading: Final = threading.Lock()
#: Readers of a large document and waiting ones; further requests are rejected, because threads are
#: few.
_seats: Final = threading.BoundedSemaphore(4)


@contextlib.contextmanager
def limited_reading(*gzipped: bytes) -> Iterator[Effort]:
    """Wait for a free slot; return the limit of work on these documents in the block.

    Raises:
        MemoryUnavailable: too many requests wait already, or use the memory.
        StateFormatUnsupported: a value is nested too deeply.
    """
    size = sum(map(sealing.size_of, gzipped))
    try:
        with _slot_for(size), memory.released_at_end():
            memory.reserve(size)
            yield Effort(size)
    except RecursionError as error:
        raise StateFormatUnsupported("a value in it is nested too deeply") from error


@contextlib.contextmanager
def _slot_for(size: int) -> Iterator[None]:
    if size <= _LARGE:
        yield
        return
    if not _seats.acquire(blocking=False):
        raise memory.MemoryUnavailable
    try:
        with _reading:
            yield
    finally:
        _seats.release()
