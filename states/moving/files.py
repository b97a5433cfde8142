"""Read the files of a source, and write the files of an export and of backend blocks."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from infra_service.lib.commandline.private_files import PrivateDirectory, open_regular, sync
from states.addresses import backend_block
from states.moving.manifest import MANIFEST, UNFINISHED, OccupiedError
from states.moving.sources import SourceError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import BufferedReader
    from pathlib import Path

    from states.moving.plan import Row

#: The maximum length of a manifest line, which has a few hundred bytes for each version.
_LONGEST_LINE: Final = 64 * 1024 * 1024


@contextmanager
def converting_errors() -> Iterator[None]:
    """Convert an error of the operating system.

    Raises:
        SourceError: see ``fault``.
    """
    try:
        yield
    except OSError as error:
        raise fault(error) from error


@contextmanager
def reading(path: Path, limit: int) -> Iterator[BufferedReader]:
    """Open a regular file of limited size, without following a symbolic link.

    Raises:
        TooLargeError, SourceError: the file exceeds the limit, or is unreadable.
    """
    with converting_errors(), open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise TooLargeError(size, limit)
        yield file


def read_file(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of limited size.

    Raises:
        TooLargeError, SourceError: the file exceeds the limit, or is unreadable.
    """
    with reading(path, limit) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise TooLargeError(len(content), limit)
    return content


def fault(error: OSError) -> SourceError:
    """Return a SourceError with a sentence for an error of the operating system."""
    if error.errno == errno.ELOOP:
        return SourceError(f"{error.filename} is a symbolic link. Use the path of the file itself.")
    return SourceError(f"{error.filename or 'A file'}: {error.strerror}.")


class DirectoryFiles:
    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def manifest(self) -> Iterator[Iterable[bytes]]:
        with reading(self._root / MANIFEST, sys.maxsize) as file:
            yield iter(lambda: file.readline(_LONGEST_LINE), b"")

    def read_file(self, path: str, limit: int) -> bytes:
        file = self._root / path
        if not file.resolve().is_relative_to(self._root):
            raise SourceError(f"{file} is outside the export directory.")
        return read_file(file, limit)


class DirectoryTarget:
    """A directory as the target of an export. Only its owner can read it."""

    def __init__(self, root: Path) -> None:
        """Start an export, or restart an interrupted export.

        Raises:
            SourceError: the directory contains other files, or other users can write to it.
        """
        with converting_errors():
            self._root = PrivateDirectory.made(root)
        with ExitStack() as stack, converting_errors():
            stack.callback(self._root.close)
            names = self._root.names()
            if names and UNFINISHED not in names:
                raise OccupiedError(str(root))
            self._manifest = self._root.create(UNFINISHED)
            stack.pop_all()

    def write(self, path: str, content: bytes) -> None:
        *folders, name = PurePosixPath(path).parts
        with converting_errors(), ExitStack() as stack:
            directory = self._root
            for folder in folders:
                directory = stack.enter_context(directory.folder(folder))
            partial = f".{name}.partial"
            with directory.create(partial) as file:
                file.write(content)
                sync(file)
            directory.rename(partial, name)

    def write_line(self, line: bytes) -> None:
        with converting_errors():
            self._manifest.write(line + b"\n")

    def finish(self) -> None:
        with converting_errors():
            sync(self._manifest)
            self._root.rename(UNFINISHED, MANIFEST)

    def close(self) -> None:
        """Close the manifest and the directory."""
        # After ``finish``, no lines remain. Before, an error has ended the export, and a full disk
        # must not hide this error.
        with suppress(OSError):
            self._manifest.close()
        self._root.close()


_CREDENTIALS: Final = (
    "# Set TF_HTTP_USERNAME to any text, and TF_HTTP_PASSWORD to a token of the service.\n"
)
#: O_NONBLOCK makes a FIFO an immediate error. The command would otherwise wait for a reader.
_NO_LINK: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)


def write_backend(directory: Path, url: str, row: Row) -> None:
    """Write the backend block of a state to ``backend.tf``, in the folder of its address.

    Raises:
        SourceError: the file cannot be written.
    """
    file = directory / row.address / "backend.tf"
    with converting_errors():
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, _NO_LINK, 0o666), "w") as block:
            block.write(_CREDENTIALS + backend_block(url.rstrip("/") + row.path))
