"""Many clients at once that push, pull and compare large documents."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.backend import Backend, document
from tests.support.server import Answer, LiveServer

MIB = 1024 * 1024


def large(size: int, serial: int) -> bytes:
    """Return a document of many resources, of about this size, half of which does not compress."""
    one = {
        "mode": "managed", "type": "t", "name": "n", "provider": "p",
        "instances": [{"schema_version": 0, "attributes": {"id": "i", "n": serial, "text": "T"}}],
    }  # fmt: skip
    text = random.Random(serial).randbytes(1000).hex()
    count = size // (len(json.dumps(one)) + len(text) + 40)
    parts = [json.dumps({**one, "name": f"n{i}"}).replace('"T"', f'"{text}"') for i in range(count)]
    return document(serial, resources=["HERE"]).replace(b'"HERE"', ",\n".join(parts).encode())


class Crowd:
    """``clients`` threads, each of which repeats the three operations."""

    def __init__(self, server: LiveServer, clients: int, size: int) -> None:
        self.server = server
        self.answers: Counter[tuple[str, int, str]] = Counter()
        self.small: list[float] = []
        self.peak = 0
        self._stop = threading.Event()
        token = server.token("state:read", "state:write")
        self._bodies = [large(size, serial) for serial in (1, 2)]
        self.stored = Backend(server, token)
        for body in self._bodies:
            assert self.stored.push(body).status == 200
        listed = server.request("GET", "/api/v1/states", token=token).json()["states"]
        self._diff = f"/api/v1/states/{listed[0]['id']}/versions/2/diff"
        self._token = token
        self._threads = [
            threading.Thread(target=target)
            for target in (*[self._client] * clients, self._watch, self._send)
        ]

    def run(self, seconds: float) -> None:
        """Run them for this long."""
        for thread in self._threads:
            thread.start()
        self._stop.wait(seconds)
        self._stop.set()
        for thread in self._threads:
            thread.join(120)

    def _client(self) -> None:
        while not self._stop.is_set():
            self._note("push", lambda: Backend(self.server, self._token).push(self._bodies[0]))
            self._note("pull", self.stored.get)
            self._note("diff", lambda: self._get(self._diff))

    def _get(self, path: str) -> Answer:
        return self.server.request("GET", path, token=self._token)

    def _note(self, what: str, do: Any) -> None:
        if self._stop.is_set():
            return
        try:
            answer = do()
        except (OSError, http.client.HTTPException) as error:
            self.answers[what, 0, type(error).__name__] += 1
            return
        refused = answer.status >= 400
        if refused:
            assert answer.status != 503 or int(answer.headers["Retry-After"]) > 0
        self.answers[what, answer.status, answer.reason if refused else ""] += 1
        if refused:
            self._stop.wait(0.2)

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self.peak = max(self.peak, memory_of(self.server))

    def _send(self) -> None:
        """Send small requests, like most clients, and record their durations."""
        while not self._stop.wait(0.05):
            started = time.monotonic()
            assert self._get("/api/v1/states").status == 200
            self.small.append(time.monotonic() - started)


def memory_of(server: LiveServer) -> int:
    """Return the bytes of all processes of the server; shared memory is counted once."""
    total = 0
    for pid in (server.pid, *server.workers()):
        with contextlib.suppress(OSError):  # a worker that has ended
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total
