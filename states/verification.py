"""Whether every stored document is what was pushed: readable, and of the same digest and size."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from states import documents, reading
from states.batches import in_batches
from states.errors import DocumentUnreadable
from states.models import StateVersion

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Checked:
    """A version, and what is wrong with its document, if anything."""

    version: StateVersion
    problem: str | None


def verify() -> Iterator[Checked]:
    """Check every document in both stores, one at a time.

    Raises:
        StorageUnavailable: the object store does not answer, so nothing can be said of it.
    """
    for version in in_batches(StateVersion.objects.all()):
        try:
            stored, gzipped = reading.load(version.pk)
            if stored is not None:  # not pruned meanwhile
                yield Checked(version, _problem(version, gzipped))
        except DocumentUnreadable as error:
            yield Checked(version, str(error.detail))


def _problem(version: StateVersion, gzipped: bytes) -> str | None:
    document = documents.decompress(gzipped)
    digest = hashlib.md5(document, usedforsecurity=False).hexdigest()
    if (digest, len(document)) != (version.md5, version.size_bytes):
        return "The document is not the one whose digest and size were recorded."
    return None
