"""Reading and writing of archive files, line by line.

A line is ``{"digest":"<64 hex>","event":{…}}``. The digest is the SHA-256 of the previous digest
and the bytes of the event. The first line of a file contains the number of the archive.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import gzip
import hashlib
import itertools
import json
import os
import uuid
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from infra_service.lib.commandline.private_files import PrivateDirectory, open_regular, sync
from infra_service.lib.error_text import reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: The previous digest of the first line of the first archive.
FIRST: Final = "0" * 64
_START, _MIDDLE, _END = b'{"digest":"', b'","event":', b"}\n"
_EVENT_AT: Final = len(_START) + 64 + len(_MIDDLE)
# Events have a few hundred bytes. The limit bounds the memory that a corrupt file can use.
_LONGEST_LINE: Final = 16 * 1024 * 1024
#: Errors of values that are not JSON, or have another form.
_MALFORMED: Final = (
    ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip


class ArchiveError(Exception):
    """A failed archive operation, which left the audit log unchanged."""


class Contents(NamedTuple):
    """A summary of an archive file."""

    number: int
    previous: str
    digest: str
    events: int
    first_id: uuid.UUID
    last_id: uuid.UUID


def path_of(directory: Path, number: int) -> Path:
    return directory / f"audit-{number:08}.jsonl.gz"


@contextlib.contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Prevent other processes from writing archives into the directory.

    Raises:
        ArchiveError: another process writes there, or the path is not a directory.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ArchiveError(reason_of(error)) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise ArchiveError(f"another process archives to {directory}") from error
    finally:
        os.close(descriptor)


def write(path: Path, number: int, previous: str, events: Iterable[dict[str, Any]]) -> None:
    """Write and sync the file, completely or not at all.

    Raises:
        ArchiveError: the write failed, for example on a full disk.
    """
    part = path.with_suffix(".part").name
    try:
        with PrivateDirectory.existing(path.parent) as directory, directory.create(part) as raw:
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
                digest = previous
                for event in ({"archive": number, "previous": previous}, *events):
                    text = encode(event)
                    digest = _digest(digest, text)
                    file.write(_START + digest.encode() + _MIDDLE + text + _END)
            sync(raw)
            directory.rename(part, path.name)
    except OSError as error:
        raise ArchiveError(reason_of(error)) from error


def encode(event: dict[str, Any]) -> bytes:
    """Return the event as the bytes of its line."""
    return json.dumps(event, separators=(",", ":"), default=_text).encode()


def read(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the digest and value of each line in order, and verify every digest.

    Raises:
        ArchiveError: the file is missing, truncated or changed.
    """
    try:
        with open_regular(path, follow=True) as raw, gzip.open(raw) as file:
            digest = ""
            for at, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
                text = line[_EVENT_AT : -len(_END)]
                digest = _digest(digest or first_line(path, text)[1], text)
                if line != _START + digest.encode() + _MIDDLE + text + _END:
                    raise ArchiveError(
                        f"{path.name}: line {at} differs from the event that was written"
                    )
                yield digest, text
    except (OSError, EOFError, zlib.error) as error:
        raise ArchiveError(f"{path.name}: {reason_of(error)}") from error


def events(path: Path) -> Iterator[bytes]:
    """Yield the verified bytes of each event; skip the first line."""
    return (text for _digest, text in itertools.islice(read(path), 1, None))


def contents(path: Path) -> Contents:
    """Verify the whole file and return its summary.

    Raises:
        ArchiveError: the file contains no events, or ``read`` failed.
    """
    number, previous = 0, ""
    first = last = b""
    count, digest = -1, ""
    for digest, text in read(path):  # noqa: B007 - the last one counts
        count += 1
        if count == 0:
            number, previous = first_line(path, text)
        elif count == 1:
            first = text
        last = text
    if count < 1:
        raise ArchiveError(f"{path.name}: the file contains no events")
    ends = id_of(path, first), id_of(path, last)
    return Contents(number, previous, digest, count, *ends)


def id_of(path: Path, event: bytes) -> uuid.UUID:
    """Return the id of an event in the file.

    Raises:
        ArchiveError: the event has no id. The digests of a forged file can be valid.
    """
    try:
        return uuid.UUID(json.loads(event)["id"])
    except _MALFORMED as error:
        raise ArchiveError(f"{path.name}: an event has no id") from error


def first_line(path: Path, text: bytes) -> tuple[int, str]:
    """Return the number of the archive and the previous digest.

    Raises:
        ArchiveError: the line does not contain both values.
    """
    try:
        found = json.loads(text)
        number, previous = int(found["archive"]), str(found["previous"])
        previous.encode()  # fails for half a surrogate pair
    except _MALFORMED as error:
        raise ArchiveError(f"{path.name}: the file lacks the header of an archive") from error
    return number, previous


def _digest(previous: str, text: bytes) -> str:
    return hashlib.sha256(previous.encode() + text).hexdigest()


def _text(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return str(value)
