"""Restore, delete and undelete a state, each in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from apikeys import audit
from apikeys.races import RaceLostError, accept, compare_and_swap
from infra_service.lib.api import memory
from states.actions import rules
from states.actions.push import append_version, next_serial
from states.actions.removal import remove_empty
from states.actions.replacement import check_replacement
from states.document import format4, restamp, sealing
from states.document.uploads import Upload
from states.errors import StateNotFound, VersionNotFound, WriteConflict
from states.keeping import reading
from states.models import ResourceEntry, State

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from apikeys.actors import Actor
    from states.models import StateVersion
    from states.targets import StateTarget


#: Bytes of memory for a restore per byte of the document. They include the old document, the new
#: document, and the push of the new document.
RESTORE_FACTOR: Final = 5


def restore(
    *,
    state_id: uuid.UUID,
    number: int,
    lock_id: uuid.UUID | None,
    actor: Actor,
    check: Callable[[State], None] = accept,
    **details: Any,
) -> StateVersion:
    """Restore the content of an old version as a new current version that Terraform accepts.

    The new version has the next serial and the current lineage. Every other byte is from the old
    version. ``check`` raises an error if the state must not be changed. The audit log records
    ``details``.

    Raises:
        StateNotFound, VersionNotFound: the state or version does not exist.
        StateLocked, StateFrozen, LockNotHeld: see ``states.actions.rules``.
        StateEncrypted: OpenTofu encrypted the document, so its serial cannot be changed.
        StateFormatUnsupported: a member of the document is repeated.
        InvalidDocument: see ``states.actions.replacement``.
        WriteConflict: every attempt lost to a concurrent write.
    """
    stored, gzipped = reading.find_version(state_id=state_id, number=number)
    if stored is None:
        raise VersionNotFound
    memory.reserve(RESTORE_FACTOR * sealing.size_of(gzipped))
    old = sealing.decompress(gzipped)
    format4.refuse_encrypted(old)
    return _append(
        state_id=state_id,
        old=old,
        lock_id=lock_id,
        actor=actor,
        check=check,
        restored=number,
        **details,
    )


@compare_and_swap(WriteConflict)
def _append(
    *,
    state_id: uuid.UUID,
    old: bytes,
    lock_id: uuid.UUID | None,
    actor: Actor,
    check: Callable[[State], None],
    **details: Any,
) -> StateVersion:
    """Append the old document with the next serial and the current lineage of the state."""
    state = State.objects.visible().inside(actor.grant.binding).filter(pk=state_id).first()
    if state is None:
        raise StateNotFound
    rules.check_lock(state, lock_id, actor)
    check(state)
    upload = Upload.of(
        restamp.replace_serial_and_lineage(old, serial=next_serial(state), lineage=state.lineage)
    )
    check_replacement(state, upload)
    version = append_version(state, upload, actor, "state.restore", **details)
    if version is None:
        raise RaceLostError
    return version


@compare_and_swap(WriteConflict)
def delete(
    *,
    target: StateTarget,
    actor: Actor,
    check: Callable[[State], None] = accept,
    **details: Any,
) -> None:
    """Delete the state. Its history stays for STATE_RETENTION_DAYS. A push restores the state.

    A state without versions is removed immediately. If a deleted state has a new workspace, only
    the workspace is removed. ``check`` raises an error if the state must not be deleted. The audit
    log records ``details``.

    Raises:
        StateNotFound: the state does not exist, or is already deleted.
        StateLocked, StateFrozen: see ``states.actions.rules``.
    """
    state = target.find_workspace(actor)
    rules.check_lock(state, None, actor)
    if state.deleted_at is not None:
        _remove_workspace(state, actor, **details)
        return
    check(state)
    with transaction.atomic():
        if state.current_version_id is None:
            if not remove_empty(state, actor, **details):
                raise RaceLostError
            return
        if not State.objects.as_seen(state).change(
            deleted_at=actor.now(),
            indexed_number=0,
            workspace=None,
            deleted_workspace=state.workspace,
        ):
            raise RaceLostError
        ResourceEntry.objects.forget(state.pk)
        audit.authorize_and_record(
            actor, "state.delete", state.pk, version=state.version_number, **details
        )


def _remove_workspace(state: State, actor: Actor, **details: Any) -> None:
    """Remove the workspace that was created after the deletion of its state, and has no version.

    Raises:
        RaceLostError: the state changed concurrently.
    """
    with transaction.atomic():
        if not State.objects.as_seen(state).change(workspace=None):
            raise RaceLostError
        audit.authorize_and_record(actor, "state.delete", state.pk, version=0, **details)


@compare_and_swap(WriteConflict)
def undelete(*, state_id: uuid.UUID, actor: Actor, check: Callable[[State], None] = accept) -> None:
    """Restore a deleted state. A state that is not deleted stays unchanged.

    A workspace that was created after the deletion keeps its own name and tags. ``check`` raises
    an error if the deletion must not be undone.

    Raises:
        StateNotFound: the state does not exist, or its history was removed.
        StateLocked: the state is locked for a first push.
        StateFrozen: an operator has frozen the state.
        WriteConflict: every attempt lost to a concurrent write.
    """
    state = State.objects.inside(actor.grant.binding).filter(pk=state_id).first()
    if state is None:
        raise StateNotFound
    if state.deleted_at is None:
        return
    rules.check_lock(state, None, actor)
    check(state)
    with transaction.atomic():
        if not State.objects.as_seen(state).change(
            deleted_at=None,
            updated_at=actor.now(),
            workspace=state.workspace or state.deleted_workspace,
            deleted_workspace=None,
        ):
            raise RaceLostError
        audit.authorize_and_record(actor, "state.undelete", state.pk, version=state.version_number)
