"""Stores the versions of a state that another place has; each version whole or not at all.

A state is locked until all of its versions have come: a push between two of them would be undone
by the next. The lock's ID follows from the
source, so that a run that was killed is continued under the same lock, and two runs at once hold
it both: which of them stores a version is decided by the write, as everywhere.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from infra_service.database.retries import retrying
from states.actions import locks, rules
from states.actions.push import ATTEMPTS, append_version
from states.actions.registration import find_or_register
from states.actions.replacement import check_replacement
from states.errors import StateNotFound, WriteConflict
from states.lockinfo import LockInfo
from states.models import ImportedVersion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apikeys.actors import Actor
    from states.actions.destinations import Destination
    from states.document.uploads import Upload
    from states.models import State

#: Of the IDs of locks, which follow from the source's name and the state's key.
_NAMESPACE: Final = uuid.UUID("6c6a8a7e-5f0b-4f5e-9a39-1d6f0f8f1c53")
_ELSEWHERE: Final = "It was imported before, to another address."


class ImportRefusedError(Exception):
    """The state here must not be written over; the message is a sentence for people."""


class OccupiedError(ImportRefusedError):
    """What is here has never been imported from there: somebody chose a wrong address."""


@dataclass(frozen=True, slots=True)
class Origin:
    source: str
    key: str

    def digest(self, version: str) -> str:
        """Return what a version is known by."""
        return ImportedVersion.digest_of(self.source, self.key, version)

    @property
    def lock(self) -> LockInfo:
        """The lock under which it is imported."""
        return LockInfo(
            ID=str(uuid.uuid5(_NAMESPACE, f"{self.source}\0{self.key}")),
            Operation="import",
            Info=f"from {self.source}",
            Who="import_states",
            Created=timezone.now().isoformat().replace("+00:00", "Z"),
        )


def outstanding(
    *, destination: Destination, origin: Origin, versions: Sequence[str]
) -> Sequence[str]:
    """Return which of these versions, the oldest first, are to be imported.

    They are the versions after the newest one that is stored here. Older ones are never imported
    later, because history has one order.

    Raises:
        OccupiedError: the state here is another one.
        ImportRefusedError: it came from there, and must not be written over now.
    """
    # The versions first: what is here of them belongs to a state that is found then.
    here, states = _found(origin, versions)
    state = destination.find()
    if states - {state and state.pk}:
        raise ImportRefusedError(_ELSEWHERE)
    rest = list(takewhile(lambda version: version not in here, reversed(versions)))[::-1]
    if rest:
        _check(state, origin)
    elif (
        state is not None and _is_from(state, origin) and here[versions[-1]] < state.version_number
    ):
        raise ImportRefusedError(
            f"The source has again what is version {here[versions[-1]]} here, and has had another "
            "since: restore that version."
        )
    return rest


def _found(origin: Origin, versions: Sequence[str]) -> tuple[dict[str, int], set[uuid.UUID | None]]:
    """Return the numbers of the versions that are here already, and of which states they are."""
    of_digest = {origin.digest(version): version for version in versions}
    rows = ImportedVersion.objects.filter(digest__in=of_digest)
    found = list(rows.values_list("digest", "version__state_id", "version__number"))
    numbers = {of_digest[digest]: number for digest, _, number in found}
    return numbers, {state_id for _, state_id, _ in found}


def _check(state: State | None, origin: Origin) -> None:
    """Refuse to write over what is not what was imported from there last.

    Raises:
        StateLocked: somebody works with it.
        OccupiedError, ImportRefusedError: see ``outstanding``.
    """
    if state is None:
        return
    if state.lock_id is not None:
        rules.check_lock(state, origin.lock.uuid)
    if state.current_version_id is None:
        return
    if state.deleted_at is not None:
        raise ImportRefusedError("It was deleted here: bring it back, or remove it for good.")
    if _is_from(state, origin):
        return
    history = ImportedVersion.objects.filter(version__state=state)
    if history.filter(source=origin.source, key=origin.key).exists():
        raise ImportRefusedError(
            "The source has something new, and so has the state here: it was pushed to since it "
            "was imported."
        )
    raise OccupiedError("There is a state here that was not imported from there.")


def _is_from(state: State, origin: Origin) -> bool:
    """Whether the current version was imported from there."""
    current = ImportedVersion.objects.filter(pk=state.current_version_id)
    return current.filter(source=origin.source, key=origin.key).exists()


@retrying
def import_version(
    *,
    destination: Destination,
    origin: Origin,
    upload: Upload,
    imported: ImportedVersion,
    number: int | None,
    is_last: bool,
    actor: Actor,
) -> bool:
    """Store a version on top of those before it; return whether this did it.

    ``number`` is what it should have at least. Unless it is the last one, the state is locked
    before.

    Raises:
        StateLocked: somebody works with the state.
        OccupiedError, ImportRefusedError: see ``outstanding``.
        InvalidDocument: see ``states.actions.replacement``.
        StorageUnavailable: the object store did not take the document.
        WriteConflict: lost the race too often.
    """
    at: dict[str, Any] = {
        "component_id": destination.component_id,
        "environment_id": destination.environment_id,
        "actor": actor,
        "names": destination.names,
    }
    lock = origin.lock
    for _ in range(ATTEMPTS):
        state = find_or_register(**at, look=destination.look())
        same = ImportedVersion.objects.filter(digest=imported.digest)
        if (found := same.values_list("version__state_id", flat=True).first()) is not None:
            if found != state.pk:
                raise ImportRefusedError(_ELSEWHERE)
            return False
        _check(state, origin)
        check_replacement(state, upload)
        if state.lock_id is None and not is_last:
            locks.lock(**at, info=lock, look=destination.look())
            continue
        version = append_version(
            state,
            upload,
            actor,
            "state.import",
            number=number,
            imported=imported,
            source=imported.source,
            key=imported.key,
            source_version=imported.source_version,
        )
        if version is not None:
            return True
    raise WriteConflict


def end_import(*, destination: Destination, origin: Origin, actor: Actor) -> State:
    """Release the lock under which the state was imported, if it is held; return the state.

    Raises:
        StateNotFound: it is gone.
    """
    state = destination.find()
    if state is None:
        raise StateNotFound
    if state.lock_id == origin.lock.uuid:
        locks.unlock(
            component_id=state.component_id,
            environment_id=state.environment_id,
            lock_id=state.lock_id,
            actor=actor,
        )
    return state
