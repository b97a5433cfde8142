"""A directory with state files, as the ``local`` backend, or a copy of a bucket, leaves it."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from states.errors import InvalidLockInfo
from states.lockinfo import LockInfo
from states.moving.files import DirectoryFiles, fault, read_file
from states.moving.manifest import MANIFEST, UNFINISHED, UnfinishedError
from states.moving.own_export import OwnExport
from states.moving.sources import SourceError, SourceState, SourceVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.moving.sources import Source

_SUFFIX: Final = ".tfstate"
#: Where Terraform keeps which backend it uses, in a file that is called as states are.
_NO_STATES: Final = frozenset({".terraform", ".git"})


class Directory:
    """The state files in a directory and below it; each has one version, what is in it now."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.name = root.as_uri()

    def states(self) -> Iterator[SourceState]:
        for directory, below, files in os.walk(self._root, onerror=_refuse):
            below[:] = sorted(name for name in below if name not in _NO_STATES)
            for name in sorted(files):
                if name.endswith(_SUFFIX):
                    path = Path(directory, name)
                    key = path.relative_to(self._root).as_posix()
                    if not _is_utf8(key):
                        raise SourceError(f"The name {key!a} is not UTF-8: rename the file.")
                    yield SourceState(key, _holder(path))

    def versions(self, state: SourceState, most: int | None) -> list[SourceVersion]:
        del most  # there is one
        path = self._root / state.key
        try:
            found = path.stat()
            if not found.st_size:
                return []
            with path.open("rb") as file:
                # What a file is known by again is what is in it: it has no version, and times
                # change when it is copied.
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise fault(error) from error
        changed = dt.datetime.fromtimestamp(found.st_mtime, dt.UTC)
        return [SourceVersion(digest, changed, size_bytes=found.st_size)]

    def read(self, state: SourceState, version: SourceVersion, limit: int) -> bytes:
        document = read_file(self._root / state.key, limit)
        version.check_digest(document)
        return document


def open_directory(text: str) -> Source:
    """Return the directory of this path, or the export that is in it.

    Raises:
        SourceError: there is none.
    """
    root = Path(text).resolve()
    if not root.is_dir():
        raise SourceError(f"There is no directory {text}.")
    if (root / UNFINISHED).exists():
        raise UnfinishedError(text)
    return OwnExport(DirectoryFiles(root)) if (root / MANIFEST).exists() else Directory(root)


def _holder(path: Path) -> str | None:
    """Return who holds the lock of the ``local`` backend, if anybody does."""
    lock = path.with_name(f".{path.name}.lock.info")
    try:
        who = LockInfo.parse(lock.read_bytes()).Who
    except FileNotFoundError:
        return None
    except (OSError, InvalidLockInfo):
        who = ""
    return who or "somebody"


def _is_utf8(text: str) -> bool:
    return text == text.encode(errors="replace").decode()


def _refuse(error: OSError) -> None:
    raise fault(error)
