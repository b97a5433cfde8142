"""Applications, components, environments, and a state in each environment of a component.

They are loaded as rows, in any number. ``histories`` creates the states with a history.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from infra_service.demo.loading import batches, insert, new
from infra_service.demo.seeded_random import BEGINNING, Chance
from infra_service.demo.stacks import PARTS
from states.document import sealing
from states.models import Application, Component, Environment, State, StateVersion

if TYPE_CHECKING:
    from collections.abc import Callable

_APPLICATION, _COMPONENT, _ENVIRONMENT, _STATE = range(4)

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
# The prefix of globally unique slugs, which avoids collisions with real data.
_SLUGS: Final = "demo-"
#: The parts whose outputs a part reads.
_READS: Final = {
    "database": ("network",), "cluster": ("network",), "cache": ("network",), "cdn": ("dns",),
}  # fmt: skip
_LOCKED: Final = 0.002
_PACE: Final = dt.timedelta(seconds=10)
_DOCUMENT: Final = (
    '{{"version": 4, "terraform_version": "1.11.4", "serial": {serial}, "lineage": "{lineage}", '
    '"outputs": {{}}, "resources": [{resources}]}}'
)
_RESOURCE: Final = (
    '{{"mode": "managed", "type": "aws_route53_record", "name": "{part}_{number}", '
    '"instances": []}}'
)


class Place(NamedTuple):
    """The place of a demo state."""

    component_id: uuid.UUID
    environment_id: uuid.UUID
    part: str
    environment: str


def place_of(number: int) -> Place:
    """Return the place of the demo state with this number."""
    component, turn = divmod(number, STATES_OF_A_COMPONENT)
    environment = _environments_of(component)[turn]
    return Place(
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


def load_states(total: int, progress: Callable[[int], None], *, first: int = 0) -> Counter[str]:
    """Create missing demo states from ``first`` to ``total``, each with a single version.

    Return the number of new rows per kind.
    """
    created: Counter[str] = Counter()
    for numbers in batches(total, first):
        pushed = new(State, numbers, _state_id, _state)
        rows = missing_catalogue(numbers)
        rows["states"] = [state for state, _ in pushed]
        rows["versions"] = [version for _, version in pushed]
        insert(*rows.values())
        created.update({name: len(made) for name, made in rows.items()})
        progress(numbers.stop)
    return created


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


def _application(number: int) -> Application:
    area = _AREAS[number % len(_AREAS)]
    return Application(
        id=_application_id(number),
        name=f"{area}-{number:03}",
        slug=f"{_SLUGS}{area}-{number:03}",
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
    name = list(ENVIRONMENTS)[number]
    return Environment(
        id=_environment_id(number),
        name=name,
        slug=f"{_SLUGS}{name}",
        require_lock=name == "production",
        created_at=BEGINNING,
        updated_at=BEGINNING,
    )


@functools.cache
def _environment_id(number: int) -> uuid.UUID:
    return Chance(_ENVIRONMENT, number).row_id()


def _state_id(number: int) -> uuid.UUID:
    return Chance(_STATE, number).row_id(BEGINNING + number * _PACE)


def _state(number: int) -> tuple[State, StateVersion]:
    chance, created_at = Chance(_STATE, number), BEGINNING + number * _PACE
    # Draw the id first, as _state_id does.
    state_id = chance.row_id(created_at)
    component, turn = divmod(number, STATES_OF_A_COMPONENT)
    serial = 1 + int(chance.expovariate(1 / 12))
    state = State(
        id=state_id,
        component_id=_component_id(component),
        environment_id=_environment_id(_environments_of(component)[turn]),
        application_id=_application_id(_application_of(component)),
        version_number=1,
        serial=serial,
        lineage=str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        created_at=created_at,
        updated_at=created_at + dt.timedelta(minutes=chance.expovariate(1 / 40_000)),
    )
    document = _document(state, resources=int(chance.expovariate(1 / 6)))
    version = StateVersion(
        id=chance.row_id(created_at),
        state_id=state.pk,
        number=1,
        serial=serial,
        lineage=state.lineage,
        md5=hashlib.md5(document, usedforsecurity=False).hexdigest(),
        size_bytes=len(document),
        created_at=state.updated_at,
        created_by="seed_demo",
    )
    place = sealing.Place(state.pk, version.pk, version.number)
    sealed = sealing.seal(sealing.compress(document), place)
    version.document, version.encryption_key = sealed.payload, sealed.key_name
    state.current_version_id = version.pk
    state.md5, state.size_bytes = version.md5, version.size_bytes
    if chance.random() < _LOCKED:
        _lock(state, chance)
    return state, version


def _document(state: State, *, resources: int) -> bytes:
    parts = (_RESOURCE.format(part=PARTS[n % len(PARTS)], number=n) for n in range(resources))
    text = _DOCUMENT.format(serial=state.serial, lineage=state.lineage, resources=", ".join(parts))
    return text.encode()


def _lock(state: State, chance: Chance) -> None:
    lock_id = uuid.UUID(int=chance.getrandbits(128), version=4)
    state.lock_id, state.lock_acquired_at = lock_id, state.updated_at
    state.lock_info = {
        "ID": str(lock_id), "Operation": "OperationTypeApply", "Info": "",
        "Who": f"{chance.choice(('ada', 'grace', 'linus', 'ci'))}@runner-{chance.randrange(40)}",
        "Version": "1.11.4", "Created": f"{state.updated_at:%Y-%m-%dT%H:%M:%S.%fZ}", "Path": "",
    }  # fmt: skip
