"""Counting, over processes, in Redis, and when the counters are away."""

import multiprocessing
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from infra_service import limits
from infra_service.limits import Exceeded, FileCounters, Limit, Limiter, RedisCounters
from tests.infra_service.redis_server import redis_server

X = Limit("token", "x", 1)


def test_counts_by_name_and_window(tmp_path: Path) -> None:
    counters = FileCounters(tmp_path / "counts")

    assert [counters.hit(["a"], 1) for _ in range(3)] == [[1], [2], [3]]
    assert counters.hit(["b", "a"], 1) == [1, 4]
    assert counters.hit(["a"], 2) == [1]
    assert (tmp_path / "counts").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "counts").stat().st_size == FileCounters.SIZE


def test_an_old_window_gives_way_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileCounters, "_SETS", 1)
    counters = FileCounters(tmp_path / "counts")
    for name in "abc":
        for _ in range(5):
            counters.hit([name], 2)
    for _ in range(9):
        counters.hit(["old"], 1)

    assert counters.hit(["d"], 2) == [1]
    assert counters.hit("abcd", 2) == [6, 6, 6, 2]
    # Now all are of this window, and the smallest count gives way.
    assert counters.hit(["e"], 2) == [1]
    assert counters.hit(["a"], 2) == [7]


def _count(path: str, times: int) -> None:
    counters = FileCounters(Path(path))
    threads = [
        threading.Thread(target=lambda: [counters.hit(["x"], 1) for _ in range(times)])
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_processes_and_threads_count_together(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_count, args=(str(path), 500)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert FileCounters(path).hit(["x"], 1) == [3 * 3 * 500 + 1]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="link"):
        FileCounters(tmp_path / "link")


def test_redis_counts_all_in_one_round_trip() -> None:
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
        self.error, self.asked = error, 0

    def hit(self, _names: Sequence[str], _window: int) -> list[int]:
        self.asked += 1
        raise self.error


@pytest.mark.parametrize("error", [redis.ConnectionError("down"), OSError("full")])
def test_without_counters_requests_go_on(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    away, logged, now = Away(error), [], [1000.0]
    monkeypatch.setattr(limits.log, "warning", lambda event, **more: logged.append((event, more)))
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    limiter = Limiter(lambda: away)

    assert [limiter.hit(X) for _ in range(3)] == [None, None, None]
    assert away.asked == 1  # and not again for a while
    assert logged == [("rate_limits_unavailable", {"error": repr(error), "uncounted_seconds": 5})]

    now[0] += 5
    limiter.hit(X)
    assert away.asked == 2


def test_threads_that_fail_together_say_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(limits.log, "warning", lambda event, **_more: logged.append(event))
    limiter = Limiter(lambda: Away(OSError("down")))

    def away_and_another_was_first() -> Any:
        limiter._paused_until = time.monotonic() + 5
        raise OSError("down")

    limiter._connect = away_and_another_was_first

    assert limiter.hit(X) is None
    assert logged == []


def test_a_redis_that_does_not_answer_is_not_waited_for_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        limiter = Limiter(lambda: RedisCounters(f"redis://127.0.0.1:{silent.getsockname()[1]}"))
        assert limiter.hit(X) is None


def test_over_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limiter = Limiter(lambda: FileCounters(tmp_path / "counts"))
    monkeypatch.setattr(limits.time, "time", lambda: 120.0 + 15)
    two = Limit("token", "x", 2)

    assert [limiter.hit(two) for _ in range(3)] == [None, None, Exceeded(two, 45)]
    assert limiter.hit(Limit("token", "x", 0)) is None

    monkeypatch.setattr(limits.time, "time", lambda: 180.0)
    assert limiter.hit(two) is None


def test_each_limit_is_counted_and_the_first_exceeded_is_told(tmp_path: Path) -> None:
    limiter = Limiter(lambda: FileCounters(tmp_path / "counts"))
    token, other = Limit("token", "a", 2), Limit("token", "b", 2)
    owner = Limit("owner", "a", 3)

    assert [limiter.hit(token, owner) for _ in range(2)] == [None, None]
    assert limiter.hit(other, owner) is None
    exceeded = limiter.hit(other, owner)
    assert exceeded is not None
    assert exceeded.limit == owner


def test_the_settings_say_where(tmp_path: Path, settings: Any) -> None:
    settings.RATE_LIMIT_FILE = str(tmp_path / "counts")
    assert isinstance(limits._connect(), FileCounters)

    settings.CACHE_URL = "redis://127.0.0.1:1/0"
    assert isinstance(limits._connect(), RedisCounters)
