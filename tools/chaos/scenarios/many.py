"""A scenario with many simultaneous clients: idle connections, active clients and slow uploads."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import socket
import threading
import time
from collections import Counter
from pathlib import Path

from tests.e2e.backend import Backend, document
from tools.chaos.databases import Postgres
from tools.chaos.report import Outcome
from tools.chaos.service import Front, serving

_IDLE, _ACTIVE, _SLOW = 1000, 50, 200
_SECONDS = 30
#: The limit for the 99th percentile of small requests, in seconds.
_MOST = 0.1
#: The total requests per second of the active clients. Each client pauses for a second on average.
#: Without pauses, the clients would only queue for the processor.
_RATE = float(os.environ.get("CHAOS_RATE", "50"))


def many_clients(directory: Path) -> list[Outcome]:
    """Measure active clients while many connections are idle or upload slowly."""
    database = Postgres(directory, "a")
    try:
        database.create()
        database.start()
        with serving(directory, DATABASE_URL=database.url, RATE_LIMIT_TOKEN="0") as front:
            return [_measure(front)]
    finally:
        database.stop()


def _measure(front: Front) -> Outcome:
    outcome = Outcome(f"{_IDLE} idle connections, {_SLOW} slow uploads, {_ACTIVE} active clients")
    token = front.token("state:read", "state:write")
    backend = Backend(front, token)
    assert backend.push(document()).status == 200
    quiet = _latencies(front, backend, 1, 5, Counter())
    with contextlib.ExitStack() as stack:
        for _ in range(_IDLE):
            stack.enter_context(socket.create_connection(("127.0.0.1", front.port)))
        end = threading.Event()
        uploads = threading.Thread(target=_upload_slowly, args=(front, backend, end))
        uploads.start()
        stack.callback(uploads.join)
        stack.callback(end.set)
        time.sleep(2)
        logged = [one.log.stat().st_size for one in front.instances]
        busy = _latencies(front, backend, _ACTIVE, _SECONDS, outcome.statuses)
    outcome.figures = {
        "one client": _percentiles(quiet),
        "all clients": _percentiles(busy),
        "all clients, within the service": _percentiles(_logged(front, logged)),
        "requests per second": f"{len(busy) / _SECONDS:.0f}",
        "load": ", ".join(f"{value:.1f}" for value in os.getloadavg()),
    }
    # On a busy machine, the figure depends on the scheduling of the processors.
    if os.getloadavg()[0] < (os.cpu_count() or 1) and _high(busy) > _MOST:
        outcome.broken.append(f"1 % of small requests took more than {_MOST * 1000:.0f} ms")
    if bad := {status for status in outcome.statuses if status != 200}:
        outcome.broken.append(f"small requests received {bad}")
    return outcome


def _latencies(
    front: Front, backend: Backend, clients: int, seconds: float, statuses: Counter[int]
) -> list[float]:
    """Return the durations of small requests over persistent connections, in seconds."""
    taken: list[float] = []
    deadline, think = time.monotonic() + seconds, clients / _RATE

    def send() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
        time.sleep(random.uniform(0, think))  # avoids synchronous bursts
        with contextlib.closing(connection):
            while time.monotonic() < deadline:
                started = time.monotonic()
                headers = {"Authorization": f"Bearer {backend.token}"}
                connection.request("GET", "/api/v1/states?page_size=1", headers=headers)
                answer = connection.getresponse()
                answer.read()
                taken.append(time.monotonic() - started)
                statuses[answer.status] += 1
                time.sleep(random.uniform(0, 2 * think))

    threads = [threading.Thread(target=send) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def _upload_slowly(front: Front, backend: Backend, end: threading.Event) -> None:
    """Begin 200 pushes, and send a few bytes per second for each push."""
    head = (
        f"POST {backend.path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {backend.token}"
        "\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
    ).encode()
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(_SLOW):
            client = socket.create_connection(("127.0.0.1", front.port))
            clients.append(stack.enter_context(client))
            client.sendall(head)
        while not end.wait(1):
            for client in clients:
                with contextlib.suppress(OSError):
                    client.sendall(b" " * 20)


def _logged(front: Front, since: list[int]) -> list[float]:
    """Return the durations in the service's log, which start when a thread handles the request."""
    return [
        json.loads(line)["duration_ms"] / 1000
        for instance, start in zip(front.instances, since, strict=True)
        for line in instance.log.read_bytes()[start:].splitlines()
        if b'"view":"state-list"' in line
    ]


def _percentiles(taken: list[float]) -> str:
    median = sorted(taken)[len(taken) // 2]
    return f"p50 {median * 1000:.0f} ms, p99 {_high(taken) * 1000:.0f} ms"


def _high(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)]
