"""Compare pushes with their lower bounds: ``python -m tools.bench.push`` (on PostgreSQL).

The comparisons are:

- a complete request that pushes 100 KB, and a committed insert of the same bytes by psycopg
- the duration of a push of 10 MB in the access event, and the MD5 of the same bytes
- the increase in a worker's peak memory after a push of 64 MiB, and the size of the body
"""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import statistics
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.support.server import LiveServer, live_server
from tools.bench.figures import Figure, publish

ROUNDS = 60


def state(size: int, serial: int) -> bytes:
    """Return a state document of about ``size`` bytes, as repetitive as real documents."""
    rng = random.Random(serial)
    resources: list[dict[str, object]] = []
    written = 0
    while written < size:
        attributes = {
            "id": f"{rng.getrandbits(64):016x}",
            "arn": f"arn:aws:iam::{rng.randrange(10**12)}:role/service-{len(resources)}",
            "tags": {"team": "platform", "env": "production", "cost-center": "1234"},
        }
        instance = {"schema_version": 0, "attributes": attributes, "sensitive_attributes": []}
        name = f"role_{len(resources)}"
        resources.append(
            {"mode": "managed", "type": "aws_iam_role", "name": name, "instances": [instance]}
        )
        written += len(json.dumps(resources[-1], indent=2))
    document = {"version": 4, "serial": serial, "lineage": "bench", "resources": resources}
    return json.dumps(document, indent=2).encode()


def milliseconds(work: Callable[[int], object], rounds: int) -> float:
    """Return the median time of a call, after a few warm-up calls."""
    times = []
    for number in range(rounds + 5):
        started = time.perf_counter()
        work(number)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times[5:])


def durations(server: LiveServer, since: int) -> list[float]:
    """Return the durations of pushes (ms), from the access events after an offset in the log."""
    lines = server.log.read_bytes()[since:].splitlines()
    events = [json.loads(line) for line in lines if line.startswith(b"{")]
    return [event["duration_ms"] for event in events if event.get("method") == "POST"]


def peak_bytes(server: LiveServer) -> int:
    """Return the peak memory of the server's only worker."""
    (worker,) = server.workers()
    status = Path(f"/proc/{worker}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


class Client:
    """A persistent connection that pushes to a state."""

    def __init__(self, server: LiveServer) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port)
        token = server.token("state:read", "state:write")
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.path = f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"

    def push(self, body: bytes) -> None:
        self.connection.request("POST", self.path, body, self.headers)
        response = self.connection.getresponse()
        response.read()
        assert response.status == 200, response.status


def small_pushes(server: LiveServer, client: Client) -> Figure:
    bodies = [state(100_000, serial) for serial in range(1, ROUNDS + 6)]
    whole = milliseconds(lambda n: client.push(bodies[n]), ROUNDS)
    with psycopg.connect(server.environment["DATABASE_URL"], autocommit=True) as database:
        database.execute("CREATE TABLE bench (id uuid PRIMARY KEY, body bytea)")
        insert = milliseconds(
            lambda n: database.execute(
                "INSERT INTO bench VALUES (%s, %b)", (uuid.uuid4(), bodies[n])
            ),
            ROUNDS,
        )
    peer = "committed insert of the same bytes by psycopg"
    work = "push of 100 KB, whole request"
    return Figure(work=work, ours=whole, peer=insert, peer_name=peer, unit="ms", at_most=2)


def large_pushes(server: LiveServer, client: Client) -> Figure:
    rounds = 10
    bodies = [state(10_000_000, serial) for serial in range(1001, 1001 + rounds + 5)]
    since = server.log.stat().st_size
    for body in bodies:
        client.push(body)
    inside = statistics.median(durations(server, since)[5:])
    digest = milliseconds(lambda n: hashlib.md5(bodies[n], usedforsecurity=False).digest(), rounds)
    work = f"push of {len(bodies[0]) / 1e6:.0f} MB, inside the request"
    peer = "MD5 of the same bytes"
    return Figure(work=work, ours=inside, peer=digest, peer_name=peer, unit="ms", at_most=3)


def memory() -> Figure:
    limit = 64 * 1024 * 1024
    body = state(limit * 4 // 5, 1)
    body += b" " * (limit - len(body))
    with live_server(WEB_WORKERS="1") as server:
        client = Client(server)
        client.push(state(1000, 0))
        before = peak_bytes(server)
        client.push(body)
        gained = peak_bytes(server) - before
    return Figure(
        work="memory of a push of 64 MiB",
        ours=gained / 1e6,
        peer=len(body) / 1e6,
        peer_name="the body",
        unit="MB",
        at_most=4,
    )


def main() -> None:
    with live_server() as server:
        client = Client(server)
        publish(small_pushes(server, client), large_pushes(server, client))
    publish(memory())


if __name__ == "__main__":
    main()
