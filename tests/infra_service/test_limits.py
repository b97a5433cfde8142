"""Counting, in memory, in Redis, and when the counters are away."""

import contextlib
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from infra_service.lib.api import limits, redis_counters
from infra_service.lib.api.counters import Counters, MemoryCounters
from infra_service.lib.api.limits import Limit, Limiter, Usage
from infra_service.lib.api.redis_counters import RedisCounters
from tests.infra_service.redis_server import redis_server

X = Limit("token", "x", 1)


def test_counts_by_name_and_window() -> None:
    counters = MemoryCounters()

    assert [counters.hit(["a"], 1) for _ in range(3)] == [[1], [2], [3]]
    assert counters.hit(["b", "a"], 1) == [1, 4]
    assert counters.hit(["a"], 2) == [1]
    assert list(counters._counts) == ["a"]  # nothing of an older window is kept


def test_flood_of_names_neither_grows_memory_nor_resets_active_counters() -> None:
    counters = MemoryCounters()
    for number in range(MemoryCounters.NAMES * 2):
        if number % 10_000 == 0:
            assert counters.hit(["busy"], 1) == [number // 10_000 + 1]
        counters.hit([f"flood{number}"], 1)

    assert len(counters._counts) == MemoryCounters.NAMES
    assert counters.hit(["busy"], 1) > [1]


def test_threads_count_together() -> None:
    counters = MemoryCounters()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: [counters.hit(["x", "y"], 1) for _ in range(500)], range(8)))

    assert counters.hit(["x", "y"], 1) == [8 * 500 + 1] * 2


def test_redis_counts_all_names_in_a_single_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_counters, "_TIMEOUT", 10)  # whatever else this machine does
    with redis_server() as (url, commands):
        counters = RedisCounters(url)

        assert [counters.hit(["a", "b"], 1) for _ in range(2)] == [[1, 1], [2, 2]]
        assert counters.hit(["a"], 2) == [1]

    sent = [command for command in commands if command[0] not in {"CLIENT", "HELLO"}]
    a, b = "infra-service:limit:a:1", "infra-service:limit:b:1"
    assert sent[:6] == [
        ["MULTI"],
        ["SET", a, "0", "NX", "EX", "120"],
        ["INCRBY", a, "1"],
        ["SET", b, "0", "NX", "EX", "120"],
        ["INCRBY", b, "1"],
        ["EXEC"],
    ]


class Away:
    """Counters that cannot be reached."""

    def __init__(self, error: Exception) -> None:
        self.error, self.calls = error, 0

    def hit(self, _names: Sequence[str], _window: int) -> list[int]:
        self.calls += 1
        raise self.error


def test_without_counters_requests_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError("unreachable")
    away, logged, now = Away(error), [], [1000.0]
    monkeypatch.setattr(limits.log, "warning", lambda event, **more: logged.append((event, more)))
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    limiter = Limiter(away)

    assert [limiter.hit(X) for _ in range(3)] == [None, None, None]
    assert away.calls == 1  # and not again for a while
    assert logged == [("rate_limits_unavailable", {"error": repr(error), "uncounted_seconds": 5})]

    now[0] += 5
    limiter.hit(X)
    assert away.calls == 2


def test_concurrent_failures_are_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(limits.log, "warning", lambda event, **_more: logged.append(event))

    class AwayAndAnotherWasFirst(Away):
        def hit(self, names: Sequence[str], window: int) -> list[int]:
            limiter._paused_until = time.monotonic() + 5
            return super().hit(names, window)

    limiter = Limiter(AwayAndAnotherWasFirst(OSError("down")))

    assert limiter.hit(X) is None
    assert logged == []


def test_refused_redis_connection_raises_the_error_of_the_system() -> None:
    with pytest.raises(OSError, match=r"^ConnectionError: Error 111 "):
        RedisCounters("redis://127.0.0.1:1/0").hit(["x"], 1)


def test_a_redis_that_does_not_answer_is_not_waited_for_long() -> None:
    assert redis_counters._TIMEOUT <= 0.1
    with socket.create_server(("127.0.0.1", 0)) as silent:
        limiter = Limiter(RedisCounters(f"redis://127.0.0.1:{silent.getsockname()[1]}"))
        assert limiter.hit(X) is None


def test_a_redis_that_answers_byte_by_byte_is_not_waited_for() -> None:
    """Each byte is in time, and the answer never ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        enough = threading.Event()

        def drip() -> None:
            client, _ = server.accept()
            with client, contextlib.suppress(OSError):
                while not enough.wait(0.01):
                    client.sendall(b"+")

        thread = threading.Thread(target=drip)
        thread.start()
        limiter = Limiter(RedisCounters(f"redis://127.0.0.1:{server.getsockname()[1]}"))
        assert limiter.hit(X) is None
        enough.set()
        thread.join()


def test_a_name_that_is_not_found_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that is away takes its time; nothing bounds it."""
    enough = threading.Event()

    def look_up(*_: Any) -> Any:
        enough.wait()
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    limiter = Limiter(RedisCounters("redis://redis.example"))

    assert [limiter.hit(X) for _ in range(100)] == [None] * 100
    assert not enough.is_set()
    enough.set()


def test_over_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limiter = Limiter(MemoryCounters())
    monkeypatch.setattr(limits.time, "time", lambda: 120.0 + 15)
    two = Limit("token", "x", 2)

    assert [limiter.hit(two) for _ in range(3)] == [None, None, Usage(two, 3, 45)]
    assert limiter.hit(Limit("token", "x", 0)) is None

    monkeypatch.setattr(limits.time, "time", lambda: 180.0)
    assert limiter.hit(two) is None


def test_all_limits_are_counted_and_the_first_exceeded_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limiter = Limiter(MemoryCounters())
    monkeypatch.setattr(limits.time, "time", lambda: 120.0)  # within the same window
    token, other = Limit("token", "a", 2), Limit("token", "b", 2)
    owner = Limit("owner", "a", 3)

    assert [limiter.hit(token, owner) for _ in range(2)] == [None, None]
    assert limiter.hit(other, owner) is None
    exceeded = limiter.hit(other, owner)
    assert exceeded is not None
    assert exceeded.limit == owner


def test_concurrent_first_calls_share_a_limiter(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Limiter] = []

    class SlowlyMade(Limiter):
        def __init__(self, counters: Counters) -> None:
            time.sleep(0.05)
            super().__init__(counters)
            made.append(self)

    monkeypatch.setattr(limits, "Limiter", SlowlyMade)
    limits._limiter.cache_clear()
    try:
        with ThreadPoolExecutor(8) as threads:
            shared = set(threads.map(lambda _: limits.limiter(), range(8)))
    finally:
        limits._limiter.cache_clear()

    assert shared == set(made)
    assert len(made) == 1


def test_cache_url_selects_the_counters(settings: Any) -> None:
    say = limits._limiter.__wrapped__
    settings.CACHE_URL = ""
    assert isinstance(say()._counters, MemoryCounters)

    settings.CACHE_URL = "redis://127.0.0.1:1/0"
    assert isinstance(say()._counters, RedisCounters)
