"""Rate limits, with counters in Redis (shared by all workers) or in the memory of each worker.

Each counter covers a window of one minute, and is incremented and read atomically. If the counters
are unreachable, the service does not limit requests, and logs a warning every few seconds.
"""

from __future__ import annotations

import functools
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from django.conf import settings

from infra_service.lib.api.counters import WINDOW, MemoryCounters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from infra_service.lib.api.counters import Counters

log = structlog.get_logger("infra_service.limits")

# The pause of counting after a failure of the counters, in seconds.
_PAUSE: Final = 5


class Limit(NamedTuple):
    """A rate limit: the maximum number of requests per minute. 0 disables the limit."""

    kind: str  # "token", "key", "owner", "address", …
    name: str
    most: int


class Usage(NamedTuple):
    """The requests counted for a limit in this window, and the seconds until the next window."""

    limit: Limit
    requests: int
    wait: float

    @property
    def remaining(self) -> int:
        """Requests that the limit still allows in this window."""
        return max(0, self.limit.most - self.requests)


class Limiter:
    """A limiter of request rates. It allows all requests while the counters are unreachable."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._paused_until = 0.0
        self._pausing = threading.Lock()

    def hit(self, *limits: Limit) -> Usage | None:
        """Increment the counter of each limit, and return the first exceeded limit or None."""
        return first_exceeded(self.count(*limits))

    def count(self, *limits: Limit) -> list[Usage]:
        """Increment the counters of enabled limits, and return their usage; [] if unreachable."""
        limits = tuple(limit for limit in limits if limit.most)
        if not limits or time.monotonic() < self._paused_until:
            return []
        now = time.time()
        window = int(now // WINDOW)
        try:
            counts = self._counters.hit([f"{kind}:{name}" for kind, name, _ in limits], window)
        except OSError as error:
            with self._pausing:
                if time.monotonic() < self._paused_until:  # another thread has logged it
                    return []
                self._paused_until = time.monotonic() + _PAUSE
            log.warning("rate_limits_unavailable", error=repr(error), uncounted_seconds=_PAUSE)
            return []
        wait = (window + 1) * WINDOW - now
        return [Usage(limit, count, wait) for limit, count in zip(limits, counts, strict=True)]


def first_exceeded(usages: Iterable[Usage]) -> Usage | None:
    """Return the usage of the first exceeded limit, or None."""
    return next((usage for usage in usages if usage.requests > usage.limit.most), None)


_making = threading.Lock()


def limiter() -> Limiter:
    """Return the limiter of this process."""
    with _making:  # otherwise, concurrent first requests could create several limiters
        return _limiter()


@functools.cache
def _limiter() -> Limiter:
    if settings.CACHE_URL:
        # redis is slow to import, and most commands and small services do not use it.
        from infra_service.lib.api.redis_counters import RedisCounters  # noqa: PLC0415

        return Limiter(RedisCounters(settings.CACHE_URL))
    return Limiter(MemoryCounters())
