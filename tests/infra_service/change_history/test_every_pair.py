"""The recorded changes of random versions are the same as by a separate rule.

``PAIRS=10000 SEED=2 pytest tests/infra_service/change_history/test_every_pair.py`` compares 10,000
other pairs.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from infra_service.change_history.models import Change
from tests.infra_service.change_history.random_versions import Author, Expected, expected
from tests.states.conftest import Backend
from tests.states.indexed import index

PAIRS = int(os.environ.get("PAIRS", "150"))
SEED = int(os.environ.get("SEED", "1"))
#: Versions of a state, and pushes before each pass of the index.
VERSIONS, AT_ONCE = 50, 5


def recorded(backend: Backend, number: int) -> Counter[Expected]:
    rows = Change.objects.filter(state=backend.record, version_number=number)
    return Counter(
        Expected(*texts, tuple(attributes))
        for *texts, attributes in rows.values_list(*Expected._fields)
    )


@pytest.mark.long
def test_recorded_changes_are_the_difference_of_each_pair(backend: Backend) -> None:
    actions: Counter[str] = Counter()
    for seed in range(PAIRS // VERSIONS):
        author, state = Author(SEED * 1_000_000 + seed), Backend(backend.client)
        documents: list[bytes | None] = [None]
        for number in range(1, VERSIONS + 1):
            documents.append(body := author.version())
            assert state.push(body).status_code == 200
            if number % AT_ONCE == 0:
                index()
        for number in range(1, VERSIONS + 1):
            before, after = documents[number - 1 : number + 1]
            assert after is not None
            wanted = expected(before, after)
            assert recorded(state, number) == wanted, (seed, number, before, after)
            actions.update(one.action for one in wanted.elements())

    assert actions.keys() == {"ADDED", "CHANGED", "REMOVED", "REPLACED", "MOVED", "TAINTED"}
    assert min(actions.values()) > PAIRS // 100, actions
