"""An export in a bucket: write it, and read it."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from states.moving.files import converting_errors
from states.moving.manifest import MANIFEST, UNFINISHED, OccupiedError, UnfinishedError
from states.moving.own_export import OwnExport
from states.moving.s3 import Bucket
from states.moving.s3_client import located

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO

    from states.moving.sources import Source


class Folder(Bucket):
    """A folder in a bucket that stores an export."""

    @contextmanager
    def manifest(self) -> Iterator[Iterable[bytes]]:
        # Downloaded completely, because the connection would time out during the import.
        file = tempfile.TemporaryFile()  # noqa: SIM115 - its end could raise the error again
        try:
            with converting_errors():  # the disk of the temporary file can be full
                with self._answering():
                    self._client.download_fileobj(self._bucket, self._folder + MANIFEST, file)
                file.seek(0)  # writes the rest
            yield file
        finally:
            with suppress(OSError):
                file.close()

    def read_file(self, path: str, limit: int) -> bytes:
        return self._content({"Bucket": self._bucket, "Key": self._folder + path}, limit)

    def first(self, prefix: str = "") -> str | None:
        """Return the first key with this prefix, if any."""
        with self._answering():
            found = self._client.list_objects_v2(
                Bucket=self._bucket, Prefix=self._folder + prefix, MaxKeys=1
            )
        keys = (entry["Key"].removeprefix(self._folder) for entry in found.get("Contents", ()))
        return next(keys, None)

    def put(self, path: str, content: bytes | IO[bytes]) -> None:
        with self._answering():
            self._client.put_object(Bucket=self._bucket, Key=self._folder + path, Body=content)

    def delete(self, path: str) -> None:
        with self._answering():
            self._client.delete_object(Bucket=self._bucket, Key=self._folder + path)


class BucketTarget:
    """A folder in a bucket as the target of an export. Objects are written atomically."""

    def __init__(self, text: str) -> None:
        """Start an export to ``s3://bucket/prefix``, or restart an interrupted export.

        Raises:
            SourceError: the folder contains other objects, or is not writable.
        """
        self._folder = Folder(*located(text))
        if self._folder.first() is not None and self._folder.first(UNFINISHED) != UNFINISHED:
            raise OccupiedError(self._folder.name)
        self._folder.put(UNFINISHED, b"")
        self._manifest: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it

    def write(self, path: str, content: bytes) -> None:
        self._folder.put(path, content)

    def write_line(self, line: bytes) -> None:
        with converting_errors():  # the disk of the temporary file can be full
            self._manifest.write(line + b"\n")

    def finish(self) -> None:
        with converting_errors():
            self._manifest.seek(0)  # writes the remaining lines
        self._folder.put(MANIFEST, self._manifest)
        self._folder.delete(UNFINISHED)

    def close(self) -> None:
        with suppress(OSError):
            self._manifest.close()


def open_folder(text: str) -> Source:
    """Return the folder ``s3://bucket/prefix``, or the export of this service in it.

    Raises:
        SourceError: the address is invalid (see ``located``), or the export is incomplete.
    """
    folder = Folder(*located(text))
    if folder.first(UNFINISHED) == UNFINISHED:
        raise UnfinishedError(text)
    return OwnExport(folder) if folder.first(MANIFEST) == MANIFEST else folder
