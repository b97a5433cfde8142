"""Many clients at once: idle ones, active ones, and slow uploads."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import threading
import time
from collections import Counter
from pathlib import Path

from tests.chaos.databases import Postgres
from tests.chaos.report import Outcome
from tests.chaos.service import Front, serving
from tests.e2e.backend import Backend, document

_IDLE, _ACTIVE, _SLOW = 1000, 50, 200
_SECONDS = 30
#: Requests a second of all active clients together: what two busy cores can serve beside nginx.
_RATE = float(os.environ.get("CHAOS_RATE", "50"))


def many_clients(directory: Path) -> list[Outcome]:
    """1,000 idle connections, 200 uploads of a few bytes a second, 50 clients that ask."""
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
    quiet = _asked(front, backend, 1, 5, Counter())
    with contextlib.ExitStack() as stack:
        for _ in range(_IDLE):
            stack.enter_context(socket.create_connection(("127.0.0.1", front.port)))
        end = threading.Event()
        uploads = threading.Thread(target=_upload_slowly, args=(front, backend, end))
        uploads.start()
        stack.callback(uploads.join)
        stack.callback(end.set)
        time.sleep(2)
        busy = _asked(front, backend, _ACTIVE, _SECONDS, outcome.statuses)
    outcome.figures = {
        "one client alone": _percentiles(quiet),
        "with all of them": _percentiles(busy),
        "requests a second": f"{len(busy) / _SECONDS:.0f}",
        "load": ", ".join(f"{value:.1f}" for value in os.getloadavg()),
    }
    if bad := {status for status in outcome.statuses if status != 200}:
        outcome.broken.append(f"small requests were answered with {bad}")
    return outcome


def _asked(
    front: Front, backend: Backend, clients: int, seconds: float, statuses: Counter[int]
) -> list[float]:
    """Return how long small requests took, in seconds; each client keeps its connection."""
    taken: list[float] = []
    deadline = time.monotonic() + seconds

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
        with contextlib.closing(connection):
            while time.monotonic() < deadline:
                started = time.monotonic()
                headers = {"Authorization": f"Bearer {backend.token}"}
                connection.request("GET", "/api/v1/states?page_size=1", headers=headers)
                answer = connection.getresponse()
                answer.read()
                taken.append(time.monotonic() - started)
                statuses[answer.status] += 1
                time.sleep(max(0.0, clients / _RATE - taken[-1]))

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def _upload_slowly(front: Front, backend: Backend, end: threading.Event) -> None:
    """Begin 200 pushes, and send each a few bytes a second."""
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


def _percentiles(taken: list[float]) -> str:
    ordered = sorted(taken)
    median, high = (ordered[int(len(ordered) * part)] * 1000 for part in (0.5, 0.99))
    return f"p50 {median:.0f} ms, p99 {high:.0f} ms"
