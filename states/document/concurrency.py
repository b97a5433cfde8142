"""Limit concurrent reads of large documents, which are read one at a time."""

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

#: The size in bytes above which documents are large. Concurrent reads in threads are not faster,
#: and delay small requests.
_LARGE: Final = 1024 * 1024
_reading: Final = threading.Lock()
#: The maximum number of reading and waiting requests for large documents. Other requests are
#: rejected, because the number of threads is small.
_seats: Final = threading.BoundedSemaphore(4)


@contextlib.contextmanager
def limited_reading(*gzipped: bytes) -> Iterator[Effort]:
    """Wait for a free slot, and yield the work limit for these documents.

    Raises:
        MemoryUnavailable: too many requests are waiting, or the memory is in use.
        StateFormatUnsupported: a value is nested too deeply.
    """
    size = sum(map(sealing.size_of, gzipped))
    try:
        with _slot_for(size), memory.released_at_end():
            memory.reserve(size)
            yield Effort(size)
    except RecursionError as error:
        raise StateFormatUnsupported("a value is nested too deeply") from error


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
