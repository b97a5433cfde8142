"""A directory with state files of the ``local`` backend, or a copy of a bucket."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings

from states.errors import InvalidLockInfo
from states.lockinfo import MAX_BYTES, LockInfo
from states.moving.files import DirectoryFiles, fault, read_file, reading
from states.moving.manifest import MANIFEST, UNFINISHED, UnfinishedError
from states.moving.own_export import OwnExport
from states.moving.sources import SourceError, SourceState, SourceVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.moving.sources import Source

_SUFFIX: Final = ".tfstate"
#: Folders without states. In ``.terraform``, Terraform stores its backend in a ``.tfstate`` file.
_NO_STATES: Final = frozenset({".terraform", ".git"})


class Directory:
    """The state files in a directory tree. Each state has one version: the content of the file."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.name = root.as_uri()

    def states(self) -> Iterator[SourceState]:
        try:
            yield from self._found()
        except RecursionError as error:
            raise SourceError("The folders are nested too deeply.") from error

    def _found(self) -> Iterator[SourceState]:
        for directory, below, files in os.walk(self._root, onerror=_refuse):
            below[:] = sorted(name for name in below if name not in _NO_STATES)
            for name in sorted(files):
                if name.endswith(_SUFFIX):
                    path = Path(directory, name)
                    yield SourceState(path.relative_to(self._root).as_posix(), _holder(path))

    def versions(self, state: SourceState, most: int | None) -> list[SourceVersion]:
        del most  # there is one version
        with reading(self._root / state.key, settings.STATE_MAX_BYTES) as file:
            found = os.fstat(file.fileno())
            if not found.st_size:
                return []
            # The content identifies the file. A file has no version, and a copy has a different
            # time.
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return [SourceVersion(digest, _time_of(found), size_bytes=found.st_size)]

    def read(self, state: SourceState, version: SourceVersion, limit: int) -> bytes:
        document = read_file(self._root / state.key, limit)
        version.check_digest(document)
        return document


def open_directory(text: str) -> Source:
    """Return the directory with this path, or the export of this service in it.

    Raises:
        SourceError: the directory does not exist, or contains an incomplete export.
    """
    root = Path(text).resolve()
    if not root.is_dir():
        raise SourceError(f"The directory {text} does not exist.")
    if (root / UNFINISHED).exists():
        raise UnfinishedError(text)
    return OwnExport(DirectoryFiles(root)) if (root / MANIFEST).exists() else Directory(root)


def _holder(path: Path) -> str | None:
    """Return the owner of the ``local`` backend's lock, or None if the state is not locked."""
    lock = path.with_name(f".{path.name}.lock.info")
    if not os.path.lexists(lock):
        return None
    try:
        who = LockInfo.parse(read_file(lock, MAX_BYTES)).Who
    except (SourceError, InvalidLockInfo):
        who = ""  # not readable, or written by another program
    return who or "an unknown client"


def _time_of(file: os.stat_result) -> dt.datetime | None:
    """Return the time of the last change, or None if a database cannot store it."""
    try:
        return dt.datetime.fromtimestamp(file.st_mtime, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _refuse(error: OSError) -> None:
    raise fault(error)
