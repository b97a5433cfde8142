"""Memory-mapped metric files for prometheus_client, with blocks allocated in advance.

prometheus_client creates its files with ``truncate``, which allocates no blocks. On a full disk, a
write to an unallocated page kills the process with SIGBUS instead of raising an error.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import time
from typing import Final

import prometheus_client.values
import structlog
from prometheus_client.mmap_dict import MmapedDict

log = structlog.get_logger("infra_service.metrics")

#: The size of a new file in bytes, enough for about a thousand series.
SIZE: Final = 256 * 1024
#: Seconds between two attempts to allocate a file, and between two checks that the file exists.
_RETRY: Final = 10.0

# The ids of processes without a file. The memory is created before the fork, so the server's
# processes share it.
_PID: Final = struct.Struct("i")
_SLOTS: Final = 1024
_without_file: Final = mmap.mmap(-1, _SLOTS * _PID.size)
# Files that this process could not allocate, and the id of the process that logged the error.
_missing: set[str] = set()
_logged_by = 0


class AllocatedDict(MmapedDict):
    """A file of metric values.

    While the disk has no space for the file or a new value, prometheus_client counts in memory. The
    values are written to the file as soon as there is space. A removed file is replaced.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:  # noqa: FBT001, FBT002 - prometheus_client's signature
        self._fname = filename
        self._retry_at = 0.0
        self._is_open = read_mode or self._allocate()
        if self._is_open:
            super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

    def read_value(self, key: str) -> tuple[float, float]:
        if not self._has_room(key):
            return 0.0, 0.0
        value: tuple[float, float] = super().read_value(key)  # type: ignore[no-untyped-call]
        return value

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        if self._has_room(key):
            super().write_value(key, value, timestamp)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        if self._is_open:
            super().close()  # type: ignore[no-untyped-call]
        _found(self._fname)

    def _allocate(self) -> bool:
        """Create the file, and return whether the disk has space for it."""
        self._retry_at = time.monotonic() + _RETRY
        try:
            descriptor = os.open(self._fname, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            _miss(self._fname, error)
            return False
        try:
            os.posix_fallocate(descriptor, 0, SIZE)
        except OSError as error:
            if os.fstat(descriptor).st_size == 0:  # readers expect a header
                with contextlib.suppress(OSError):
                    os.unlink(self._fname)  # noqa: PTH108 - as os.open
            _miss(self._fname, error)
            return False
        finally:
            os.close(descriptor)
        _found(self._fname)
        return True

    def _replace_if_removed(self) -> None:
        """Create the file again, with its values, if another process removed it."""
        self._retry_at = time.monotonic() + _RETRY
        if os.path.exists(self._fname) or not self._allocate():  # noqa: PTH110 - as os.open
            return
        values = [*self.read_all_values()]
        super().close()  # type: ignore[no-untyped-call]
        super().__init__(self._fname)  # type: ignore[no-untyped-call]
        for value in values:
            self.write_value(*value)

    def _has_room(self, key: str) -> bool:
        is_time = time.monotonic() >= self._retry_at
        if not self._is_open:
            if not is_time or not self._allocate():
                return False
            super().__init__(self._fname)  # type: ignore[no-untyped-call]
            self._is_open = True
        elif is_time:
            self._replace_if_removed()
        if key in self._positions:
            return True
        # The key's length, the key with its padding, the value and its time.
        end = self._used + 4 + len(key.encode()) + 8 + 16
        capacity = self._capacity
        while capacity < end:
            capacity *= 2
        if capacity > self._capacity:
            try:
                os.posix_fallocate(self._f.fileno(), 0, capacity)
            except OSError:  # a metric must not fail a request
                return False
        return True


def install() -> None:
    """Store the metrics of this process in allocated files."""
    vars(prometheus_client.values)["MmapedDict"] = AllocatedDict


def processes_without_file() -> int:
    """Return the number of server processes that count in memory and are missing from scrapes."""
    return sum(pid != 0 for (pid,) in _PID.iter_unpack(_without_file[:]))


def forget(pid: int) -> None:
    """Remove an exited process from the processes without a file."""
    if _PID.unpack_from(_without_file, _place(pid)) == (pid,):
        _PID.pack_into(_without_file, _place(pid), 0)


def _place(pid: int) -> int:
    return pid % _SLOTS * _PID.size


def _miss(filename: str, error: OSError) -> None:
    global _logged_by  # noqa: PLW0603 - once for each process
    pid = os.getpid()
    _missing.add(filename)
    if _logged_by != pid:
        _logged_by = pid
        log.error("metrics_in_memory", file=filename, error=str(error))
    _PID.pack_into(_without_file, _place(pid), pid)


def _found(filename: str) -> None:
    _missing.discard(filename)
    if not _missing:
        forget(os.getpid())
