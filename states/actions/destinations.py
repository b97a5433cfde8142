"""The addresses of imported states, by names or by the ids from another installation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra_service.lib.display_names import visible
from infra_service.lib.uuids import uuid7
from states import addresses
from states.actions import catalogue
from states.models import Component, Environment, State
from states.targets import StateTarget

if TYPE_CHECKING:
    import uuid

    from apikeys.actors import Actor
    from states.addresses import Names


@dataclass(slots=True, kw_only=True)
class Destination(StateTarget):
    """The target of an import. ``titles`` are the display names of the entries in the source."""

    titles: Names | None = None

    @classmethod
    def named(cls, names: Names) -> Destination:
        return cls(component_id=uuid7(), environment_id=uuid7(), names=names)

    @classmethod
    def as_before(
        cls,
        component_id: uuid.UUID,
        environment_id: uuid.UUID,
        names: Names | None,
        titles: Names,
    ) -> Destination:
        """Return the target with the ids of the export, or with new ids if these are in use."""
        if names is None:
            return cls(component_id=component_id, environment_id=environment_id)
        if Component.objects.filter(pk=component_id).exists():
            component_id = uuid7()
        if Environment.objects.filter(pk=environment_id).exists():
            environment_id = uuid7()
        return cls(
            component_id=component_id, environment_id=environment_id, names=names, titles=titles
        )

    def __str__(self) -> str:
        """Return the end of the backend's address, which identifies the state."""
        if self.names is None:
            return f"{self.component_id}/env/{self.environment_id}"
        return self.names.path

    @property
    def path(self) -> str:
        return addresses.path_at(self.component_id, self.environment_id, self.names)


def name_as_before(*, destination: Destination, state_id: uuid.UUID, actor: Actor) -> None:
    """Set the display names from the source, unless an entry already has a display name."""
    if destination.titles is None:
        return
    state = State.objects.select_related("component__application", "environment").get(pk=state_id)
    entries = {
        "application": state.component.application,
        "component": state.component,
        "environment": state.environment,
    }
    for kind, given in destination.titles.given.items():
        entry, title = entries[kind], visible(given)
        if entry is not None and title and entry.slug == entry.name != title:
            changes = {"name": title}
            catalogue.change(model=type(entry), entry_id=entry.pk, changes=changes, actor=actor)
