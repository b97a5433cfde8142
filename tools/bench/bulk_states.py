"""Load many states directly into the database: ``python -m tools.bench.bulk_states TOTAL``.

The states belong to the demo catalogue, and follow the states that ``seed_demo`` creates with a
history. Each state has a single version and no events.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import django

if __name__ == "__main__":
    django.setup()  # before the models are imported

from infra_service.demo.catalogue import ENVIRONMENTS, place_of
from infra_service.demo.histories import MOST
from infra_service.demo.seeded_random import SeededRandom
from infra_service.demo.stacks import PARTS
from states.document import sealing
from states.models import Application, Component, Environment, State, StateVersion
from states.models.catalogue_entry import CatalogueEntry
from tools.bench.loading import BEGINNING, batches, insert, new, refresh_statistics, row_id
from workloads.models import Cluster, ClusterImage, Transition, Workload, WorkloadImage

_ENTRY, _STATE = 0, 3
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


def load_states(total: int, progress: Callable[[int], None], *, first: int = 0) -> Counter[str]:
    """Create missing demo states from ``first`` to ``total``. Return the number of rows by kind.

    Each state has a single version.
    """
    created: Counter[str] = Counter()
    for numbers in batches(total, first):
        ids = _catalogue(numbers)
        pushed = new(State, numbers, _state_id, functools.partial(_state, ids))
        insert([state for state, _ in pushed], [version for _, version in pushed])
        created["states"] += len(pushed)
        progress(numbers.stop)
    return created


def _catalogue(numbers: range) -> dict[str, uuid.UUID]:
    """Create missing catalogue entries of these states, and return all ids by name."""
    places = [place_of(number) for number in numbers]
    environments = _ids(Environment, {name: {} for name in ENVIRONMENTS})
    applications = _ids(Application, {place.application: {} for place in places})
    components = {p.component: {"application_id": applications[p.application]} for p in places}
    return environments | applications | _ids(Component, components)


def _ids(model: type[CatalogueEntry], wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the ids of entries by slug. Create missing entries with the given fields."""
    there = dict(model.objects.filter(slug__in=wanted).values_list("slug", "pk"))
    rows = [
        model(
            id=row_id(SeededRandom(_ENTRY, int.from_bytes(name.encode()))),
            name=name,
            slug=name,
            created_at=BEGINNING,
            updated_at=BEGINNING,
            **fields,
        )
        for name, fields in wanted.items()
        if name not in there
    ]
    insert(rows)
    return there | {str(row.slug): row.pk for row in rows}


def _state_id(number: int) -> uuid.UUID:
    return row_id(SeededRandom(_STATE, number), BEGINNING + number * _PACE)


def _state(ids: Mapping[str, uuid.UUID], number: int) -> tuple[State, StateVersion]:
    rng, created_at = SeededRandom(_STATE, number), BEGINNING + number * _PACE
    # Draw the id first, like _state_id.
    state_id = row_id(rng, created_at)
    place = place_of(number)
    serial = 1 + int(rng.expovariate(1 / 12))
    state = State(
        id=state_id,
        component_id=ids[place.component],
        environment_id=ids[place.environment],
        application_id=ids[place.application],
        version_number=1,
        serial=serial,
        lineage=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        created_at=created_at,
        updated_at=created_at + dt.timedelta(minutes=rng.expovariate(1 / 40_000)),
    )
    document = _document(state, resources=int(rng.expovariate(1 / 6)))
    version = StateVersion(
        id=row_id(rng, created_at),
        state_id=state.pk,
        number=1,
        serial=serial,
        lineage=state.lineage,
        md5=hashlib.md5(document, usedforsecurity=False).hexdigest(),
        size_bytes=len(document),
        created_at=state.updated_at,
        created_by="seed_demo",
    )
    row = sealing.Place(state.pk, version.pk, version.number)
    sealed = sealing.seal(sealing.compress(document), row)
    version.document, version.encryption_key = sealed.payload, sealed.key_name
    state.current_version_id = version.pk
    state.md5, state.size_bytes = version.md5, version.size_bytes
    if rng.random() < _LOCKED:
        _lock(state, rng)
    return state, version


def _document(state: State, *, resources: int) -> bytes:
    parts = (_RESOURCE.format(part=PARTS[n % len(PARTS)], number=n) for n in range(resources))
    text = _DOCUMENT.format(serial=state.serial, lineage=state.lineage, resources=", ".join(parts))
    return text.encode()


def _lock(state: State, rng: SeededRandom) -> None:
    lock_id = uuid.UUID(int=rng.getrandbits(128), version=4)
    state.lock_id, state.lock_acquired_at = lock_id, state.updated_at
    state.lock_info = {
        "ID": str(lock_id), "Operation": "OperationTypeApply", "Info": "",
        "Who": f"{rng.choice(('ada', 'grace', 'linus', 'ci'))}@runner-{rng.randrange(40)}",
        "Version": "1.11.4", "Created": f"{state.updated_at:%Y-%m-%dT%H:%M:%S.%fZ}", "Path": "",
    }  # fmt: skip


def main() -> None:
    """Load the states after the states with a history, up to the total."""
    total = int(sys.argv[1])
    print(dict(load_states(total, lambda _done: None, first=MOST)))
    refresh_statistics(
        Application, Component, Environment, State, StateVersion, Cluster, Workload, Transition,
        ClusterImage, WorkloadImage,
    )  # fmt: skip


if __name__ == "__main__":
    main()
