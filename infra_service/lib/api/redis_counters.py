"""Counts of requests in Redis; imported only where ``CACHE_URL`` is set."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from infra_service.lib.api.counters import WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

# Redis answers in well under a millisecond, or is as good as down: no request waits longer than a
# tenth of a second for its being counted.
_PATIENCE: Final = 0.1


class RedisCounters:
    """Counts of all worker processes, on one machine or several.

    Threads of their own talk to Redis. The time-outs of a socket are for each of its calls, of
    which connecting alone takes several, and looking up a name has none.
    """

    _THREADS: Final = 32

    def __init__(self, url: str) -> None:
        self._threads = ThreadPoolExecutor(self._THREADS, thread_name_prefix="limits")
        self._redis = redis.Redis.from_url(
            url,
            protocol=2,
            socket_timeout=_PATIENCE,
            socket_connect_timeout=_PATIENCE,
            retry=Retry(NoBackoff(), 0),
            driver_info=None,  # to tell our name would cost each connection two more answers
        )

    def hit(self, names: Sequence[str], window: int) -> list[int]:
        """Count one more of each, in one round trip for all of them.

        Raises:
            OSError: Redis cannot be reached, refuses, or takes too long.
        """
        counting = self._threads.submit(self._hit, names, window)
        try:
            return counting.result(_PATIENCE)
        except redis.RedisError as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        finally:
            counting.cancel()  # if it has not begun

    def _hit(self, names: Sequence[str], window: int) -> list[int]:
        with self._redis.pipeline() as pipeline:
            for name in names:
                key = f"infra-service:limit:{name}:{window}"
                pipeline.set(key, 0, ex=2 * WINDOW, nx=True)
                pipeline.incr(key)
            return [int(count) for count in pipeline.execute()[1::2]]
