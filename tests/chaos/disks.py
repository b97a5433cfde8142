"""Small file systems in memory, which can be filled and emptied."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


class SmallDisk:
    """A file system of its own. It is this process's alone, and ends with it."""

    def __init__(self, path: Path) -> None:
        self.path, self._ballast = path, path / "ballast"

    def fill(self) -> None:
        """Leave no byte, for root neither."""
        with contextlib.suppress(OSError), self._ballast.open("ab", buffering=0) as ballast:
            while True:
                ballast.write(bytes(65536))
        with contextlib.suppress(OSError), self._ballast.open("ab", buffering=0) as ballast:
            while True:
                ballast.write(bytes(512))

    def empty(self) -> None:
        """Make room again."""
        self._ballast.unlink()

    def set_read_only(self, value: bool) -> None:
        """Let nobody write, or again."""
        how = "ro" if value else "rw"
        subprocess.run(["mount", "-o", f"remount,{how}", self.path], check=True)


@contextlib.contextmanager
def small_disk(path: Path, megabytes: int, owner: int) -> Iterator[SmallDisk]:
    """Mount one for as long as the block."""
    path.mkdir()
    options = f"size={megabytes}m,mode=700,uid={owner},gid={owner}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "chaos", path], check=True)
    try:
        yield SmallDisk(path)
    finally:
        os.sync()
        subprocess.run(["umount", "--lazy", path], check=True)
