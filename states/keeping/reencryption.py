"""New encryption and new places for stored documents, while the service runs.

Each document is rewritten in a statement of its own, which changes the row only if nobody did so
meanwhile. So a run can be stopped at any moment, and continued: what is done is not found again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from states.document import sealing
from states.errors import DocumentUnreadable
from states.keeping import reading, storage
from states.keeping.batches import in_batches
from states.models import StateVersion

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from django.db.models import QuerySet

_PASSES: Final = 3


def outdated() -> QuerySet[StateVersion]:
    """Return the versions that another key than the first encrypts."""
    return StateVersion.objects.exclude(encryption_key=next(iter(sealing.keyring())))


def due(*, everything: bool) -> QuerySet[StateVersion]:
    """Return the versions that ``rotate_keys`` re-encrypts."""
    return StateVersion.objects.all() if everything else outdated()


def elsewhere(*, than_store: bool) -> QuerySet[StateVersion]:
    """Return the versions whose documents are not in the object store; or else not in a row."""
    if than_store:
        return StateVersion.objects.filter(object_name="")
    return StateVersion.objects.exclude(object_name="")


def rotate_keys(*, everything: bool = False) -> Iterator[StateVersion]:
    """Re-encrypt the documents with the first key, and yield the version of each.

    ``everything`` is also what that key encrypts already: documents of before are then bound to
    their numbers.

    Raises:
        DocumentUnreadable: a document cannot be had; those before it are done.
        StorageUnavailable: the object store does not answer; those before it are done.
    """
    for version in in_batches(due(everything=everything)):
        if _rewrite(version.pk):
            yield version


def move(*, to_store: bool) -> Iterator[tuple[StateVersion, bool]]:
    """Move the documents, and yield the version of each, and whether it is where it should be.

    A document that is damaged stays where it is. One that somebody changed in between is looked at
    again, but not for ever: another process may be moving them the other way.

    Raises:
        StorageUnavailable: the object store does not answer; those before it are done.
    """
    damaged: set[uuid.UUID] = set()
    for _ in range(_PASSES):
        for version in in_batches(elsewhere(than_store=to_store).exclude(pk__in=damaged)):
            try:
                if _rewrite(version.pk, in_store=to_store):
                    yield version, True
            except DocumentUnreadable:
                damaged.add(version.pk)
                yield version, False


def _rewrite(version_id: uuid.UUID, *, in_store: bool | None = None) -> bool:
    """Seal a document anew, where it is or in the given place; return whether this did it.

    The new one is there before the row points at it, and the old one until after that. Decrypted
    bytes stay in memory.
    """
    stored, gzipped = reading.load(version_id)
    if stored is None:
        return False  # pruned meanwhile
    sealed = sealing.seal(gzipped, stored.place)
    if bool(stored.object_name) if in_store is None else in_store:
        document, name = None, storage.put(sealed.payload, stored.state_id, version_id)
    else:
        document, name = sealed.payload, ""
    as_seen = {"encryption_key": stored.encryption_key, "object_name": stored.object_name}
    changed = StateVersion.objects.filter(pk=version_id, **as_seen).update(
        document=document, object_name=name, encryption_key=sealed.key_name
    )
    storage.discard(stored.object_name if changed else name)
    return bool(changed)
