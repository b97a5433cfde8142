"""Counting requests, over all worker processes: in Redis, or in memory that they share.

A counter counts within one window of a minute. Reading and raising it is one atomic step. When the
counters cannot be reached, requests go on uncounted, and one log line a few seconds says so.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import mmap
import os
import struct
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import redis
import structlog
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = structlog.get_logger("infra_service.limits")

WINDOW: Final = 60
# How long requests go uncounted after the counters could not be reached.
_PAUSE: Final = 5
# Redis answers in well under a millisecond, or is as good as down. Once to connect and once for the
# answer: no request waits longer than a tenth of a second for its being counted.
_PATIENCE: Final = 0.05


class Counters(Protocol):
    """Where the counts are."""

    def hit(self, names: Sequence[str], window: int) -> list[int]:
        """Count one more of each in this window, and return how many each has now."""


class RedisCounters:
    """Counts of several machines."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(
            url,
            protocol=2,
            socket_timeout=_PATIENCE,
            socket_connect_timeout=_PATIENCE,
            retry=Retry(NoBackoff(), 0),
            driver_info=None,  # to tell our name would cost each connection two more answers
        )

    def hit(self, names: Sequence[str], window: int) -> list[int]:
        """Count one more of each, in one round trip for all of them."""
        with self._redis.pipeline() as pipeline:
            for name in names:
                key = f"infra-service:limit:{name}:{window}"
                pipeline.set(key, 0, ex=2 * WINDOW, nx=True)
                pipeline.incr(key)
            return [int(count) for count in pipeline.execute()[1::2]]


class FileCounters:
    """Counts of one machine: a file of fixed size that its processes map into their memory.

    A name has its place among the few slots of its set, found by its hash. When all of them are
    taken the smallest count of them gives way, so a flood of names can only make others count less.
    """

    _SLOT: Final = struct.Struct("<QII")  # the name's hash, its window, its count
    _WAYS: Final = 4
    _SETS: Final = 1 << 14
    SIZE: Final = _SLOT.size * _WAYS * _SETS

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.ftruncate(descriptor, self.SIZE)  # the same size each time, and never shorter
        # Never closed: that would end this process's locks on the file.
        self._file = descriptor
        self._memory = mmap.mmap(descriptor, self.SIZE)
        self._thread = threading.Lock()

    def hit(self, names: Sequence[str], window: int) -> list[int]:
        """Count one more of each; a few microseconds each."""
        return [self._hit(name, window) for name in names]

    def _hit(self, name: str, window: int) -> int:
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        own = int.from_bytes(digest, "little") or 1
        start = own % self._SETS * self._WAYS * self._SLOT.size
        places = range(start, start + self._WAYS * self._SLOT.size, self._SLOT.size)
        with self._thread:
            # Between processes, and of this file only; the system ends it with its process.
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                return self._raise(places, own, window)
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _raise(self, places: range, own: int, window: int) -> int:
        slots = [(place, *self._SLOT.unpack_from(self._memory, place)) for place in places]
        for place, name, in_window, count in slots:
            if name == own and in_window == window:
                self._SLOT.pack_into(self._memory, place, own, window, count + 1)
                return int(count) + 1
        stale_first = min(slots, key=lambda slot: (slot[2] == window and slot[1] != own, slot[3]))
        self._SLOT.pack_into(self._memory, stale_first[0], own, window, 1)
        return 1


class Limit(NamedTuple):
    """What is counted together, and how many a minute there may be; 0 is no limit."""

    kind: str  # whose requests they are: "token", "key", "owner", "address", "login"
    name: str
    most: int


class Exceeded(NamedTuple):
    """The limit that a request is over, and the seconds until the next window."""

    limit: Limit
    wait: float


class Limiter:
    """Says who has had enough, and goes on without counting when the counters are away."""

    def __init__(self, connect: Callable[[], Counters]) -> None:
        self._connect = connect
        self._counters: Counters | None = None
        self._paused_until = 0.0

    def hit(self, *limits: Limit) -> Exceeded | None:
        """Count one more for each; return the first limit that is exceeded, if one is."""
        limits = tuple(limit for limit in limits if limit.most)
        if not limits or time.monotonic() < self._paused_until:
            return None
        now = time.time()
        window = int(now // WINDOW)
        try:
            if self._counters is None:
                self._counters = self._connect()
            counts = self._counters.hit([f"{kind}:{name}" for kind, name, _ in limits], window)
        except (redis.RedisError, OSError) as error:
            if time.monotonic() < self._paused_until:  # another thread has said so
                return None
            self._paused_until = time.monotonic() + _PAUSE
            log.warning("rate_limits_unavailable", error=repr(error), uncounted_seconds=_PAUSE)
            return None
        for limit, count in zip(limits, counts, strict=True):
            if count > limit.most:
                return Exceeded(limit, (window + 1) * WINDOW - now)
        return None


def _connect() -> Counters:
    if settings.CACHE_URL:
        return RedisCounters(settings.CACHE_URL)
    return FileCounters(Path(settings.RATE_LIMIT_FILE))


@functools.cache
def limiter() -> Limiter:
    """Return the limiter of this process."""
    return Limiter(_connect)
