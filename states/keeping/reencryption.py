"""Re-encrypt and move stored documents while the service runs.

Each document is rewritten in its own statement, under the condition that its row is unchanged.
A run may therefore stop at any time and continue later: finished documents are not selected again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from infra_service.lib import encryption
from infra_service.lib.database.batches import in_batches
from states.document import sealing
from states.keeping import reading, storage
from states.keeping.attempts import Attempts
from states.models import StateVersion

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from django.db.models import QuerySet

_PASSES: Final = 3


def outdated() -> QuerySet[StateVersion]:
    """Return the versions that are not encrypted with the first key."""
    return StateVersion.objects.exclude(encryption_key=encryption.current_key())


def due(*, everything: bool) -> QuerySet[StateVersion]:
    """Return the versions that ``rotate_keys`` re-encrypts."""
    return StateVersion.objects.all() if everything else outdated()


def elsewhere(*, than_store: bool) -> QuerySet[StateVersion]:
    """Return the versions whose documents are not in the object store, or not in a row."""
    if than_store:
        return StateVersion.objects.filter(object_name="")
    return StateVersion.objects.exclude(object_name="")


def rotate_keys(*, everything: bool = False) -> Iterator[tuple[StateVersion, str]]:
    """Re-encrypt the documents with the first key, and yield each version with its problem.

    The problem is empty where the document was re-encrypted. ``everything`` includes documents
    that the first key encrypts already: it binds documents of early releases to their numbers.

    Raises:
        StorageUnavailable: the object store does not respond; earlier documents are done.
    """
    attempts = Attempts()
    for version in in_batches(due(everything=everything)):
        done, problem = attempts.run(partial(_rewrite, version), **_named(version))
        if done or problem:
            yield version, problem


def move(*, to_store: bool) -> Iterator[tuple[StateVersion, str]]:
    """Move the documents; yield each version with its problem, empty on success.

    A document with a problem stays in place. A document that changed meanwhile is tried again, in a
    bounded number of passes: another process may be moving them back.

    Raises:
        StorageUnavailable: the object store does not respond; earlier documents are done.
    """
    attempts = Attempts()
    failed: set[uuid.UUID] = set()
    for _ in range(_PASSES):
        for version in in_batches(elsewhere(than_store=to_store).exclude(pk__in=failed)):
            work = partial(_rewrite, version, in_store=to_store)
            done, problem = attempts.run(work, **_named(version))
            if problem:
                failed.add(version.pk)
            if done or problem:
                yield version, problem


def _named(version: StateVersion) -> dict[str, Any]:
    return {"state_id": str(version.state_id), "version": version.number}


def _rewrite(version: StateVersion, *, in_store: bool | None = None) -> bool:
    """Re-encrypt a document in place or at the given place; return whether this call did it.

    The new document exists before the row names it, and the old document until afterwards.
    Decrypted bytes stay in memory.
    """
    stored, gzipped = reading.load(version.pk, version.state_id)
    if stored is None:
        return False  # pruned meanwhile
    sealed = sealing.seal(gzipped, stored.place)
    if bool(stored.object_name) if in_store is None else in_store:
        document, name = None, storage.put(sealed.payload, stored.state_id, version.pk)
    else:
        document, name = sealed.payload, ""
    as_seen = {"encryption_key": stored.encryption_key, "object_name": stored.object_name}
    own = StateVersion.objects.filter(pk=version.pk, state_id=version.state_id, **as_seen)
    changed = own.update(document=document, object_name=name, encryption_key=sealed.key_name)
    storage.discard(stored.object_name if changed else name)
    return bool(changed)
