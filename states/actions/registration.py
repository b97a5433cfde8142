"""Register a state and its catalogue entries at the first LOCK or push."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from rest_framework.exceptions import NotFound
from structlog.contextvars import bind_contextvars

from apikeys import audit
from apikeys.races import RaceLostError
from states.actions import catalogue
from states.errors import StateNotFound
from states.models import Application, Component, Environment, State

if TYPE_CHECKING:
    from apikeys.actors import Actor
    from states.targets import StateTarget


def find_or_register(*, target: StateTarget, actor: Actor) -> State:
    """Return the record of a state. Register the state and its catalogue entries if missing.

    Raises:
        StateNotFound: the state or target is outside the actor's binding.
        RaceLostError: an entry was deleted concurrently.
    """
    state = target.find(actor)
    if state is not None:
        return state
    component_id, environment_id = target.component_id, target.environment_id
    new = State(**actor.dated("created_at"))
    with transaction.atomic():
        if target.names is not None:
            component_id, environment_id = catalogue.register(
                target.names, component_id, environment_id, new.created_at
            )
        else:
            # ``removal.unregister`` removes only entries with the same creation time as the state.
            made = {"created_at": new.created_at}
            Component.objects.bulk_create(
                [Component(pk=component_id, **made)], ignore_conflicts=True
            )
            Environment.objects.bulk_create(
                [Environment(pk=environment_id, **made)], ignore_conflicts=True
            )
        # The lock ensures that a concurrent move of the component includes this state.
        component = Component.objects.select_for_update().filter(pk=component_id).first()
        if component is None:
            raise RaceLostError  # deleted concurrently, because it had no state
        try:
            catalogue.lock_entry(Application, component.application_id)
        except NotFound as error:
            raise RaceLostError from error
        binding = actor.grant.binding
        if not binding.allows_state(component_id, environment_id, component.application_id):
            raise StateNotFound  # the component moved, or a name refers to another entry
        new.component, new.environment_id = component, environment_id
        new.application_id = component.application_id
        State.objects.bulk_create([new], ignore_conflicts=True)
        # The environment is also locked, so that it cannot be deleted before the commit.
        found = State.objects.of(component_id, environment_id).with_demand()
        locked = found.select_related("environment").select_for_update(
            of=("environment",), no_key=True
        )
        registered: State | None = locked.first()
        if registered is None:
            raise RaceLostError
        if registered.pk == new.pk:
            audit.authorize_and_record(actor, "state.create", new.pk)
    bind_contextvars(state_id=str(registered.pk))
    return registered
