"""prometheus_client's mapped files, whose blocks are allocated before they are mapped.

prometheus_client makes its files by ``truncate``, which takes no block of the disk. On a full disk,
a write to such a page then raises no error, but ends the process by the signal SIGBUS.
"""

from __future__ import annotations

import os
from typing import Final

import prometheus_client.values
from prometheus_client.mmap_dict import MmapedDict

#: Bytes of a new file: about a thousand series.
SIZE: Final = 256 * 1024


class AllocatedDict(MmapedDict):
    """A file of figures; while the disk has no room for it to grow, new ones are not counted."""

    def __init__(self, filename: str, read_mode: bool = False) -> None:  # noqa: FBT001, FBT002 - its signature
        """Open the file.

        Raises:
            OSError: the disk is full.
        """
        if not read_mode:
            descriptor = os.open(filename, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, SIZE)
            finally:
                os.close(descriptor)
        super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

    def read_value(self, key: str) -> tuple[float, float]:
        if not self._has_room(key):
            return 0.0, 0.0
        value: tuple[float, float] = super().read_value(key)  # type: ignore[no-untyped-call]
        return value

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        if self._has_room(key):
            super().write_value(key, value, timestamp)  # type: ignore[no-untyped-call]

    def _has_room(self, key: str) -> bool:
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
            except OSError:  # a request is not to fail because of its figure
                return False
        return True


def install() -> None:
    """Let every metric of this process be kept in such a file."""
    vars(prometheus_client.values)["MmapedDict"] = AllocatedDict
