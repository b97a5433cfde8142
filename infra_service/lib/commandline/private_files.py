"""Write files that only their owner can read, without following links of other users."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path
    from typing import BinaryIO

_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO waits for its writer.
_EXISTING_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegularError(OSError):
    """A path to a FIFO, a device, a socket or a directory instead of a regular file."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "Not a regular file", str(path))


class InsecureDirectoryError(OSError):
    """A directory in which other users can replace files."""

    def __init__(self, path: object) -> None:
        super().__init__(
            errno.EPERM,
            "Another user owns the directory or can write to it. Use a private directory",
            str(path),
        )


def open_regular(path: Path, *, follow: bool = False) -> BufferedReader:
    """Open a regular file for reading, without blocking. Reject a symbolic link unless ``follow``.

    Raises:
        NotRegularError, OSError: the file is not regular, or cannot be opened.
    """
    descriptor = os.open(path, _EXISTING_FILE | (0 if follow else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(path)
    return os.fdopen(descriptor, "rb")


class PrivateDirectory:
    """An open directory. Files in it are opened through its descriptor, not through its path."""

    def __init__(self, descriptor: int, name: object) -> None:
        self._descriptor = descriptor
        found = os.fstat(descriptor)
        # Root may own the directory, such as a volume of a container.
        if found.st_uid not in (os.geteuid(), 0) or found.st_mode & stat.S_IWOTH:
            os.close(descriptor)
            raise InsecureDirectoryError(name)

    @classmethod
    def existing(cls, path: Path) -> Self:
        """Open a directory, even if its path is a symbolic link.

        Raises:
            InsecureDirectoryError: other users can write to the directory.
            OSError: the directory cannot be opened.
        """
        return cls(os.open(path, _DIRECTORY), path)

    @classmethod
    def made(cls, path: Path) -> Self:
        """Open a directory that only its owner can read. Create missing directories.

        Raises:
            InsecureDirectoryError: other users can write to the directory.
            OSError: the directory cannot be created or opened.
        """
        for parent in reversed((path, *path.parents)):
            _make(parent)
        return cls(os.open(path, _DIRECTORY | os.O_NOFOLLOW), path)._restrict_permissions()

    def folder(self, name: str) -> Self:
        """Open or create a directory in this directory, with the same checks.

        Raises:
            InsecureDirectoryError, OSError: see ``made``.
        """
        _make(name, self._descriptor)
        descriptor = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self._descriptor)
        return type(self)(descriptor, name)._restrict_permissions()

    def _restrict_permissions(self) -> Self:
        if os.fstat(self._descriptor).st_uid == os.geteuid():
            os.fchmod(self._descriptor, _DIRECTORY_MODE)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def names(self) -> set[str]:
        return set(os.listdir(self._descriptor))  # noqa: PTH208 - pathlib has no descriptors

    def create(self, name: str) -> BinaryIO:
        """Create a file for writing, replacing a file of the same name.

        Raises:
            OSError: the file cannot be created.
        """
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)
        descriptor = os.open(name, _NEW_FILE, _FILE_MODE, dir_fd=self._descriptor)
        return os.fdopen(descriptor, "wb")

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing a file of the new name, and sync the directory to disk.

        Raises:
            OSError: the file cannot be renamed.
        """
        os.rename(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def sync(file: BinaryIO) -> None:
    """Flush a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def _make(path: Path | str, directory: int | None = None) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, _DIRECTORY_MODE, dir_fd=directory)
