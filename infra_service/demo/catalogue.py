"""The catalogue of the demo: applications, components, environments, and the place of each state.

``histories`` creates the states.
"""

from __future__ import annotations

import functools
import uuid  # noqa: TC003 - in a NamedTuple
from typing import Any, Final, NamedTuple

from infra_service.demo.loading import new
from infra_service.demo.seeded_random import BEGINNING, Chance
from infra_service.demo.stacks import PARTS
from states.models import Application, Component, Environment

_APPLICATION, _COMPONENT, _ENVIRONMENT = range(3)

#: Environments, with weights per thousand states.
ENVIRONMENTS: Final = {
    "production": 250, "staging": 240, "development": 230, "integration": 140,
    "performance": 80, "preview": 45, "recovery": 14, "sandbox": 1,
}  # fmt: skip
APPLICATIONS: Final = 500
STATES_OF_A_COMPONENT: Final = 4
# Consecutive components form a group of the same application; larger numbers add more groups.
_GROUP: Final = 20
_AREAS: Final = ("billing", "checkout", "search", "identity", "catalog", "shipping", "insights")
# The prefix of a name whose slug real data has taken.
_PREFIX: Final = "demo-"
#: The parts whose outputs a part reads.
_READS: Final = {
    "database": ("network",), "cluster": ("network",), "cache": ("network",), "cdn": ("dns",),
}  # fmt: skip


class Place(NamedTuple):
    """The place of a demo state."""

    application_id: uuid.UUID
    component_id: uuid.UUID
    environment_id: uuid.UUID
    part: str
    environment: str


def place_of(number: int) -> Place:
    """Return the place of the demo state with this number."""
    component, turn = divmod(number, STATES_OF_A_COMPONENT)
    environment = _environments_of(component)[turn]
    return Place(
        _application_id(_application_of(component)),
        _component_id(component),
        _environment_id(environment),
        PARTS[component % len(PARTS)],
        list(ENVIRONMENTS)[environment],
    )


def places_read(number: int) -> list[Place]:
    """Return the states that this demo state reads, within the same environment."""
    place, component = place_of(number), number // STATES_OF_A_COMPONENT
    first = component - component % len(PARTS)
    beside = (
        place_of((first + PARTS.index(part)) * STATES_OF_A_COMPONENT + turn)
        for part in _READS.get(place.part, ())
        for turn in range(STATES_OF_A_COMPONENT)
    )
    return [one for one in beside if one.environment_id == place.environment_id]


def missing_catalogue(numbers: range) -> dict[str, list[Any]]:
    """Return the missing applications, environments and components of these states."""
    components = range(
        numbers.start // STATES_OF_A_COMPONENT, -(-numbers.stop // STATES_OF_A_COMPONENT)
    )
    applications = sorted({_application_of(component) for component in components})
    environments = range(len(ENVIRONMENTS))
    return {
        "applications": new(Application, applications, _application_id, _application),
        "environments": new(Environment, environments, _environment_id, _environment),
        "components": new(Component, components, _component_id, _component),
    }


def _free_name(model: type[Application | Environment], name: str) -> str:
    """Return the name, with a prefix if its slug is taken."""
    return f"{_PREFIX}{name}" if model.objects.filter(slug=name).exists() else name


def _application(number: int) -> Application:
    name = _free_name(Application, f"{_AREAS[number % len(_AREAS)]}-{number:03}")
    return Application(
        id=_application_id(number),
        name=name,
        slug=name,
        created_at=BEGINNING,
        updated_at=BEGINNING,
    )


@functools.cache
def _application_id(number: int) -> uuid.UUID:
    return Chance(_APPLICATION, number).row_id()


def _application_of(component: int) -> int:
    return component // _GROUP % APPLICATIONS


def _component(number: int) -> Component:
    part = PARTS[number % len(PARTS)]
    return Component(
        id=_component_id(number),
        name=f"{part}-{number:06}",
        slug=f"{part}-{number:06}",
        application_id=_application_id(_application_of(number)),
        created_at=BEGINNING,
        updated_at=BEGINNING,
    )


@functools.lru_cache(maxsize=8)
def _component_id(number: int) -> uuid.UUID:
    return Chance(_COMPONENT, number).row_id()


@functools.lru_cache(maxsize=8)
def _environments_of(component: int) -> list[int]:
    """Return as many different environments as a component has states."""
    chance, weights = Chance(_COMPONENT, component), dict(enumerate(ENVIRONMENTS.values()))
    drawn = []
    for _ in range(STATES_OF_A_COMPONENT):
        drawn.append(chance.pick(weights))
        del weights[drawn[-1]]
    return drawn


def _environment(number: int) -> Environment:
    kind = list(ENVIRONMENTS)[number]
    name = _free_name(Environment, kind)
    return Environment(
        id=_environment_id(number),
        name=name,
        slug=name,
        # Not production, which a reader of the guides pushes to, also without a lock.
        require_lock=kind == "recovery",
        created_at=BEGINNING,
        updated_at=BEGINNING,
    )


@functools.cache
def _environment_id(number: int) -> uuid.UUID:
    return Chance(_ENVIRONMENT, number).row_id()
