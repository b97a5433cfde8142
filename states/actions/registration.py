"""Register a state, and the catalogue entries that it belongs to, at its first LOCK or push."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from structlog.contextvars import bind_contextvars

from apikeys import audit
from states.actions import catalogue
from states.errors import StateNotFound
from states.models import Component, Environment, State

if TYPE_CHECKING:
    from apikeys.actors import Actor
    from states.targets import StateTarget


def find_or_register(*, target: StateTarget, actor: Actor) -> State:
    """Return the state record; the first LOCK or push registers the missing entries.

    Raises:
        StateNotFound: the target is outside of the actor's binding.
    """
    state = target.find()
    if state is not None:
        return state
    component_id, environment_id = target.component_id, target.environment_id
    with transaction.atomic():
        if target.names is not None:
            component_id, environment_id = catalogue.register(
                target.names, component_id, environment_id
            )
        else:
            Component.objects.bulk_create([Component(pk=component_id)], ignore_conflicts=True)
            Environment.objects.bulk_create([Environment(pk=environment_id)], ignore_conflicts=True)
        # The lock makes a concurrent move of the component include this state.
        component = Component.objects.select_for_update().get(pk=component_id)
        binding = actor.grant.binding
        if not binding.allows_state(component_id, environment_id, component.application_id):
            raise StateNotFound  # it has moved, or a name leads elsewhere
        state = State(
            **actor.dated("created_at"),
            component=component,
            environment_id=environment_id,
            application_id=component.application_id,
        )
        State.objects.bulk_create([state], ignore_conflicts=True)
        registered: State = State.objects.of(component_id, environment_id).with_demand().get()
        if registered.pk == state.pk:
            audit.authorize_and_record(actor, "state.create", state.pk)
    bind_contextvars(state_id=str(registered.pk))
    return registered
