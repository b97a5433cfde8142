"""Verify stored documents against their records, and check that the newest version is current.

A document can be decrypted only for its state, version and number. Documents of early releases are
not bound to a number, and are counted separately. No check within the database can detect a restore
of the whole database to an earlier time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from infra_service.lib.database.batches import in_batches
from states.document import sealing
from states.keeping import reading
from states.keeping.attempts import Attempts
from states.models import State, StateVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet


#: The columns that a state copies from its current version, besides the number.
_figures: Final = attrgetter("serial", "lineage", "md5", "size_bytes")


@dataclass(frozen=True, slots=True)
class Checked:
    """The result for a version: the problem of its document, if any."""

    version: StateVersion
    problem: str | None
    #: Whether the document is bound to the version number; true for an unreadable document.
    is_numbered: bool = True


def verify(versions: QuerySet[StateVersion] | None = None) -> Iterator[Checked]:
    """Verify the documents of these versions, or all documents in the database and object store.

    Raises:
        StorageUnavailable: the object store does not respond.
    """
    chosen = StateVersion.objects.all() if versions is None else versions
    attempts = Attempts()
    # For a join with the states, Citus would read all versions for each batch.
    for version in in_batches(chosen.prefetch_related("state")):
        checked, problem = attempts.run(partial(_checked, version), version=str(version.pk))
        if problem:
            yield Checked(version, problem)
        elif checked is not None:
            yield checked


def _checked(version: StateVersion) -> Checked | None:
    """Verify a document. Return None if the version was pruned concurrently.

    Raises:
        DocumentUnreadable: the document is missing or damaged.
        StorageUnavailable: the object store does not respond.
    """
    stored, gzipped = reading.load(version.pk, version.state_id)
    if stored is None:
        return None
    return Checked(version, _problem(version, gzipped), sealing.number_of(gzipped) != 0)


def is_as_recorded(version: StateVersion, document: bytes) -> bool:
    """Return whether a document has the digest and size in the record of its version."""
    digest = hashlib.md5(document, usedforsecurity=False).hexdigest()
    return (digest, len(document)) == (version.md5, version.size_bytes)


def _problem(version: StateVersion, gzipped: bytes) -> str | None:
    document = sealing.decompress(gzipped)
    if not is_as_recorded(version, document):
        return "The document does not match its recorded digest and size."
    head = sealing.read_head(document)
    if head.serial not in (None, version.serial) or head.lineage not in (None, version.lineage):
        return "The document does not match its recorded serial and lineage."
    state = version.state
    is_current = version.pk == state.current_version_id
    same = version.number == state.version_number and _figures(version) == _figures(state)
    if (is_current and not same) or (not is_current and version.number >= state.version_number):
        return _moved(version)
    return None


def _moved(version: StateVersion) -> str | None:
    """Read the state and its newest version again, and return their difference as a problem."""
    state = State.objects.filter(pk=version.state_id).first()
    newest = StateVersion.objects.filter(state_id=version.state_id).order_by("-number").first()
    if state is None or newest is None:  # deleted concurrently
        return None
    is_newest = (state.current_version_id, state.version_number) == (newest.pk, newest.number)
    if is_newest and _figures(state) == _figures(newest):
        return None
    return (
        "The current version of the state is not its newest version, or the state's serial, "
        "lineage, digest or size differs from that version."
    )
