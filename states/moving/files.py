"""Files with states, as a source is read and an export is written."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from states.moving.manifest import MANIFEST, UNFINISHED, OccupiedError
from states.moving.sources import SourceError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

#: A state holds secrets.
_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700


def read_file(path: Path, limit: int) -> bytes:
    """Return what is in a file of at most so many bytes.

    Raises:
        TooLargeError, SourceError: it has more, or cannot be read.
    """
    try:
        size = path.stat().st_size
        if size > limit:
            raise TooLargeError(size, limit)
        return path.read_bytes()
    except OSError as error:
        raise fault(error) from error


def fault(error: OSError) -> SourceError:
    """Return what an error of the operating system is for people."""
    return SourceError(f"{error.filename or 'A file'}: {error.strerror}.")


class DirectoryFiles:
    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def manifest(self) -> Iterator[Iterable[bytes]]:
        with (self._root / MANIFEST).open("rb") as lines:
            yield lines

    def read_file(self, path: str, limit: int) -> bytes:
        file = self._root / path
        if not file.resolve().is_relative_to(self._root):
            raise SourceError(f"{file} is outside of the export.")
        return read_file(file, limit)


class DirectoryTarget:
    """A directory that an export is written to; only the owner can read it."""

    def __init__(self, root: Path) -> None:
        """Begin, or begin anew what a run that was stopped has left.

        Raises:
            SourceError: something else is there.
        """
        self._root = root
        try:
            root.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            names = {path.name for path in root.iterdir()}
            if names and UNFINISHED not in names:
                raise OccupiedError(str(root))
            self._manifest = _opened(root / UNFINISHED)
        except OSError as error:
            raise fault(error) from error

    def write(self, path: str, content: bytes) -> None:
        file = self._root / path
        try:
            file.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            partial = file.with_name(f".{file.name}.partial")
            with _opened(partial) as writing:
                writing.write(content)
                _sync(writing)
            partial.replace(file)
        except OSError as error:
            raise fault(error) from error

    def tell(self, line: bytes) -> None:
        try:
            self._manifest.write(line + b"\n")
        except OSError as error:
            raise fault(error) from error

    def finish(self) -> None:
        try:
            _sync(self._manifest)
            (self._root / UNFINISHED).replace(self._root / MANIFEST)
        except OSError as error:
            raise fault(error) from error

    def close(self) -> None:
        """Close the manifest, whether it is there or not."""
        self._manifest.close()


def _opened(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
    return os.fdopen(descriptor, "wb")


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
