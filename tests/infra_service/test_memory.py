"""The budget of memory that requests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.checks import run_checks
from django.http import HttpResponse

from infra_service.lib.api import memory

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def budget(settings: Any) -> None:
    assert memory.BUDGET.held == 0
    settings.MEMORY_BUDGET_BYTES = 10 * MIB


def answered(view: Callable[[], HttpResponse]) -> HttpResponse:
    return memory.MemoryMiddleware(lambda _request: view())(None)  # type: ignore[arg-type]


def test_the_first_megabyte_is_free() -> None:
    def view() -> HttpResponse:
        memory.reserve(MIB)
        assert memory.BUDGET.held == 0
        memory.reserve(10)
        assert memory.BUDGET.held == 10
        return HttpResponse()

    answered(view)

    assert memory.BUDGET.held == 0


@pytest.mark.django_db
def test_request_over_the_budget_is_rejected() -> None:
    def other() -> HttpResponse:
        memory.reserve(2 * MIB)
        return HttpResponse(b"x" * (2 * MIB))

    def view() -> HttpResponse:
        memory.reserve(10 * MIB)
        with pytest.raises(memory.MemoryUnavailable) as caught:
            memory.reserve(MIB)
        assert caught.value.wait
        assert memory.BUDGET.held == 10 * MIB
        return HttpResponse()

    slow = answered(other)
    assert memory.BUDGET.held == MIB  # the answer is not sent yet
    answered(view)
    slow.close()

    assert memory.BUDGET.held == 0


def test_request_larger_than_the_budget_gets_its_own_error() -> None:
    def view() -> HttpResponse:
        with pytest.raises(memory.MemoryInsufficient):
            memory.reserve(12 * MIB)
        return HttpResponse()

    answered(view)


def test_an_error_gives_all_back() -> None:
    def view() -> HttpResponse:
        memory.reserve(5 * MIB)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        answered(view)

    assert memory.BUDGET.held == 0


def test_block_releases_its_memory() -> None:
    def view() -> HttpResponse:
        memory.reserve(2 * MIB)
        with memory.released_at_end():
            memory.reserve(3 * MIB)
        assert memory.BUDGET.held == MIB
        return HttpResponse()

    answered(view)


def test_memory_is_not_counted_outside_of_requests() -> None:
    memory.reserve(100 * MIB)
    memory.release_memory(1)

    assert memory.BUDGET.held == 0


@pytest.mark.parametrize(
    ("limit", "factor", "check_id"),
    [("STATE_MAX_BYTES", 5, "states.E002"), ("WORKLOADS_MAX_BYTES", 8, "workloads.E001")],
)
def test_budget_must_cover_the_largest_request(
    settings: Any, limit: str, factor: int, check_id: str
) -> None:
    """Restoring the largest document, or reading the largest report: else it is always refused."""
    settings.STATE_MAX_BYTES = settings.WORKLOADS_MAX_BYTES = MIB
    setattr(settings, limit, 10 * MIB)
    settings.MEMORY_BUDGET_BYTES = factor * 10 * MIB
    assert run_checks() == []

    settings.MEMORY_BUDGET_BYTES -= 1
    (error,) = run_checks()
    assert error.id == check_id
    assert f"{limit} allows requires {factor} times its size" in error.msg
