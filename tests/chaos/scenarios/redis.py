"""The Redis that counts requests is away, stands still, or is full."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import redis

from tests.chaos.databases import Postgres
from tests.chaos.programs import Program, running, wait_for_port
from tests.chaos.report import Outcome
from tests.chaos.scenario import course
from tests.chaos.service import serving
from tests.postgres import free_port


def redis_fails(directory: Path) -> list[Outcome]:
    """Requests go on; how long one waits is in the figures of the quiet part and of the faults."""
    database, port = Postgres(directory, "a"), free_port()
    words = ("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", directory)
    server = Program("redis-server", *words, log=directory / "redis.log")
    try:
        database.create()
        database.start()
        url = f"redis://127.0.0.1:{port}/0"
        with running(server), serving(directory, DATABASE_URL=database.url, CACHE_URL=url) as front:
            wait_for_port("127.0.0.1", port)
            with (
                course("Redis stands still, is full, is away, 7 s each", front) as this,
                contextlib.closing(redis.Redis.from_url(url)) as administrator,
            ):
                this.outcome.figures["whoami, all well"] = this.slowest_whoami(3)
                os.killpg(server.pid, signal.SIGSTOP)
                this.outcome.figures["standing still"] = this.slowest_whoami(7)
                os.killpg(server.pid, signal.SIGCONT)
                time.sleep(6)
                administrator.config_set("maxmemory", 1)
                this.outcome.figures["full"] = this.slowest_whoami(7)
                server.stop()
                this.outcome.figures["away"] = this.slowest_whoami(7)
                server.start()
                this.is_back()
                this.wait_for_pushes()
            if this.outcome.statuses[503] or this.outcome.statuses[429]:
                this.outcome.broken.append("a request was refused because of Redis")
    finally:
        database.stop()
    return [this.outcome]
