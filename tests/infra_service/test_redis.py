"""A real Redis that is slow, full, or away: requests go on, and none waits for it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from infra_service import limits
from infra_service.limits import Limit, Limiter, RedisCounters
from tests.postgres import free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="redis-server is not installed"
)
ONE = Limit("token", "x", 1)


class Redis:
    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        words = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", directory)
        self.process = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)
        self.administrator = redis.Redis.from_url(self.url)

    def answers(self) -> bool:
        with contextlib.suppress(redis.ConnectionError):
            return bool(self.administrator.ping())
        return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path)
    wait_until(server.answers)
    yield server
    server.process.send_signal(signal.SIGCONT)
    server.process.terminate()
    server.process.wait()
    server.administrator.close()


@pytest.fixture
def limiter(server: Redis, monkeypatch: pytest.MonkeyPatch) -> Limiter:
    """One that counts, whatever else this machine does."""
    monkeypatch.setattr(limits, "_PATIENCE", 10)
    limiter = Limiter(lambda: RedisCounters(server.url))
    window = limits.WINDOW
    if time.time() % window > window - 5:  # both hits are to be in one window
        time.sleep(window - time.time() % window)
    assert limiter.hit(ONE) is None
    assert limiter.hit(ONE) is not None
    return limiter


def test_patience() -> None:
    """Connecting and one answer, in which all counts are."""
    assert 2 * limits._PATIENCE <= 0.1


def test_one_that_stands_still(server: Redis) -> None:
    """The kernel goes on to take connections for it."""
    server.process.send_signal(signal.SIGSTOP)
    limiter = Limiter(lambda: RedisCounters(server.url))
    started = time.monotonic()

    assert [limiter.hit(ONE) for _ in range(1000)] == [None] * 1000

    assert time.monotonic() - started < 5  # one of them waited, and not for minutes


def test_one_that_is_full(server: Redis, limiter: Limiter) -> None:
    server.administrator.config_set("maxmemory-policy", "noeviction")
    server.administrator.config_set("maxmemory", 1)

    assert limiter.hit(ONE, Limit("owner", "y", 1)) is None
    assert limiter._paused_until > time.monotonic()


def test_one_that_ends(server: Redis, limiter: Limiter) -> None:
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
