"""A memory budget for the requests of a worker process.

A request reserves megabytes of the budget before it allocates them, and is rejected if the budget
is exhausted: waiting would block a thread that small requests need. The budget gets the memory back
after the response has been sent. The first megabyte of each request is free, so small requests
never use the budget.
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
    meaning = "Other requests use the memory that this request needs."
    status_code = 503
    default_code = "MEMORY_UNAVAILABLE"
    default_detail = "Other requests use the memory that this request needs. Try again."
    wait = 3


class MemoryInsufficient(APIException):
    meaning = "The request needs more memory than the whole budget, so retries do not help."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "MEMORY_INSUFFICIENT"
    default_detail = "The request needs more memory than MEMORY_BUDGET_BYTES allows."


class _Budget:
    """The memory that the requests of this process hold together."""

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
    """The memory that the request of this thread holds; other memory is not counted."""

    is_open: bool = False
    held: int = 0


_room: Final = _Room()


def reserve(number: int) -> None:
    """Reserve bytes for the current request. Commands are not counted.

    Raises:
        MemoryUnavailable: other requests hold the memory.
        MemoryInsufficient: the request exceeds the whole budget.
    """
    if _room.is_open:
        _set_reserved(_room.held + number)


def release_memory(number: int) -> None:
    """Return memory of the request to the budget."""
    if _room.is_open and number > 0:
        _set_reserved(max(0, _room.held - number))


def demand(number: int) -> None:
    """Raise if the bytes exceed the free budget, without reserving them: they may never arrive.

    Raises:
        MemoryUnavailable, MemoryInsufficient: as for ``reserve``.
    """
    reserve(number)
    release_memory(number)


@contextlib.contextmanager
def released_at_end() -> Iterator[None]:
    """Release the memory that the block has reserved, at its end."""
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
    """Report a budget that is too small for the largest size that a setting allows.

    ``factor`` is the memory in bytes that each byte of that size takes.
    """
    needed = factor * getattr(settings, limit)
    if needed <= settings.MEMORY_BUDGET_BYTES:
        return []
    return [
        Error(
            f"MEMORY_BUDGET_BYTES is {settings.MEMORY_BUDGET_BYTES}, and the largest that {limit} "
            f"allows takes {factor} times its size, {needed} bytes: it would always be rejected.",
            hint=f"Raise MEMORY_BUDGET_BYTES to {needed} at least, or lower {limit}.",
            id=check_id,
        )
    ]


class MemoryMiddleware:
    """Release the memory of a request, and that of its response once it has been sent."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        _room.is_open, _room.held = True, 0
        try:
            response = self.get_response(request)
            size = 0 if response.streaming else len(response.content)
            release_memory(_room.held - size)
            if kept := max(0, _room.held - FREE):
                # Django calls these after the server has sent the response or failed to.
                response._resource_closers.append(lambda: BUDGET.change(-kept))  # type: ignore[attr-defined]
                _room.held = 0
        finally:
            release_memory(_room.held)
            _room.is_open = False
        return response
