"""The catalogue of the demo: applications, components and environments, and a place per state."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from apikeys.models import AuditEvent
from infra_service.demo.seeded_random import SeededRandom
from infra_service.demo.stacks import PARTS
from infra_service.demo.users import AGE, COMMAND, command_at
from states.actions import catalogue
from states.models import Application, Component, Environment
from states.models.catalogue_entry import NO_PARENT
from states.targets import StateTarget

if TYPE_CHECKING:
    import datetime as dt
    import uuid

    from states.models.catalogue_entry import CatalogueEntry

#: Environments, with weights per thousand states.
ENVIRONMENTS: Final = {
    "production": 250, "staging": 240, "development": 230, "integration": 140,
    "performance": 80, "preview": 45, "recovery": 14, "sandbox": 1,
}  # fmt: skip
STATES_OF_A_COMPONENT: Final = 4
_COMPONENT: Final = 1
# Consecutive components form a group of the same application.
_GROUP: Final = 20
_AREAS: Final = ("billing", "checkout", "search", "identity", "catalog", "shipping", "insights")
# The prefix of a demo name if other data already uses its slug.
_PREFIX: Final = "demo-"
#: For each part, the parts with outputs that it reads.
_READS: Final = {
    "database": ("network",), "cluster": ("network",), "cache": ("network",), "cdn": ("dns",),
}  # fmt: skip


class Place(NamedTuple):
    """The location of a demo state, by names."""

    application: str
    component: str
    environment: str
    part: str


def place_of(number: int) -> Place:
    """Return the place of the demo state with this number."""
    component, turn = divmod(number, STATES_OF_A_COMPONENT)
    group, part = component // _GROUP, PARTS[component % len(PARTS)]
    return Place(
        f"{_AREAS[group % len(_AREAS)]}-{group:03}",
        f"{part}-{component:06}",
        _environments_of(component)[turn],
        part,
    )


def places_read(number: int) -> list[Place]:
    """Return the places of the states that state ``number`` reads, in the same environment."""
    place, component = place_of(number), number // STATES_OF_A_COMPONENT
    first = component - component % len(PARTS)
    beside = (
        place_of((first + PARTS.index(part)) * STATES_OF_A_COMPONENT + turn)
        for part in _READS.get(place.part, ())
        for turn in range(STATES_OF_A_COMPONENT)
    )
    return [one for one in beside if one.environment == place.environment]


def _environments_of(component: int) -> list[str]:
    """Return as many different environments as a component has states."""
    rng, weights, drawn = SeededRandom(_COMPONENT, component), dict(ENVIRONMENTS), []
    for _ in range(STATES_OF_A_COMPONENT):
        drawn.append(rng.pick(weights))
        del weights[drawn[-1]]
    return drawn


class Catalogue:
    """The demo's catalogue entries, created a year ago. ``created`` counts the new entries."""

    def __init__(self, now: dt.datetime) -> None:
        self._actor = command_at(now - AGE)
        self.created: Counter[str] = Counter()
        self._ids: dict[tuple[type[CatalogueEntry], str], uuid.UUID] = {}
        for name in ENVIRONMENTS:
            # Production requires no lock, because the guides push to it without a lock.
            self._id_of(Environment, name, require_lock=name == "recovery")

    def target_at(self, place: Place) -> StateTarget:
        """Return the target for a place. Create a missing application or component."""
        application_id = self._id_of(Application, place.application)
        return StateTarget(
            component_id=self._id_of(Component, place.component, application_id=application_id),
            environment_id=self._id_of(Environment, place.environment),
        )

    def _id_of(self, model: type[CatalogueEntry], name: str, **fields: Any) -> uuid.UUID:
        """Return the id of a demo entry. Create a missing entry with a free slug."""
        key = (model, name)
        if key not in self._ids:
            kind = model._meta.model_name
            created = AuditEvent.objects.filter(action=f"{kind}.create", actor_name=COMMAND.name)
            parent_id = fields.get("application_id", NO_PARENT)
            while (entry := model.of_slug(name, parent_id).first()) is not None:
                if created.filter(resource_id=str(entry.pk)).exists():
                    break
                name = _PREFIX + name
            else:
                fields |= {"name": name, "slug": name}
                entry = catalogue.create(model=model, fields=fields, actor=self._actor)
                model.objects.filter(pk=entry.pk).update(updated_at=entry.created_at)
                self.created[f"{kind}s"] += 1
            self._ids[key] = entry.pk
        return self._ids[key]
