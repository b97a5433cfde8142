"""A real redis-server on a free port."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support.postgres import free_port
from tests.support.waiting import wait_until

needs_redis = pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="redis-server is not installed"
)


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


@contextlib.contextmanager
def real_redis(directory: Path) -> Iterator[Redis]:
    """Run a Redis server for the duration of the block."""
    server = Redis(directory)
    try:
        wait_until(server.answers)
        yield server
    finally:
        server.process.send_signal(signal.SIGCONT)
        server.process.terminate()
        server.process.wait()
        server.administrator.close()
