"""A real Redis server that is slow, full, or down: requests continue without waiting for it."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra_service.lib.api import limits, redis_counters
from infra_service.lib.api.limits import Limit, Limiter
from infra_service.lib.api.redis_counters import RedisCounters
from tests.infra_service.real_redis import Redis, needs_redis, real_redis

pytestmark = needs_redis
ONE = Limit("token", "x", 1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redis]:
    with real_redis(tmp_path) as server:
        yield server


@pytest.fixture
def limiter(server: Redis, monkeypatch: pytest.MonkeyPatch) -> Limiter:
    """A limiter that counts reliably on a busy machine."""
    monkeypatch.setattr(redis_counters, "_TIMEOUT", 10)
    limiter = Limiter(RedisCounters(server.url))
    moment = time.time()
    monkeypatch.setattr(limits.time, "time", lambda: moment)  # within the same window
    assert limiter.hit(ONE) is None
    assert limiter.hit(ONE) is not None
    return limiter


def test_hung_redis_does_not_delay_requests(server: Redis) -> None:
    """The kernel continues to accept connections for it."""
    server.process.send_signal(signal.SIGSTOP)
    limiter = Limiter(RedisCounters(server.url))
    started = time.monotonic()

    assert [limiter.hit(ONE) for _ in range(1000)] == [None] * 1000

    assert time.monotonic() - started < 50  # a single request waited; all would take 100 s


def test_full_redis_pauses_the_limiter(server: Redis, limiter: Limiter) -> None:
    server.administrator.config_set("maxmemory-policy", "noeviction")
    server.administrator.config_set("maxmemory", 1)

    assert limiter.hit(ONE, Limit("owner", "y", 1)) is None
    assert limiter._paused_until > time.monotonic()


def test_stopped_redis_pauses_the_limiter(server: Redis, limiter: Limiter) -> None:
    server.process.terminate()
    server.process.wait()

    assert limiter.hit(ONE) is None
    assert limiter._paused_until > time.monotonic()


def test_it_is_counted_again_when_it_is_back(
    server: Redis, limiter: Limiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.administrator.config_set("maxmemory", 1)
    assert limiter.hit(ONE) is None
    server.administrator.config_set("maxmemory", 0)
    limiter._paused_until = time.monotonic()  # those seconds are over

    assert [limiter.hit(ONE), limiter.hit(ONE)][1] is not None
