"""Pushes against what they cannot do without: ``python -m tests.bench.push`` (on PostgreSQL).

A push of 100 KB, as a whole request, beside a committed insert of the same bytes by psycopg; a push
of 10 MB, inside the request (the access event's duration), beside the MD5 of the same bytes.
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

import psycopg

from tests.server import LiveServer, live_server

ROUNDS = 60


def state(size: int, serial: int) -> bytes:
    """Return a state document of about this size, as repetitive as real ones are."""
    chance = random.Random(serial)
    resources: list[dict[str, object]] = []
    written = 0
    while written < size:
        attributes = {
            "id": f"{chance.getrandbits(64):016x}",
            "arn": f"arn:aws:iam::{chance.randrange(10**12)}:role/service-{len(resources)}",
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
    """Return the median time of one call, after a few to warm up."""
    times = []
    for number in range(rounds + 5):
        started = time.perf_counter()
        work(number)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times[5:])


def durations(server: LiveServer, since: int) -> list[float]:
    """Return what the access events after this offset say of the pushes, in milliseconds."""
    lines = server.log.read_bytes()[since:].splitlines()
    events = [json.loads(line) for line in lines if line.startswith(b"{")]
    return [event["duration_ms"] for event in events if event.get("method") == "POST"]


def main() -> None:
    with live_server() as server:
        token = server.token("state:read", "state:write", "state:admin")
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        path = f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"

        def push(body: bytes) -> None:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            response.read()
            assert response.status == 200, response.status

        small = [state(100_000, serial) for serial in range(1, ROUNDS + 6)]
        whole = milliseconds(lambda n: push(small[n]), ROUNDS)
        with psycopg.connect(server.environment["DATABASE_URL"], autocommit=True) as database:
            database.execute("CREATE TABLE bench (id uuid PRIMARY KEY, body bytea)")
            insert = milliseconds(
                lambda n: database.execute(
                    "INSERT INTO bench VALUES (%s, %b)", (uuid.uuid4(), small[n])
                ),
                ROUNDS,
            )
        print(f"push of 100 KB           {whole:8.2f} ms")
        print(f"committed insert         {insert:8.2f} ms")
        print(f"ratio                    {whole / insert:8.2f}   (target: at most 3)")

        rounds = 10
        large = [state(10_000_000, serial) for serial in range(1001, 1001 + rounds + 5)]
        since = server.log.stat().st_size
        for body in large:
            push(body)
        inside = statistics.median(durations(server, since)[5:])
        digest = milliseconds(
            lambda n: hashlib.md5(large[n], usedforsecurity=False).digest(), rounds
        )
        print(f"push of {len(large[0]) / 1e6:4.1f} MB, inside  {inside:8.2f} ms")
        print(f"MD5 of the same          {digest:8.2f} ms")
        print(f"ratio                    {inside / digest:8.2f}   (target: at most 3)")


if __name__ == "__main__":
    main()
