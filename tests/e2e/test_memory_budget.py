"""The memory of all large documents is bounded, and small requests continue meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.backend import Backend
from tests.e2e.crowd import MIB, Crowd, large, memory_of
from tests.e2e.wire import Wire
from tests.support.server import LiveServer, live_server

pytestmark = pytest.mark.long

BUDGET = 96 * MIB
SIZE = 8 * MIB


@pytest.fixture(scope="module")
def narrow() -> Iterator[LiveServer]:
    sizes = {"STATE_MAX_BYTES": str(16 * MIB), "WORKLOADS_MAX_BYTES": str(8 * MIB)}
    with live_server(MEMORY_BUDGET_BYTES=str(BUDGET), **sizes) as server:
        yield server


def test_many_clients_stay_within_the_budget(narrow: LiveServer) -> None:
    workers = narrow.workers()
    crowd = Crowd(narrow, clients=24, size=SIZE)
    before = memory_of(narrow)

    crowd.run(seconds=4)

    assert narrow.workers() == workers
    statuses = {(status, reason) for _, status, reason in crowd.answers if status}
    assert statuses <= {(200, ""), (503, "MEMORY_UNAVAILABLE")}
    assert (200, "") in statuses
    # Both workers' budgets, and as much again for freed memory that is not returned yet.
    assert crowd.peak - before < 4 * BUDGET
    assert crowd.small
    assert crowd.stored.push(large(SIZE, 3)).status == 200  # all memory is released


def test_announced_but_unsent_bodies_reserve_no_memory(narrow: LiveServer) -> None:
    backend = Backend(narrow, narrow.token("state:read", "state:write"))
    wires = [Wire(backend) for _ in range(40)]
    try:
        for wire in wires:
            wire.head("POST", Content_Length=SIZE)
        for serial in (1, 2, 3):
            assert backend.push(large(SIZE, serial)).status == 200
            assert backend.get().status == 200
    finally:
        for wire in wires:
            wire.socket.close()
