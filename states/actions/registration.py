"""Finding a state; and registering it, with what it belongs to, at its first LOCK or push."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import UUIDField
from structlog.contextvars import bind_contextvars

from apikeys import audit
from infra_service.lib.database.compiled import CompiledQuery, Parameter, Prefetch, instance_of
from states import addresses
from states.actions import catalogue
from states.errors import StateNotFound
from states.models import Component, Environment, State

if TYPE_CHECKING:
    import uuid

    from django.db.models import QuerySet

    from apikeys.actors import Actor
    from states.addresses import Names


def _state() -> QuerySet[State, Any]:
    key = (Parameter("component_id", UUIDField()), Parameter("environment_id", UUIDField()))
    return State.objects.of(*key).with_demand().values_list()


def _state_at(*, with_application: bool) -> QuerySet[State, Any]:
    names = addresses.parameters(with_application=with_application)
    return addresses.states_at(names).with_demand().values_list()


STATE: Final = CompiledQuery(_state)
#: The same by names, for addresses without and with an application.
STATE_AT: Final = {
    flag: CompiledQuery(partial(_state_at, with_application=flag)) for flag in (False, True)
}


def find(
    component_id: uuid.UUID, environment_id: uuid.UUID, look: Prefetch[State] | None = None
) -> State | None:
    """Return the state record with its demand, deleted or not; the log lines that follow name it.

    ``look`` is the same look, which may have been taken already.
    """
    look = look or Prefetch(STATE, component_id=component_id, environment_id=environment_id)
    row = look.row()
    if row is None:
        return None
    state = instance_of(State, row[:-1])
    state.requires_lock = row[-1]
    bind_contextvars(state_id=str(state.pk))
    return state


def find_or_register(
    *,
    component_id: uuid.UUID,
    environment_id: uuid.UUID,
    actor: Actor,
    look: Prefetch[State] | None = None,
    names: Names | None = None,
) -> State:
    """Return the state record; the first LOCK or push registers whatever is missing.

    By ``names``, the ids are those of what is registered.

    Raises:
        StateNotFound: what is to be registered is not inside of the actor's binding any more.
    """
    state = find(component_id, environment_id, look)
    if state is not None:
        return state
    with transaction.atomic():
        if names is not None:
            component_id, environment_id = catalogue.register(names, component_id, environment_id)
        else:
            Component.objects.bulk_create([Component(pk=component_id)], ignore_conflicts=True)
            Environment.objects.bulk_create([Environment(pk=environment_id)], ignore_conflicts=True)
        # Locked, so that a component that is moved meanwhile takes this state along.
        component = Component.objects.select_for_update().get(pk=component_id)
        binding = actor.grant.binding
        if not binding.allows_state(component_id, environment_id, component.application_id):
            raise StateNotFound  # it has moved, or a name leads to elsewhere
        state = State(
            **actor.dated("created_at"),
            component=component,
            environment_id=environment_id,
            application_id=component.application_id,
        )
        State.objects.bulk_create([state], ignore_conflicts=True)
        registered: State = State.objects.of(component_id, environment_id).with_demand().get()
        if registered.pk == state.pk:
            audit.record(actor, "state.create", state.pk)
    bind_contextvars(state_id=str(registered.pk))
    return registered
