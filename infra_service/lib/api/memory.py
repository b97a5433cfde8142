"""Limit the memory that requests use in a worker process.

A request reserves memory from a budget before allocating it, and is rejected if the budget is
exhausted. Waiting would block a thread that small requests need. The memory returns to the budget
after the response has been sent. The first megabyte of each request does not count, so small
requests never use the budget.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error
from rest_framework.exceptions import APIException

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.http import HttpRequest, HttpResponse

#: Bytes of each request that the budget does not count.
FREE: Final = 1024 * 1024


class MemoryUnavailable(APIException):
    meaning = "Other requests are using the memory that this request requires."
    status_code = 503
    default_code = "MEMORY_UNAVAILABLE"
    default_detail = "Other requests are using the memory that this request requires. Try again."
    wait = 3


class MemoryInsufficient(APIException):
    meaning = "The request requires more memory than the whole budget, so retries do not help."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "MEMORY_INSUFFICIENT"
    default_detail = (
        "The request requires more memory than MEMORY_BUDGET_BYTES allows. Ask an operator to "
        "increase it."
    )


class _Budget:
    """The memory that all requests of this process have reserved."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.held = 0

    def change(self, number: int) -> None:
        """Reserve bytes, or release them if the number is negative.

        Raises:
            MemoryUnavailable: the budget is exhausted.
        """
        with self._lock:
            if number > 0 and self.held + number > settings.MEMORY_BUDGET_BYTES:
                raise MemoryUnavailable
            self.held += number


BUDGET: Final = _Budget()


class _Room(threading.local):
    """The memory that the request of this thread has reserved."""

    is_open: bool = False
    held: int = 0


_room: Final = _Room()


def reserve(number: int) -> None:
    """Reserve bytes for the current request. Do nothing outside requests.

    Raises:
        MemoryUnavailable: other requests have reserved the memory.
        MemoryInsufficient: the request exceeds the whole budget.
    """
    if _room.is_open:
        _set_reserved(_room.held + number)


def release_memory(number: int) -> None:
    """Release bytes that the request has reserved."""
    if _room.is_open and number > 0:
        _set_reserved(max(0, _room.held - number))


def demand(number: int) -> None:
    """Raise an error if the bytes exceed the free budget, but reserve nothing.

    Raises:
        MemoryUnavailable, MemoryInsufficient: see ``reserve``.
    """
    reserve(number)
    release_memory(number)


@contextlib.contextmanager
def released_at_end() -> Iterator[None]:
    """When the block ends, release the memory that it has reserved."""
    before = _room.held
    try:
        yield
    finally:
        release_memory(_room.held - before)


def _set_reserved(number: int) -> None:
    if number - FREE > settings.MEMORY_BUDGET_BYTES:
        raise MemoryInsufficient
    BUDGET.change(max(0, number - FREE) - max(0, _room.held - FREE))
    _room.held = number


def shortfall(limit: str, factor: int, *, check_id: str) -> list[CheckMessage]:
    """Return a check error if the budget is too small for the largest size that a setting allows.

    ``factor`` is the number of bytes of memory that each byte of this size requires.
    """
    needed = factor * getattr(settings, limit)
    if needed <= settings.MEMORY_BUDGET_BYTES:
        return []
    return [
        Error(
            f"MEMORY_BUDGET_BYTES is {settings.MEMORY_BUDGET_BYTES}, but the largest body that "
            f"{limit} allows requires {factor} times its size ({needed} bytes). The service would "
            "always reject it.",
            hint=f"Increase MEMORY_BUDGET_BYTES to at least {needed}, or reduce {limit}.",
            id=check_id,
        )
    ]


class MemoryMiddleware:
    """A middleware that releases the memory of requests and, once they are sent, of responses."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        _room.is_open, _room.held = True, 0
        try:
            response = self.get_response(request)
            size = 0 if response.streaming else len(response.content)
            release_memory(_room.held - size)
            if kept := max(0, _room.held - FREE):
                # Django calls these functions after the server has sent the response or has failed.
                response._resource_closers.append(lambda: BUDGET.change(-kept))  # type: ignore[attr-defined]
                _room.held = 0
        finally:
            release_memory(_room.held)
            _room.is_open = False
        return response
