"""Push a new version of a state, atomically.

A push replaces the current version by compare-and-swap (``apikeys.races``). Locks, restores and
deletions in ``states.actions.locks`` and ``states.actions.history`` use the same method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, PositiveIntegerField, UUIDField

from apikeys import audit
from apikeys.races import RaceLostError, compare_and_swap
from infra_service.lib.database.compiled import Parameter
from states import metrics
from states.actions import rules
from states.actions.registration import find_or_register
from states.actions.removal import unregister
from states.actions.replacement import check_replacement
from states.document import sealing
from states.errors import (
    LockNotHeld,
    LockRequired,
    SerialConflict,
    StorageUnavailable,
    WriteConflict,
)
from states.keeping import storage
from states.lockinfo import LockInfo
from states.models import MAX_SERIAL, State, StateVersion

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from apikeys.actors import Actor
    from states.document.uploads import Upload
    from states.models import ImportedVersion
    from states.targets import StateTarget


def push(
    *,
    target: StateTarget,
    upload: Upload,
    lock_id: uuid.UUID | None,
    force: bool,
    actor: Actor,
    must_follow: bool = False,
) -> State:
    """Store a new version, and make it current. Without ``force``, ignore an identical document.

    With ``force``, a writer without a lock can replace a newer version or another lineage, and any
    writer can replace a state with a document that is not a state, or store an identical document,
    which repairs a damaged version. With ``must_follow``, the serial and lineage are also checked
    for the owner of the lock. They are also checked if another version was stored during the push,
    because the owner could have repeated this push after a timeout, and then pushed the next
    serial.

    Raises:
        StateLocked, StateFrozen, LockNotHeld, LockRequired, SerialConflict, LineageMismatch: see
            ``states.actions.rules``.
        InvalidDocument: see ``states.actions.replacement``.
        StorageUnavailable: the object store did not accept the document.
        WriteConflict: every attempt lost to a concurrent write.
    """
    seen: set[int] = set()

    @compare_and_swap(WriteConflict)
    def attempt(*, target: StateTarget, actor: Actor) -> State:
        # 1. Find the state, or register it.
        state = find_or_register(target=target, actor=actor)
        seen.add(state.version_number)
        follows = must_follow or len(seen) > 1
        try:
            _push(state, upload, lock_id, actor, force=force, must_follow=follows)
        except (LockNotHeld, LockRequired, StorageUnavailable):
            unregister(state, actor)  # a failed first push leaves no records
            raise
        return state

    return attempt(target=target, actor=actor)


def _push(
    state: State,
    upload: Upload,
    lock_id: uuid.UUID | None,
    actor: Actor,
    *,
    force: bool,
    must_follow: bool,
) -> None:
    # 2. Check the lock.
    rules.check_lock(state, lock_id, actor)
    rules.check_demand(state, lock_id)
    # 3. Skip a document that is already current.
    if not force and rules.is_current(state, upload):
        metrics.UNCHANGED.inc()
        return
    # 4. Check that the document may replace the current document.
    if not force:
        check_replacement(state, upload)
        if lock_id is None or must_follow:
            rules.check_succession(state, upload)
    # 5. Store the version and make it current, if the state has not changed since step 1.
    if not append_version(state, upload, actor, "state.push", **_means(state, force=force)):
        raise RaceLostError
    metrics.STORED.inc()


def _means(state: State, *, force: bool) -> dict[str, Any]:
    """Return the details for the audit log that explain why the push was accepted."""
    means: dict[str, Any] = {"force": True} if force else {}
    if state.lock_info is not None:  # the push has the lock's ID
        means["lock"] = LockInfo(**state.lock_info).described(state.lock_taken_by)
    return means


def _as_seen() -> QuerySet[State]:
    pk, seen = Parameter("pk", UUIDField()), Parameter("seen", PositiveIntegerField())
    return State.objects.filter(pk=pk, revision=seen)


_SWAP: Final = audit.AuditedUpdate(
    _as_seen,
    "version_number", "current_version", "serial", "lineage", "md5", "size_bytes", "updated_at",
    deleted_at=None,
    revision=F("revision") + 1,
)  # fmt: skip


def append_version(
    state: State,
    upload: Upload,
    actor: Actor,
    action: str,
    *,
    number: int | None = None,
    imported: ImportedVersion | None = None,
    **details: Any,
) -> StateVersion | None:
    """Append a version, or return None if the state or the actor has changed since they were read.

    The version gets the next number, or ``number`` if it is greater. ``imported`` is the version's
    origin in another system.

    Raises:
        StorageUnavailable: the object store did not accept the document. Nothing was changed.
    """
    version = StateVersion(
        **actor.dated("created_at"),
        state=state,
        number=max(state.version_number + 1, number or 0),
        serial=next_serial(state, upload.head.serial),
        lineage=upload.head.lineage or state.lineage,
        md5=upload.md5,
        size_bytes=upload.size_bytes,
        created_by=actor.name,
        token_id=actor.token_id,
    )
    sealed = sealing.seal(upload.gzipped, sealing.Place(state.pk, version.pk, version.number))
    version.encryption_key = sealed.key_name
    version.document, version.object_name = storage.place(sealed.payload, state.pk, version.pk)
    rows: list[StateVersion | ImportedVersion] = [version]
    if imported is not None:
        imported.version = version
        rows.append(imported)
    if _make_current(state, rows, actor, action, details):
        return version
    storage.discard(version.object_name)
    return None


def _make_current(
    state: State, rows: Sequence[Any], actor: Actor, action: str, details: dict[str, Any]
) -> bool:
    """Insert the rows, and set the current version of the state to the first row."""
    version: StateVersion = rows[0]
    figures = {name: getattr(version, name) for name in ("serial", "md5", "size_bytes")}
    # The check of the foreign key is deferred, so the version can be inserted in any order.
    return _SWAP.run(
        actor,
        action,
        state.pk,
        {"version": version.number, **figures, **details},
        *rows,
        pk=state.pk,
        seen=state.revision,
        version_number=version.number,
        current_version=version.pk,
        lineage=version.lineage,
        updated_at=version.created_at,
        **figures,
    )


def next_serial(state: State, given: int | None = None) -> int:
    """Return the document's serial, or the state's next serial if the document has none.

    Raises:
        SerialConflict: the state has the maximum serial.
    """
    if given is not None:
        return given
    if state.serial is None:
        return 1
    if state.serial >= MAX_SERIAL:
        raise SerialConflict(state.serial, state.serial)
    return int(state.serial) + 1
