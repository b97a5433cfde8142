"""A budget of memory: what the requests of a worker process hold at one time is bounded.

Whoever is about to hold megabytes takes them from the budget first, and is refused when there are
not so many left: waiting would hold a thread, and threads are what small requests need. What a
request has taken is given back when its answer has been sent. The first megabyte of each is free,
so that no small request ever asks.
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

#: Bytes of each request that are not counted.
FREE: Final = 1024 * 1024


class MemoryUnavailable(APIException):
    meaning = "Other requests hold the memory that this one needs."
    status_code = 503
    default_code = "MEMORY_UNAVAILABLE"
    default_detail = "Other requests hold the memory that this one needs; try again."
    wait = 3


class MemoryInsufficient(APIException):
    meaning = "The request takes more memory than all may hold together, so it cannot heal."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "MEMORY_INSUFFICIENT"
    default_detail = "This would take more memory than MEMORY_BUDGET_BYTES allows."


class _Budget:
    """What the requests of this process hold together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.held = 0

    def change(self, number: int) -> None:
        """Take bytes, or give them back when the number is negative.

        Raises:
            MemoryUnavailable: there are not so many left.
        """
        with self._lock:
            if number > 0 and self.held + number > settings.MEMORY_BUDGET_BYTES:
                raise MemoryUnavailable
            self.held += number


BUDGET: Final = _Budget()


class _Room(threading.local):
    """What the request that this thread answers holds; nothing is counted outside of requests."""

    is_open: bool = False
    held: int = 0


_room: Final = _Room()


def take(number: int) -> None:
    """Take so many bytes more for the request; a command's are not counted.

    Raises:
        MemoryUnavailable: other requests hold them.
        MemoryInsufficient: they will never be there.
    """
    if _room.is_open:
        _hold(_room.held + number)


def give_back(number: int) -> None:
    """Give back what the request has taken and holds no longer."""
    if _room.is_open and number > 0:
        _hold(max(0, _room.held - number))


def demand(number: int) -> None:
    """Refuse what would not fit now, and take nothing: a client may announce and never send.

    Raises:
        MemoryUnavailable, MemoryInsufficient: as for ``take``.
    """
    take(number)
    give_back(number)


@contextlib.contextmanager
def taken_back() -> Iterator[None]:
    """Give back at the end of the block all that it has taken."""
    before = _room.held
    try:
        yield
    finally:
        give_back(_room.held - before)


def _hold(number: int) -> None:
    if number - FREE > settings.MEMORY_BUDGET_BYTES:
        raise MemoryInsufficient
    BUDGET.change(max(0, number - FREE) - max(0, _room.held - FREE))
    _room.held = number


def shortfall(limit: str, factor: int, *, check_id: str) -> list[CheckMessage]:
    """Report a budget in which the largest that a setting allows never finds room.

    ``factor`` is what it takes for each of its bytes.
    """
    needed = factor * getattr(settings, limit)
    if needed <= settings.MEMORY_BUDGET_BYTES:
        return []
    return [
        Error(
            f"MEMORY_BUDGET_BYTES is {settings.MEMORY_BUDGET_BYTES}, and the largest that {limit} "
            f"allows takes {factor} times its size, {needed} bytes: it would always be refused.",
            hint=f"Raise MEMORY_BUDGET_BYTES to {needed} at least, or lower {limit}.",
            id=check_id,
        )
    ]


class MemoryMiddleware:
    """Gives back what a request has taken, all but its answer, and that once it has been sent."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        _room.is_open, _room.held = True, 0
        try:
            response = self.get_response(request)
            size = 0 if response.streaming else len(response.content)
            give_back(_room.held - size)
            if kept := max(0, _room.held - FREE):
                # Django calls these when the server has sent the answer, or could not.
                response._resource_closers.append(lambda: BUDGET.change(-kept))  # type: ignore[attr-defined]
                _room.held = 0
        finally:
            give_back(_room.held)
            _room.is_open = False
        return response
