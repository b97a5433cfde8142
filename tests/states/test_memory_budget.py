"""Large documents take memory from the budget; small documents bypass it."""

from __future__ import annotations

from typing import Any

from infra_service.lib.api import memory
from tests.conftest import error_reason
from tests.states.conftest import Backend, document

MIB = 1024 * 1024


def test_requests_stay_within_the_budget(backend: Backend, settings: Any) -> None:
    small = document(1)
    large = document(2, filler="x" * (2 * MIB))
    assert backend.push(small).status_code == 200
    assert backend.push(large).status_code == 200
    assert backend.get().content == large
    assert memory.BUDGET.held == 0

    settings.MEMORY_BUDGET_BYTES = 16 * MIB
    memory.BUDGET.held = 16 * MIB
    try:
        for response in (
            backend.push(document(3, filler="x" * (2 * MIB))),
            backend.get(),
            backend.look("/outputs"),
            backend.look("/versions/2/diff"),
            backend.call("/versions/2:restore"),
        ):
            assert (response.status_code, error_reason(response)) == (503, "MEMORY_UNAVAILABLE")
            assert int(response["Retry-After"]) >= 1
        assert backend.push(document(3)).status_code == 200
        assert backend.get().content == document(3)
        assert backend.look("/outputs").status_code == 200
    finally:
        memory.BUDGET.held = 0
    settings.MEMORY_BUDGET_BYTES = MIB
    response = backend.push(document(4, filler="x" * (2 * MIB)))
    assert (response.status_code, error_reason(response)) == (400, "MEMORY_INSUFFICIENT")
