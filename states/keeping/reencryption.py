"""Re-encrypt and move stored documents while the service runs.

Each document is rewritten in its own statement, on the condition that its row has not changed. A
run can therefore be stopped at any time and continued later. The next run does not select finished
documents again.
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
    """Return the versions with documents in the database if ``than_store``, else in the store."""
    if than_store:
        return StateVersion.objects.filter(object_name="")
    return StateVersion.objects.exclude(object_name="")


def rotate_keys(*, everything: bool = False) -> Iterator[tuple[StateVersion, str]]:
    """Re-encrypt the documents with the first key, and yield each version with its problem.

    The problem is empty on success. ``everything`` includes documents that are already encrypted
    with the first key, which binds documents of early releases to their numbers.

    Raises:
        StorageUnavailable: the object store does not respond. Earlier documents are finished.
    """
    attempts = Attempts()
    for version in in_batches(due(everything=everything)):
        done, problem = attempts.run(partial(_rewrite, version), **_named(version))
        if done or problem:
            yield version, problem


def move(*, to_store: bool) -> Iterator[tuple[StateVersion, str]]:
    """Move the documents, and yield each version with its problem, which is empty on success.

    A document with a problem is not moved. A document that changed concurrently is retried in the
    next pass. The number of passes is limited, because another process could move documents back.

    Raises:
        StorageUnavailable: the object store does not respond. Earlier documents are finished.
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
    """Re-encrypt a document, and move it if ``in_store`` is given. Return whether this succeeded.

    A new object is written before the row refers to it, and the old object is deleted afterwards.
    Decrypted bytes exist only in memory.
    """
    stored, gzipped = reading.load(version.pk, version.state_id)
    if stored is None:
        return False  # pruned concurrently
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
