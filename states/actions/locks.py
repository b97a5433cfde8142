"""What can be done to a state's lock; each whole or not at all.

A LOCK is one UPDATE, so that of any number at the same moment one gets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, UUIDField

from apikeys import audit
from infra_service.lib.database.compiled import Parameter
from infra_service.lib.database.retries import retrying
from states.actions.push import ATTEMPTS
from states.actions.registration import find, find_or_register
from states.errors import LockNotHeld, StateLocked, WriteConflict
from states.lockinfo import LockInfo
from states.models import State

if TYPE_CHECKING:
    import uuid

    from apikeys.actors import Actor
    from infra_service.lib.database.compiled import Prefetch
    from states.addresses import Names
    from states.models import StateQuerySet


def _unlocked() -> StateQuerySet:
    return State.objects.filter(pk=Parameter("pk", UUIDField()), lock_id=None)


def _locked() -> StateQuerySet:
    held = Parameter("held", UUIDField())
    return State.objects.filter(pk=Parameter("pk", UUIDField()), lock_id=held)


_REVISED: Final = F("revision") + 1
#: Locks a state unless it is locked: one atomic statement, so that one of many wins.
_TAKE: Final = audit.AuditedUpdate(
    _unlocked, "lock_id", "lock_info", "lock_acquired_at", "lock_taken_by", revision=_REVISED
)
#: Unlocks a state if this lock holds it.
_RELEASE: Final = audit.AuditedUpdate(
    _locked,
    lock_id=None,
    lock_info=None,
    lock_acquired_at=None,
    lock_taken_by=None,
    revision=_REVISED,
)


@retrying
def lock(
    *,
    component_id: uuid.UUID,
    environment_id: uuid.UUID,
    info: LockInfo,
    actor: Actor,
    look: Prefetch[State] | None = None,
    names: Names | None = None,
) -> LockInfo:
    """Lock the state, at once or not at all; its own holder is told again that it holds it.

    Raises:
        StateLocked: another lock holds the state.
        WriteConflict: lost the race too often.
    """
    for _ in range(ATTEMPTS):
        state = find_or_register(
            component_id=component_id,
            environment_id=environment_id,
            actor=actor,
            look=look,
            names=names,
        )
        if state.lock_info is not None:
            holder = LockInfo(**state.lock_info)
            if state.lock_id != info.uuid:
                raise StateLocked(holder.as_dict())
            return holder
        taken = {
            "lock_info": info.as_dict(),
            "lock_acquired_at": actor.now(),
            "lock_taken_by": {"lock_id": info.ID, "name": actor.name, "token_id": actor.token_id},
        }
        said = {"lock": info.described()}
        if _TAKE.run(actor, "state.lock", state.pk, said, pk=state.pk, lock_id=info.uuid, **taken):
            return info
        actor = actor.refresh(look)
    raise WriteConflict


@retrying
def unlock(
    *,
    component_id: uuid.UUID,
    environment_id: uuid.UUID,
    lock_id: uuid.UUID,
    actor: Actor,
    look: Prefetch[State] | None = None,
) -> None:
    """Release this lock; a state that is not locked is left as it is.

    Raises:
        LockNotHeld: another lock holds the state.
        WriteConflict: lost the race too often.
    """
    for _ in range(ATTEMPTS):
        state = find(component_id, environment_id, look)
        if state is None or state.lock_info is None:
            return
        if state.lock_id != lock_id:
            raise LockNotHeld
        if _release(state, LockInfo(**state.lock_info), actor, "state.unlock"):
            return
        actor = actor.refresh(look)
    raise WriteConflict


def _release(state: State, held: LockInfo, actor: Actor, action: str, **details: Any) -> bool:
    """Unlock the state if the lock that was read still holds it, and who acts is the same."""
    said = {"lock": held.described(state.lock_taken_by), **details}
    return _RELEASE.run(actor, action, state.pk, said, pk=state.pk, held=state.lock_id)


@retrying
def force_unlock(
    *,
    component_id: uuid.UUID,
    environment_id: uuid.UUID,
    reason: str,
    actor: Actor,
    lock_id: uuid.UUID | None = None,
    look: Prefetch[State] | None = None,
) -> None:
    """Release the lock that holds the state now, and record its holder and the reason.

    A lock that was acquired after this began is left alone: when the lock that was found is
    released by its holder meanwhile, there is nothing more to do. With ``lock_id``, only that lock
    is released.

    Raises:
        LockNotHeld: another lock than ``lock_id`` holds the state.
        WriteConflict: lost the race too often.
    """
    found = lock_id
    for _ in range(ATTEMPTS):
        state = find(component_id, environment_id, look)
        if state is None or state.lock_info is None:
            return
        if found not in (None, state.lock_id):
            if lock_id is None:
                return
            raise LockNotHeld
        found = state.lock_id
        held = LockInfo(**state.lock_info)
        if _release(state, held, actor, "state.force_unlock", reason=reason):
            return
        actor = actor.refresh(look)
    raise WriteConflict
