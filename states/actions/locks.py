"""Acquire, release and force-unlock the lock of a state, atomically.

A LOCK is a single UPDATE, so exactly one of many concurrent requests acquires the lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, PositiveIntegerField, UUIDField

from apikeys import audit
from apikeys.races import RaceLostError, compare_and_swap
from infra_service.lib.database.compiled import Parameter
from states.actions import rules
from states.actions.registration import find_or_register
from states.actions.removal import unregister
from states.errors import LockNotHeld, StateLocked, WriteConflict
from states.lock_holders import lock_for
from states.lockinfo import HTTP, REMOTE, LockInfo
from states.models import State

if TYPE_CHECKING:
    import uuid

    from apikeys.actors import Actor
    from states.models import StateQuerySet
    from states.targets import StateTarget


def _unlocked() -> StateQuerySet:
    pk, seen = Parameter("pk", UUIDField()), Parameter("seen", PositiveIntegerField())
    return State.objects.filter(pk=pk, revision=seen, lock_id=None, frozen_at=None)


def _locked() -> StateQuerySet:
    held = Parameter("held", UUIDField())
    return State.objects.filter(pk=Parameter("pk", UUIDField()), lock_id=held)


_REVISED: Final = F("revision") + 1
#: Acquire the lock of a state that is not locked or frozen, in an atomic statement.
_ACQUIRE: Final = audit.AuditedUpdate(
    _unlocked, "lock_id", "lock_info", "lock_acquired_at", "lock_taken_by", revision=_REVISED
)
#: Release the lock if the lock ID is still active.
_RELEASE: Final = audit.AuditedUpdate(
    _locked,
    lock_id=None,
    lock_info=None,
    lock_acquired_at=None,
    lock_taken_by=None,
    revision=_REVISED,
)


@compare_and_swap(WriteConflict)
def lock(*, target: StateTarget, info: LockInfo, actor: Actor, door: str = HTTP) -> LockInfo:
    """Acquire the lock of a state without waiting. A repeated call with the same ID succeeds.

    ``door`` is the backend that the client uses. The remote backend only locks workspaces, because
    its client cannot push or unlock a state without a workspace.

    Raises:
        StateNotFound: the workspace was deleted in the meantime.
        StateLocked: another lock is active.
        StateFrozen: an operator froze the state.
        WriteConflict: every attempt lost to a concurrent write.
    """
    if door == REMOTE:
        state = target.find_workspace(actor)
    else:
        state = find_or_register(target=target, actor=actor)
    if state.lock_info is not None:
        holder = LockInfo(**state.lock_info)
        if state.lock_id != info.uuid:
            raise StateLocked(lock_for(state, actor).as_dict())
        return holder
    rules.check_freeze(state)
    acquired = {
        "lock_info": info.as_dict(),
        "lock_acquired_at": actor.now(),
        "lock_taken_by": {
            "lock_id": info.ID,
            "name": actor.name,
            "token_id": actor.token_id,
            "door": door,
        },
    }
    details = {"lock": info.described()}
    as_seen = {"pk": state.pk, "seen": state.revision}
    if not _ACQUIRE.run(
        actor, "state.lock", state.pk, details, lock_id=info.uuid, **as_seen, **acquired
    ):
        raise RaceLostError
    return info


@compare_and_swap(WriteConflict)
def unlock(*, target: StateTarget, lock_id: uuid.UUID, actor: Actor) -> None:
    """Release the lock with this ID, if the state is locked.

    A state that was never pushed is removed, with the entries that its LOCK registered. This also
    happens if the lock was already released, for example before a crash.

    Raises:
        LockNotHeld: another lock is active.
        WriteConflict: every attempt lost to a concurrent write.
    """
    state = target.find(actor)
    if state is None:
        return
    if state.lock_info is not None:
        if state.lock_id != lock_id:
            raise LockNotHeld
        _release(state, LockInfo(**state.lock_info), actor, "state.unlock")
    unregister(state, actor)


def held_remotely_by(actor: Actor, state: State) -> uuid.UUID | None:
    """Return the ID of the lock that the actor's token acquired through the remote backend.

    Return None if there is no such lock. Clients of the remote backend do not know the ID, so their
    token identifies them as the owner of the lock.
    """
    taken_by = state.lock_taken_by or {}
    is_own = (
        state.lock_id is not None
        and taken_by.get("lock_id") == str(state.lock_id)
        and taken_by.get("door") == REMOTE
        and taken_by["token_id"] == actor.token_id
    )
    return state.lock_id if is_own else None


def _release(state: State, held: LockInfo, actor: Actor, action: str, **details: Any) -> None:
    """Release the lock of the state, unless it has changed since the state was read.

    Raises:
        RaceLostError: the lock or the caller changed concurrently.
    """
    details = {"lock": held.described(state.lock_taken_by), **details}
    if not _RELEASE.run(actor, action, state.pk, details, pk=state.pk, held=state.lock_id):
        raise RaceLostError


def force_unlock(
    *, target: StateTarget, reason: str, actor: Actor, lock_id: uuid.UUID | None = None
) -> None:
    """Release the current lock of the state, and record the lock's owner and the reason.

    The call releases only the lock that it finds first, or the lock with ``lock_id``. It has no
    effect if the owner releases the lock in the meantime. A freeze stays.

    Raises:
        LockNotHeld: the current lock does not have ``lock_id``.
        StateFrozen: the state is frozen, and not locked.
        WriteConflict: every attempt lost to a concurrent write.
    """
    found = lock_id

    @compare_and_swap(WriteConflict)
    def release(*, target: StateTarget, actor: Actor) -> None:
        nonlocal found
        state = target.find(actor)
        if state is None:
            return
        if state.lock_info is None:
            rules.check_freeze(state)
            return
        if found not in (None, state.lock_id):
            if lock_id is None:
                return
            raise LockNotHeld
        found = state.lock_id
        held = LockInfo(**state.lock_info)
        _release(state, held, actor, "state.force_unlock", reason=reason)

    release(target=target, actor=actor)
