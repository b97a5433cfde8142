"""Count requests in Redis. This module is imported only if ``CACHE_URL`` is set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from infra_service.lib.api.counters import WINDOW
from infra_service.lib.threads import ThreadPool

if TYPE_CHECKING:
    from collections.abc import Sequence

# Counting delays a request by at most a tenth of a second. A healthy Redis responds in well under a
# millisecond.
_TIMEOUT: Final = 0.1


class RedisCounters:
    """Counters that all worker processes share, on one or several machines.

    A thread pool limits the total time, because a socket timeout applies to each call, connecting
    requires several calls, and a DNS lookup has no timeout.
    """

    _THREADS: Final = 32

    def __init__(self, url: str) -> None:
        self._threads = ThreadPool(self._THREADS, thread_name_prefix="limits")
        self._redis = redis.Redis.from_url(
            url,
            protocol=2,
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
            retry=Retry(NoBackoff(), 0),
            driver_info=None,  # sending a client name would cost two more responses per connection
        )

    def hit(self, names: Sequence[str], window: int) -> list[int]:
        """Increment each counter in a single round trip, and return the new counts.

        Raises:
            OSError: Redis is unreachable, returns an error, or exceeds the timeout.
        """
        counting = self._threads.submit(self._hit, names, window)
        try:
            return counting.result(_TIMEOUT)
        except redis.RedisError as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        finally:
            counting.cancel()  # if it has not started

    def _hit(self, names: Sequence[str], window: int) -> list[int]:
        with self._redis.pipeline() as pipeline:
            for name in names:
                key = f"infra-service:limit:{name}:{window}"
                pipeline.set(key, 0, ex=2 * WINDOW, nx=True)
                pipeline.incr(key)
            return [int(count) for count in pipeline.execute()[1::2]]
