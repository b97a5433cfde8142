"""A scenario in which Redis, which counts requests, is unavailable, slow or full."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import redis

from infra_service.lib.api.limits import Limit, Limiter
from infra_service.lib.api.redis_counters import RedisCounters
from tools.chaos import network
from tools.chaos.databases import Postgres
from tools.chaos.network import ADDRESSES
from tools.chaos.programs import Program, running, wait_for_port
from tools.chaos.report import Outcome
from tools.chaos.scenario import Course, course
from tools.chaos.service import serving

_HOST, _LINE, _REDIS = "c", 6379, 6380
_SECONDS = 7
#: The maximum wait of a request for its counters, and a tolerance for a busy machine, in seconds.
_MOST, _LATE = 0.1, 0.05


class Parts:
    """Redis on a separate host, behind a proxy with an adjustable delay."""

    def __init__(self, directory: Path) -> None:
        address = ADDRESSES[_HOST]
        words = ("--bind", address, "--port", str(_REDIS), "--save", "", "--dir", directory)
        open_to_all = ("--protected-mode", "no")
        self.redis = Program(
            "redis-server", *words, *open_to_all, log=directory / "redis.log", host=_HOST
        )
        line = ("-m", "tools.chaos.slow_line", address, str(_LINE), str(_REDIS))
        self.line = Program(sys.executable, *line, log=directory / "line.log", host=_HOST)
        self.url = f"redis://{address}:{_LINE}/0"
        self.administrator = redis.Redis(address, _REDIS)

    def start(self) -> None:
        """Restart Redis."""
        self.redis.start()
        wait_for_port(ADDRESSES[_HOST], _REDIS)

    @contextlib.contextmanager
    def up(self) -> Iterator[None]:
        """Run Redis and the proxy during the block."""
        with running(self.redis, self.line), contextlib.closing(self.administrator):
            for port in (_LINE, _REDIS):
                wait_for_port(ADDRESSES[_HOST], port)
            yield


def redis_fails(directory: Path) -> list[Outcome]:
    """Check that requests continue, and wait at most 0.1 s for their counters."""
    database, parts = Postgres(directory, "a"), Parts(directory)
    outcomes = []
    try:
        database.create()
        database.start()
        settings = {"DATABASE_URL": database.url, "CACHE_URL": parts.url}
        with parts.up(), serving(directory, **settings) as front:
            for name, (begin, end) in _FAULTS.items():
                with course(f"Redis {name} for {_SECONDS} s", front) as this:
                    begin(parts)
                    _measure(this, parts.url)
                    end(parts)
                    this.is_back()
                    this.wait_for_pushes()
                if this.outcome.statuses[503] or this.outcome.statuses[429]:
                    this.outcome.broken.append("a request was rejected because of Redis")
                outcomes.append(this.outcome)
    finally:
        network.mend(_HOST)
        database.stop()
    return outcomes


def _measure(this: Course, url: str) -> None:
    """Measure requests and waits for Redis, and compare the waits with those for a sleep."""
    limiter, slowest = Limiter(RedisCounters(url)), {"hit": 0.0, "sleep": 0.0}
    acts: dict[str, Callable[[], object]] = {
        "hit": lambda: limiter.hit(Limit("token", "chaos", 1 << 30)),
        "sleep": lambda: time.sleep(_MOST),
    }
    end = threading.Event()

    def repeat(name: str) -> None:
        while not end.wait(0.01):
            started = time.monotonic()
            acts[name]()
            slowest[name] = max(slowest[name], time.monotonic() - started)

    threads = [threading.Thread(target=repeat, args=(name,)) for name in acts]
    for thread in threads:
        thread.start()
    this.outcome.figures["slowest whoami"] = this.slowest_whoami(_SECONDS)
    end.set()
    for thread in threads:
        thread.join()
    hit, sleep = slowest["hit"], slowest["sleep"]
    this.outcome.figures["longest wait for Redis"] = f"{hit * 1000:.0f} ms"
    this.outcome.figures["longest sleep of 100 ms during the fault"] = f"{sleep * 1000:.0f} ms"
    if hit > sleep + _LATE:
        this.outcome.broken.append(f"a request waited {hit * 1000:.0f} ms for Redis")


_FAULTS: dict[str, tuple[Callable[[Parts], object], Callable[[Parts], object]]] = {
    "responds": (lambda _: None, lambda _: None),
    "is stopped": (
        lambda parts: os.killpg(parts.redis.pid, signal.SIGSTOP),
        lambda parts: os.killpg(parts.redis.pid, signal.SIGCONT),
    ),
    "is isolated": (lambda _: network.cut(_HOST), lambda _: network.mend(_HOST)),
    "responds after 2 s": (
        lambda parts: os.killpg(parts.line.pid, signal.SIGUSR1),
        lambda parts: os.killpg(parts.line.pid, signal.SIGUSR2),
    ),
    "is full (noeviction)": (
        lambda parts: parts.administrator.config_set("maxmemory", 1),
        lambda parts: parts.administrator.config_set("maxmemory", 0),
    ),
    "is down": (lambda parts: parts.redis.stop(), lambda parts: parts.start()),
}
