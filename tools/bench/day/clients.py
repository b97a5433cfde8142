"""A client that measures its requests, and the states and clusters that clients use."""

from __future__ import annotations

import datetime as dt
import gzip
import http.client
import itertools
import json
import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from tools.bench.day import proportions
from tools.bench.push import state
from tools.bench.reports import item

Headers = Mapping[str, str]

GZIP: Final = {"Content-Encoding": "gzip"}
JSON: Final = {"Content-Type": "application/json"}


class UnexpectedStatusError(Exception):
    """A response with an unexpected status."""


class Client:
    """A connection that records the duration of its requests by kind."""

    def __init__(self, port: int, due: float, record: Callable[[str, float], None]) -> None:
        self._due, self._record = due, record
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(
        self,
        kind: str,
        method: str,
        path: str,
        headers: Headers,
        body: bytes | Callable[[], bytes] | None = None,
    ) -> bytes:
        """Send a request, and record its duration in milliseconds.

        The duration starts when the request is due, or at the last response. The time to create the
        body does not count.

        Raises:
            UnexpectedStatusError: the status is not 2xx.
        """
        if callable(body):
            began = time.monotonic()
            body = body()
            self._due += time.monotonic() - began
        self._connection.request(method, path, body, {**JSON, **headers})
        response = self._connection.getresponse()
        content = response.read()
        now = time.monotonic()
        self._record(kind, (now - self._due) * 1000)
        self._due = now
        if response.status >= 300:
            reason = re.search(rb'"(?:reason|error)":"(\w+)"', content)
            raise UnexpectedStatusError(
                f"{kind}: {response.status} {reason[1].decode() if reason else ''}"
            )
        return content

    def close(self) -> None:
        self._connection.close()


class State:
    """A state that only one pipeline uses at a time."""

    def __init__(self, size: int) -> None:
        self.size, self.serial = size, 0
        self.path = f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"
        self.is_in_use = threading.Lock()

    def next_document(self) -> bytes:
        self.serial += 1
        before, after = _document(self.size)
        return f'"serial": {self.serial}'.encode().join((before, after))


@cache
def _document(size: int) -> tuple[bytes, bytes]:
    before, _, after = state(size, 1).partition(b'"serial": 1')
    return before, after


class Cluster:
    """A cluster, which sends one report at a time."""

    def __init__(self, cluster_id: str, size: int) -> None:
        self.path, self.size = f"/api/v1/clusters/{cluster_id}/workloads", size
        self.is_in_use = threading.Lock()
        self._changes = itertools.count(1)

    def snapshot(self) -> bytes:
        return self._report(workloads=[item(n) for n in range(self.size)])

    def delta(self) -> bytes:
        """Return a delta that changes the usage and, in one of ten workloads, the health."""
        changed = []
        rng = random.Random(next(self._changes))
        count = max(1, int(self.size * proportions.CHANGED_SHARE))
        for n in rng.sample(range(self.size), count):
            health = "DEGRADED" if rng.random() < 0.1 else "HEALTHY"
            used = {"cpu_used_millicores": rng.randrange(1000)}
            changed.append({**item(n), **used, "health_status": health})
        return self._report(upserts=changed, deletes=[])

    def _report(self, **content: Any) -> bytes:
        now = dt.datetime.now(dt.UTC).isoformat()
        return gzip.compress(json.dumps({"reported_at": now, **content}).encode(), 1)
