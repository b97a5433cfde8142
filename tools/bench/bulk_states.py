"""Load many states as rows: ``python -m tools.bench.bulk_states TOTAL``.

The states lie in the demo catalogue, after those that ``seed_demo`` can create with a history. Each
has a single version, and no events.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Final

import django

if __name__ == "__main__":
    django.setup()  # before the models are imported

from infra_service.demo.catalogue import missing_catalogue, place_of
from infra_service.demo.histories import MOST
from infra_service.demo.loading import batches, insert, new, refresh_statistics
from infra_service.demo.seeded_random import BEGINNING, Chance
from infra_service.demo.stacks import PARTS
from states.document import sealing
from states.models import Application, Component, Environment, State, StateVersion

_STATE: Final = 3
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


def _state_id(number: int) -> uuid.UUID:
    return Chance(_STATE, number).row_id(BEGINNING + number * _PACE)


def _state(number: int) -> tuple[State, StateVersion]:
    chance, created_at = Chance(_STATE, number), BEGINNING + number * _PACE
    # Draw the id first, as _state_id does.
    state_id = chance.row_id(created_at)
    place = place_of(number)
    serial = 1 + int(chance.expovariate(1 / 12))
    state = State(
        id=state_id,
        component_id=place.component_id,
        environment_id=place.environment_id,
        application_id=place.application_id,
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
    row = sealing.Place(state.pk, version.pk, version.number)
    sealed = sealing.seal(sealing.compress(document), row)
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


def main() -> None:
    """Load the states that follow the states with a history, up to the total."""
    total = int(sys.argv[1])
    print(dict(load_states(total, lambda _done: None, first=MOST)))
    refresh_statistics(Application, Component, Environment, State, StateVersion)


if __name__ == "__main__":
    main()
