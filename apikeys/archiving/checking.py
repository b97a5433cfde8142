"""Verification of the archives against the digests in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apikeys.archiving import files
from apikeys.archiving.files import ArchiveError
from apikeys.models import AuditArchive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def check_archives(directory: Path) -> Iterator[tuple[str, str | None]]:
    """Yield the file name of each archive with its fault, or None.

    The database contains the digest of each archive, so the check also detects a recomputed or
    truncated chain.
    """
    known = {archive.number: archive for archive in AuditArchive.objects.order_by("number")}
    previous = files.FIRST
    for number, archive in known.items():
        path = files.path_of(directory, number)
        yield path.name, _problem(path, archive, previous)
        previous = archive.digest
    expected = {files.path_of(directory, number).name for number in known}
    for path in sorted(directory.glob("audit-*.jsonl.gz")):
        if path.name not in expected:
            yield path.name, "the database has no record of the archive"


def _problem(path: Path, archive: AuditArchive, previous: str) -> str | None:
    try:
        found = files.contents(path)
    except ArchiveError as error:
        return str(error).removeprefix(f"{path.name}: ")
    if found.number != archive.number:
        return f"the file contains archive {found.number}"
    if found.previous != previous:
        return "the file does not continue the previous archive"
    if (found.digest, found.events) != (archive.digest, archive.events):
        return "the file differs from the recorded archive"
    return None
