"""The rules for writes, as functions of the stored state: locks, freezes, serial and lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from states.errors import (
    LineageMismatch,
    LockNotHeld,
    LockRequired,
    SerialConflict,
    StateFrozen,
    StateLocked,
)
from states.lock_holders import lock_for
from states.lockinfo import LockInfo

if TYPE_CHECKING:
    import uuid

    from apikeys.actors import Actor
    from states.document.uploads import Upload
    from states.models import State


def check_lock(state: State, lock_id: uuid.UUID | None, actor: Actor | None = None) -> None:
    """Reject a writer without the active lock, or after a force-unlock of the writer's lock.

    The owner of the lock can finish, even if the state was frozen in the meantime. The error
    describes only the parts of the lock that ``actor`` may see.

    Raises:
        StateLocked: another lock is active.
        StateFrozen: the state is frozen, and not locked.
        LockNotHeld: the state is not locked, so the writer's lock was released by force-unlock.
    """
    if state.lock_info is None:
        check_freeze(state)
    if state.lock_id == lock_id:
        return
    if state.lock_info is not None:
        raise StateLocked(lock_for(state, actor).as_dict())
    raise LockNotHeld


def check_freeze(state: State) -> None:
    """Refuse to change a frozen state.

    Raises:
        StateFrozen: an operator froze the state.
    """
    if state.frozen_at is not None:
        raise StateFrozen(LockInfo.of_freeze(state).as_dict(), state.pk)


def check_demand(state: State, lock_id: uuid.UUID | None) -> None:
    """Reject a push without a lock, even with force, if the environment requires a lock.

    A restore or a deletion requires no lock, because each is a single write that any lock prevents.

    Raises:
        LockRequired: the push has no lock.
    """
    if lock_id is None and state.requires_lock:
        raise LockRequired


def is_current(state: State, upload: Upload) -> bool:
    """Return whether the document is already current, as when Terraform repeats a POST."""
    return (
        state.deleted_at is None
        and state.md5 == upload.md5
        and state.size_bytes == upload.size_bytes
        and upload.head.serial in (None, state.serial)
    )


def check_succession(state: State, upload: Upload) -> None:
    """Reject a document with another lineage, or without a newer serial.

    A push with the lock skips this check, unless another version was stored during the push:
    Terraform already compared the serials and lineages, and ``state push -force`` must work.

    Raises:
        LineageMismatch: the document belongs to another state.
        SerialConflict: the document is not newer.
    """
    if state.serial is None or state.deleted_at is not None:
        return
    head = upload.head
    if head.lineage is not None and state.lineage is not None and head.lineage != state.lineage:
        raise LineageMismatch(head.lineage, state.lineage)
    if head.serial is not None and head.serial <= state.serial:
        raise SerialConflict(head.serial, state.serial)
