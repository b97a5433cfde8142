"""Freeze and unfreeze a state: an operator's lock, with a reason.

A frozen state accepts no new lock and no write. The owner of an existing lock can finish: it can
push, restore and unlock. Only ``unfreeze`` ends a freeze.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from apikeys import audit
from apikeys.races import RaceLostError, accept, compare_and_swap
from states.actions.catalogue import lock_entry
from states.errors import ENTRY_NOT_FOUND, StateNotFound, WriteConflict
from states.models import Application, Component, Environment, State

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Callable

    from apikeys.actors import Actor


@compare_and_swap(WriteConflict)
def freeze(
    *,
    state_id: uuid.UUID,
    reason: str,
    expected_until: dt.datetime | None,
    actor: Actor,
    check: Callable[[State], None] = accept,
) -> None:
    """Freeze a state, or replace the reason and the expected end of its freeze.

    An identical freeze by the same actor changes nothing, so clients can repeat a request.
    ``check`` raises an error if the freeze must not be changed.

    Raises:
        StateNotFound: the state does not exist, or is deleted.
        WriteConflict: every attempt lost to a concurrent write.
    """
    state = State.objects.visible().inside(actor.grant.binding).filter(pk=state_id).first()
    if state is None:
        raise StateNotFound
    wanted = {
        "frozen_by": actor.name,
        "freeze_reason": reason,
        "freeze_expected_until": expected_until,
    }
    if state.frozen_at is not None and all(getattr(state, n) == v for n, v in wanted.items()):
        return
    check(state)
    with transaction.atomic():
        _lock_entries(state)
        if not State.objects.as_seen(state).change(frozen_at=actor.now(), **wanted):
            raise RaceLostError
        until = None if expected_until is None else expected_until.isoformat()
        audit.authorize_and_record(
            actor,
            "state.frozen",
            state.pk,
            version=state.version_number,
            reason=reason,
            expected_until=until,
        )


def _lock_entries(state: State) -> None:
    """Lock the state's catalogue entries, which prevents renames until the transaction ends.

    The order of the locks is the same as in ``find_or_register``.

    Raises:
        RaceLostError: an entry was deleted concurrently.
    """
    components = Component.objects.select_for_update(no_key=True)
    component = components.filter(pk=state.component_id).first()
    if component is None:
        raise RaceLostError
    try:
        lock_entry(Application, component.application_id)
        lock_entry(Environment, state.environment_id)
    except tuple(ENTRY_NOT_FOUND.values()) as error:
        raise RaceLostError from error


@compare_and_swap(WriteConflict)
def unfreeze(
    *,
    state_id: uuid.UUID,
    actor: Actor,
    check: Callable[[State], None] = accept,
    **details: str,
) -> None:
    """Unfreeze a state. A state that is not frozen stays unchanged.

    ``check`` raises an error if the freeze must not end. The audit log records ``details`` in
    addition to the freeze.

    Raises:
        StateNotFound: the state does not exist.
        WriteConflict: every attempt lost to a concurrent write.
    """
    state = State.objects.inside(actor.grant.binding).filter(pk=state_id).first()
    if state is None:
        raise StateNotFound
    if state.frozen_at is None:
        return
    check(state)
    frozen = {
        "frozen_at": state.frozen_at.isoformat(),
        "frozen_by": state.frozen_by,
        "reason": state.freeze_reason,
    }
    with transaction.atomic():
        if not State.objects.as_seen(state).change(
            frozen_at=None, frozen_by="", freeze_reason="", freeze_expected_until=None
        ):
            raise RaceLostError
        version = state.version_number
        audit.authorize_and_record(
            actor, "state.unfrozen", state.pk, version=version, frozen=frozen, **details
        )
