"""Who may write: the rules of a push, as pure functions of what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from states.errors import LineageMismatch, LockNotHeld, LockRequired, SerialConflict, StateLocked
from states.lockinfo import LockInfo

if TYPE_CHECKING:
    import uuid

    from states.document.uploads import Upload
    from states.models import State


def check_lock(state: State, lock_id: uuid.UUID | None) -> None:
    """Refuse a writer that does not hold the state's lock, or whose lock was broken.

    Raises:
        StateLocked: another lock holds the state.
        LockNotHeld: the state is not locked, so the writer's lock was broken.
    """
    if state.lock_id == lock_id:
        return
    if state.lock_info is not None:
        raise StateLocked(LockInfo(**state.lock_info).as_dict())
    raise LockNotHeld


def check_demand(state: State, lock_id: uuid.UUID | None) -> None:
    """Refuse a push without a lock where the environment demands one, also one that forces.

    A restore and a deletion need no lock: each is one write, which any lock refuses.

    Raises:
        LockRequired: it comes without.
    """
    if lock_id is None and state.requires_lock:
        raise LockRequired


def is_current(state: State, upload: Upload) -> bool:
    """Whether this is what is stored: Terraform repeats a POST whose answer was lost."""
    return (
        state.deleted_at is None
        and state.md5 == upload.md5
        and state.size_bytes == upload.size_bytes
        and upload.head.serial in (None, state.serial)
    )


def check_succession(state: State, upload: Upload) -> None:
    """Refuse, for a writer without a lock, a document that does not follow the stored one.

    A writer with the lock is not asked: Terraform has compared the two itself, and ``state push
    -force`` must work.

    Raises:
        LineageMismatch: the document is another state's.
        SerialConflict: the document is not newer.
    """
    if state.serial is None or state.deleted_at is not None:
        return
    head = upload.head
    if head.lineage is not None and state.lineage is not None and head.lineage != state.lineage:
        raise LineageMismatch(head.lineage, state.lineage)
    if head.serial is not None and head.serial <= state.serial:
        raise SerialConflict(head.serial, state.serial)
