"""Where an imported state goes: by names, or by the ids that it had in another installation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uuid_utils.compat import uuid7

from infra_service.lib.database.compiled import Prefetch
from states import addresses
from states.actions import catalogue
from states.actions.registration import STATE, STATE_AT, find
from states.models import Component, Environment, State

if TYPE_CHECKING:
    import uuid

    from apikeys.actors import Actor
    from states.addresses import Names


@dataclass(frozen=True, slots=True)
class Destination:
    """The state that is imported to; what of it is not there yet gets these ids.

    By ``names`` if it has any. ``titles`` are how people call what has the names.
    """

    component_id: uuid.UUID
    environment_id: uuid.UUID
    names: Names | None = None
    titles: Names | None = None

    @classmethod
    def of(cls, names: Names) -> Destination:
        return cls(uuid7(), uuid7(), names)

    @classmethod
    def as_before(
        cls,
        component_id: uuid.UUID,
        environment_id: uuid.UUID,
        names: Names | None,
        titles: Names,
    ) -> Destination:
        """Return what had these ids elsewhere, and gets them again unless they are taken."""
        if names is None:
            return cls(component_id, environment_id)
        return cls(
            uuid7() if Component.objects.filter(pk=component_id).exists() else component_id,
            uuid7() if Environment.objects.filter(pk=environment_id).exists() else environment_id,
            names,
            titles,
        )

    def __str__(self) -> str:
        """Return the end of the backend's address."""
        if self.names is None:
            return f"{self.component_id}/env/{self.environment_id}"
        return self.names.path

    @property
    def path(self) -> str:
        return addresses.path_at(self.component_id, self.environment_id, self.names)

    def look(self) -> Prefetch[State]:
        if self.names is not None:
            return Prefetch(STATE_AT[self.names.application is not None], **self.names.given)
        return Prefetch(STATE, component_id=self.component_id, environment_id=self.environment_id)

    def find(self) -> State | None:
        """Return the state, deleted or not."""
        return find(self.component_id, self.environment_id, self.look())


def name_as_before(*, destination: Destination, state_id: uuid.UUID, actor: Actor) -> None:
    """Give what the state belongs to the names it had elsewhere, unless somebody has named it."""
    if destination.titles is None:
        return
    state = State.objects.select_related("component__application", "environment").get(pk=state_id)
    entries = {
        "application": state.component.application,
        "component": state.component,
        "environment": state.environment,
    }
    for kind, title in destination.titles.given.items():
        entry = entries[kind]
        if entry is not None and title and entry.slug == entry.name != title:
            changes = {"name": title}
            catalogue.change(model=type(entry), entry_id=entry.pk, changes=changes, actor=actor)
