"""Clients that send requests at a steady rate, and record the duration of each request."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.e2e.backend import Backend, lock_info
from tests.support.server import LiveServer
from tools.bench.push import state

CLIENTS = 8
PUSHED = 100_000
_READS = 4  # for each push, this number of rounds with three reads each


@dataclass
class Seen:
    """The start time and the duration in seconds of each request, and the responses."""

    taken: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def milliseconds(self, kind: str, since: float, until: float) -> tuple[float, float]:
        """Return the median and the 99th percentile of the requests that began in the period."""
        found = sorted(s for began, s in self.taken.get(kind, []) if since <= began < until)
        if not found:
            return 0.0, 0.0
        return found[len(found) // 2] * 1000, found[int(len(found) * 0.99)] * 1000


class Clients:
    """Eight clients, each with its own state, that together send ``rate`` requests per second."""

    def __init__(self, server: LiveServer, rate: float) -> None:
        self.server, self.seen = server, Seen()
        self._token = server.token("state:read", "state:write")
        self._pause = CLIENTS / rate
        self._mutex = threading.Lock()
        self._end = threading.Event()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[Seen]:
        """Run the clients during the block."""
        threads = [threading.Thread(target=self._work, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield self.seen
        finally:
            self._end.set()
            for thread in threads:
                thread.join()

    def _work(self, number: int) -> None:
        backend = Backend(self.server, self._token)
        due = time.monotonic() + number * self._pause / CLIENTS
        for serial in itertools.count(1):
            # A new connection for each round, so that all workers receive requests.
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
            with contextlib.closing(connection):
                for kind, method, path, body in self._round(backend, serial):
                    due = max(due + self._pause, time.monotonic() - 1)
                    if self._end.wait(max(0.0, due - time.monotonic())):
                        return
                    self._send(connection, kind, method, path, body)

    def _round(self, backend: Backend, serial: int) -> Iterable[tuple[str, str, str, bytes | None]]:
        """Yield the requests of a Terraform run, with other read requests between them."""
        lock = uuid.uuid4()
        info = json.dumps(lock_info(lock)).encode()
        yield "lock", "LOCK", backend.path, info
        yield "push", "POST", f"{backend.path}?ID={lock}", state(PUSHED, serial)
        yield "pull", "GET", backend.path, None
        for _ in range(_READS):
            yield "list", "GET", "/api/v1/states?page_size=10", None
            yield "who", "GET", "/v1/whoami", None
            yield "pull", "GET", backend.path, None
        yield "lock", "UNLOCK", backend.path, info

    def _send(
        self, connection: http.client.HTTPConnection, kind: str, method: str, path: str,
        body: bytes | None,
    ) -> None:  # fmt: skip
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        began = time.monotonic()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text, status = answer.read(), answer.status
        except (OSError, http.client.HTTPException) as error:
            text, status = repr(error).encode(), 0
            connection.close()
        taken = time.monotonic() - began
        with self._mutex:
            self.seen.statuses[status] += 1
            self.seen.taken.setdefault(kind, []).append((began, taken))
            if status != 200:
                self.seen.wrong[f"{kind}: {status} {text[:200]!r}"] += 1
