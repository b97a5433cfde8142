"""Many simultaneous requests."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import TypeVar

from tests.e2e.backend import Backend
from tests.support.server import Answer

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """A request to a state."""

    method: str
    body: bytes
    suffix: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    #: Instead of the state's path in the backend.
    path: str = ""


def at_once(backend: Backend, calls: Sequence[Call]) -> list[Answer]:
    """Send each call on an open connection, all released by a barrier."""
    barrier = threading.Barrier(len(calls))

    def send(call: Call) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", backend.server.port, timeout=60)
        with closing(connection):
            connection.connect()
            barrier.wait(30)
            headers = {"Authorization": f"Bearer {backend.token}", **call.headers}
            path = (call.path or backend.path) + call.suffix
            connection.request(call.method, path, call.body, headers)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())

    return in_threads([lambda call=call: send(call) for call in calls])


def in_threads(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run each job in its own thread; the first exception is raised here."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(job) for job in jobs]
        return [future.result() for future in futures]
