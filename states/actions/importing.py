"""Import the versions of a state from another system, each version in its own transaction.

The state is locked until all of its versions are stored. Otherwise, the next imported version would
undo a push during the import. The lock's ID is derived from the source, so an interrupted run
continues with the same lock. Concurrent runs share the lock, and a conditional write decides which
run stores a version.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from django.db import IntegrityError
from django.db.models import Q
from django.utils import timezone

from apikeys.races import RaceLostError, compare_and_swap
from states.actions import locks, rules
from states.actions.push import append_version, next_serial
from states.actions.registration import find_or_register
from states.actions.replacement import check_replacement, not_a_state
from states.errors import StateNotFound, StorageUnavailable, WriteConflict
from states.lockinfo import LockInfo
from states.models import ImportedVersion, State
from states.targets import StateTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apikeys.actors import Actor
    from states.actions.destinations import Destination
    from states.document.uploads import Upload

#: The namespace of lock IDs, which are derived from the source's name and the state's key.
_NAMESPACE: Final = uuid.UUID("6c6a8a7e-5f0b-4f5e-9a39-1d6f0f8f1c53")
_ELSEWHERE: Final = (
    "The state was already imported to another address. Assign it that address with a map."
)


class ImportRefusedError(Exception):
    """A state that must not be overwritten. The message is a sentence for the user."""


class OccupiedError(ImportRefusedError):
    """An existing state that was not imported from this origin: the address is probably wrong."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The identity of a state in another system.

    ``former`` contains the digests that earlier releases recorded for its versions.
    """

    source: str
    key: str
    former: frozenset[str] = frozenset()

    def digest(self, version: str) -> str:
        """Return the digest that identifies an imported version."""
        return ImportedVersion.digest_of(self.source, self.key, version)

    @property
    def lock(self) -> LockInfo:
        """Return the lock of the import."""
        return LockInfo(
            ID=str(uuid.uuid5(_NAMESPACE, f"{self.source}\0{self.key}")),
            Operation="import",
            Info=f"from {self.source}",
            Who="import_states",
            Created=timezone.now().isoformat().replace("+00:00", "Z"),
        )


class Offered(NamedTuple):
    """A version in the source: its ID in the source, and its number if the source has numbers."""

    id: str
    number: int | None


def outstanding(
    *, destination: Destination, origin: Origin, versions: Sequence[Offered], actor: Actor
) -> Sequence[Offered]:
    """Return the versions that must still be imported, oldest first.

    These are the versions after the newest stored version. Older versions cannot be imported later,
    because the history would be out of order.

    Raises:
        OccupiedError: the state has another origin.
        ImportRefusedError: the origin is correct, but the state must not be overwritten now.
    """
    # Stored versions are looked up first, because they reveal an import to another address.
    here, states = _found(origin, versions)
    state = destination.find(actor)
    if states - {state and state.pk}:
        raise ImportRefusedError(_ELSEWHERE)
    rest = list(takewhile(lambda version: version.id not in here, reversed(versions)))[::-1]
    if rest:
        _check(state, origin, rest[0])
    elif (
        state is not None
        and _is_from(state, origin)
        and here[versions[-1].id] < state.version_number
    ):
        raise ImportRefusedError(
            f"The source has reverted to the content of version {here[versions[-1].id]} of this "
            "service. Restore this version."
        )
    return rest


def _found(
    origin: Origin, versions: Sequence[Offered]
) -> tuple[dict[str, int], set[uuid.UUID | None]]:
    """Return the numbers of the stored versions by ID, and the ids of their states."""
    digests = {origin.digest(version.id) for version in versions} | origin.former
    rows = ImportedVersion.objects.filter(digest__in=digests)
    found = list(rows.values_list("source_version", "version__state_id", "version__number"))
    return {id_: number for id_, _, number in found}, {state_id for _, state_id, _ in found}


def _check(state: State | None, origin: Origin, version: Offered) -> None:
    """Refuse to import a version over a state with another origin or a later version.

    Raises:
        StateLocked, StateFrozen: another client locked the state, or an operator froze it.
        OccupiedError, ImportRefusedError: see ``outstanding``.
    """
    if state is None:
        return
    rules.check_lock(state, None if state.lock_id is None else origin.lock.uuid)
    if state.current_version_id is None:
        return
    if state.deleted_at is not None:
        raise ImportRefusedError(
            "The state was deleted in this service. Undelete it, or wait until its retention "
            "period ends."
        )
    if _is_from(state, origin):
        if version.number is not None and version.number <= state.version_number:
            _check_diverged(origin, version)
        return
    history = ImportedVersion.objects.filter(version__state=state)
    if history.filter(source=origin.source, key=origin.key).exists():
        raise ImportRefusedError(
            "Both the source and the imported state have changed since the import. Compare their "
            "contents, and push the correct state."
        )
    raise OccupiedError(
        "The address belongs to an existing state that was not imported from this source."
    )


def _check_diverged(origin: Origin, version: Offered) -> None:
    """Reject a version with a number that is in use, unless another run just imported it.

    Raises:
        ImportRefusedError: the number belongs to another version.
    """
    if not ImportedVersion.objects.filter(digest=origin.digest(version.id)).exists():
        raise ImportRefusedError(
            f"The source's version {version.number} differs from the imported version. "
            "The source is a copy of the installation, or was restored from a backup. "
            "Compare both versions."
        )


def _is_from(state: State, origin: Origin) -> bool:
    """Return whether the current version was imported from the origin."""
    is_from = Q(source=origin.source, key=origin.key) | Q(digest__in=origin.former)
    return ImportedVersion.objects.filter(is_from, pk=state.current_version_id).exists()


@compare_and_swap(WriteConflict)
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
    """Store the next version. Return False if another run already stored it.

    ``number`` is the minimum number of the version. The state is locked first, unless this is the
    last version.

    Raises:
        StateLocked, StateFrozen: another client locked the state, or an operator froze it.
        OccupiedError, ImportRefusedError: see ``outstanding``.
        InvalidDocument: see ``states.actions.replacement``.
        StorageUnavailable: the object store did not accept the document.
        WriteConflict: every attempt lost to a concurrent write.
    """
    state = find_or_register(target=destination, actor=actor)
    same = ImportedVersion.objects.filter(digest=imported.digest)
    if (found := same.values_list("version__state_id", flat=True).first()) is not None:
        if found != state.pk:  # a concurrent run imports the state to another address
            _unregister(state, origin, actor)
            raise ImportRefusedError(_ELSEWHERE)
        return False
    _check(state, origin, Offered(imported.source_version, number))
    check_replacement(state, upload)
    if state.lock_id is None and not is_last:
        locks.lock(target=destination, info=origin.lock, actor=actor)
        raise RaceLostError  # check the locked state again
    try:
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
    except IntegrityError as error:
        if not same.exists():
            raise
        raise RaceLostError from error  # another run stored the version
    except StorageUnavailable:
        _unregister(state, origin, actor)  # a failed first version leaves no records
        raise
    if version is None:
        raise RaceLostError
    return True


def _unregister(state: State, origin: Origin, actor: Actor) -> None:
    """Release the lock of the import, and remove the state, if the state has no version."""
    if state.version_number == 0 and state.lock_id in (None, origin.lock.uuid):
        locks.unlock(target=StateTarget.of(state), lock_id=origin.lock.uuid, actor=actor)


class Rehearsal:
    """The checks of ``import_version`` for the versions of a state, without writing anything."""

    def __init__(self, state: State | None) -> None:
        """Start with the current state, or with a new state."""
        self._state = state or State()
        self._previous: Upload | None = None

    def add(self, upload: Upload) -> None:
        """Check the next document.

        Raises:
            InvalidDocument: see ``states.actions.replacement``.
            SerialConflict: the document has no serial, and the state has the maximum serial.
            StorageUnavailable: the object store does not respond.
            WriteConflict: the current version was replaced concurrently.
        """
        if self._previous is None:
            try:
                check_replacement(self._state, upload)
            except RaceLostError as error:
                raise WriteConflict from error
        elif self._previous.head.is_state and not upload.head.is_state:
            raise not_a_state(upload)
        self._state.serial = next_serial(self._state, upload.head.serial)
        self._previous = upload


def finish_import(*, destination: Destination, origin: Origin, actor: Actor) -> State:
    """Release the lock of the import, if it is active, and return the state.

    Raises:
        StateNotFound: the state no longer exists.
    """
    state = destination.find(actor)
    if state is None:
        raise StateNotFound
    if state.lock_id == origin.lock.uuid:
        locks.unlock(target=StateTarget.of(state), lock_id=state.lock_id, actor=actor)
    return state
