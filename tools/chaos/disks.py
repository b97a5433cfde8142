"""Small file systems that scenarios can fill or make read-only."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


class SmallDisk:
    """A small mounted file system."""

    def __init__(self, path: Path) -> None:
        self.path, self._ballast = path, path / "ballast"

    def fill(self) -> None:
        """Fill the file system to the last byte, including root's reserve."""
        with contextlib.suppress(OSError), self._ballast.open("ab", buffering=0) as ballast:
            while True:
                ballast.write(bytes(65536))
        with contextlib.suppress(OSError), self._ballast.open("ab", buffering=0) as ballast:
            while True:
                ballast.write(bytes(512))

    def empty(self) -> None:
        """Free the space that ``fill`` has used."""
        self._ballast.unlink()

    def set_read_only(self, value: bool, *names: str) -> None:
        """Make files read-only or writable, even open files. This is not possible on tmpfs."""
        how = "+i" if value else "-i"
        subprocess.run(["chattr", how, *(self.path / name for name in names)], check=True)


@contextlib.contextmanager
def small_disk(path: Path, megabytes: int, owner: int) -> Iterator[SmallDisk]:
    """Mount a tmpfs during the block."""
    options = f"size={megabytes}m,mode=700,uid={owner},gid={owner}"
    with _mounted(path, "-t", "tmpfs", "-o", options, "chaos") as disk:
        yield disk


@contextlib.contextmanager
def small_ext4(path: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a file as an ext4 file system during the block."""
    image = path.with_suffix(".image")
    subprocess.run(["truncate", "-s", f"{megabytes}M", image], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    with _mounted(path, "-o", "loop", str(image)) as disk:
        yield disk


@contextlib.contextmanager
def _mounted(path: Path, *label: str) -> Iterator[SmallDisk]:
    path.mkdir()
    subprocess.run(["mount", *label, path], check=True)
    try:
        yield SmallDisk(path)
    finally:
        os.sync()
        subprocess.run(["umount", "--lazy", path], check=True)
