"""Compare state operations with an ordinary backend: ``python -m tools.bench.backend``.

The operations are LOCK, GET, POST and UNLOCK. They run with a single client and a latency of 2 ms
to PostgreSQL, where round trips dominate, and with eight clients and PostgreSQL on the same
machine, where the CPU dominates. This service's backend and the peer (``tools.bench.naive``) are
views of the same service, and alternate.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.e2e.backend import lock_info
from tests.support.server import LiveServer
from tests.support.wire import wire_to
from tools.bench.figures import Figure, publish
from tools.bench.push import state

WIRE_SECONDS = 0.002
CLIENTS = 8
ROUNDS = 40
SECONDS = 3.0
TURNS = 4
OURS, NAIVE = "/api/v1/state", "/bench/state"
METHODS = ("LOCK", "GET", "POST", "UNLOCK")


class Client:
    """A client with a persistent connection and one state, whose own work takes little time."""

    def __init__(self, port: int, token: str, place: str, size: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.path = f"{place}/{uuid.uuid4()}/env/{uuid.uuid4()}"
        self.lock_id = str(uuid.uuid4())
        self.lock_body = json.dumps(lock_info(self.lock_id)).encode()
        self.token, self.size, self.serial = token, size, 0
        before, _, after = state(size, 1).partition(b'"serial": 1')
        self.parts = before, after

    def cycle(self) -> dict[str, float]:
        """Lock, get, push and unlock, and return the duration of each request in milliseconds."""
        self.serial += 1
        document = f'"serial": {self.serial}'.encode().join(self.parts)
        return {
            "LOCK": self.send("LOCK", self.path, self.lock_body),
            "GET": self.send("GET", self.path) if self.serial > 1 else 0.0,
            "POST": self.send("POST", f"{self.path}?ID={self.lock_id}", document),
            "UNLOCK": self.send("UNLOCK", self.path, self.lock_body),
        }

    def send(self, method: str, path: str, body: bytes = b"") -> float:
        """Send a request, read the response, and return the duration in milliseconds."""
        started = time.perf_counter()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.connection.sendall(head.encode() + body)
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self.connection.recv(65536)
        answer = bytes(received[:end])
        assert answer.startswith(b"HTTP/1.1 200 "), (method, answer)
        length = int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        missing = end + 4 + length - len(received)
        while missing > 0:
            missing -= len(self.connection.recv(1 << 20))
        return (time.perf_counter() - started) * 1000


@contextlib.contextmanager
def prepared() -> Iterator[tuple[LiveServer, str]]:
    """Create a server with its own database, and a token."""
    url, name = os.environ["DATABASE_URL"], f"bench_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    with tempfile.TemporaryDirectory(prefix="infra-bench-") as directory:
        server = LiveServer(
            Path(directory),
            DATABASE_URL=f"{url.rpartition('/')[0]}/{name}",
            DJANGO_SETTINGS_MODULE="tools.bench.peers",
            WEB_WORKERS="2",
        )
        server.prepare()
        server.manage("migrate", "--run-syncdb", "--verbosity", "0")
        try:
            yield server, server.token("state:read", "state:write")
        finally:
            os.environ["DATABASE_URL"] = url  # a benchmark may have replaced it
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextlib.contextmanager
def started(server: LiveServer, url: str) -> Iterator[int]:
    """Run the server with the database at this URL, and yield its port."""
    server.environment["DATABASE_URL"] = url
    server.start()
    try:
        yield server.port
    finally:
        server.stop()


def over_a_wire(server: LiveServer, token: str) -> Figure:
    """Measure the four requests of a single client over a connection with latency."""
    url = server.environment["DATABASE_URL"]
    with wire_to(url, WIRE_SECONDS) as wire, started(server, wire.through(url)) as port:
        clients = {place: Client(port, token, place, 10_000) for place in (OURS, NAIVE)}
        taken: dict[str, list[dict[str, float]]] = {place: [] for place in clients}
        trips = dict.fromkeys(clients, 0)
        for turn in range(-10, ROUNDS):
            for place, client in clients.items():
                before = wire.trips
                times = client.cycle()
                if turn >= 0:
                    taken[place].append(times)
                    trips[place] += wire.trips - before
    server.environment["DATABASE_URL"] = url
    medians = {
        place: {method: statistics.median(t[method] for t in times) for method in METHODS}
        for place, times in taken.items()
    }
    for place, of in medians.items():
        each = "  ".join(f"{method} {milliseconds:.1f} ms" for method, milliseconds in of.items())
        print(f"{place:16} {each}  {trips[place] / ROUNDS:.1f} round trips")
    ours, naive = (sum(medians[place].values()) for place in (OURS, NAIVE))
    return Figure(
        work=f"LOCK, GET, POST, UNLOCK of 10 KB, {WIRE_SECONDS * 1000:.0f} ms database latency",
        ours=ours,
        peer=naive,
        peer_name="an ordinary Django backend",
        unit="ms",
        at_most=0.8,
    )


def cycles_a_second(port: int, token: str, place: str, size: int) -> float:
    """Return the cycles per second of ``CLIENTS`` clients, each with its own state."""
    clients = [Client(port, token, place, size) for _ in range(CLIENTS)]
    end = time.monotonic() + SECONDS
    done = [0] * CLIENTS

    def work(number: int) -> None:
        while time.monotonic() < end:
            clients[number].cycle()
            done[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - begun)


def on_one_machine(server: LiveServer, token: str, size: int, at_least: float) -> Figure:
    with started(server, server.environment["DATABASE_URL"]) as port:
        rates: dict[str, list[float]] = {OURS: [], NAIVE: []}
        for turn in range(-1, TURNS):
            for place, found in rates.items():
                rate = cycles_a_second(port, token, place, size)
                if turn >= 0:
                    found.append(rate)
    ours, naive = (1000 / statistics.median(rates[place]) for place in (OURS, NAIVE))
    return Figure(
        work=(
            f"cycle of LOCK, GET, POST, UNLOCK of {size // 1000} KB, one machine, {CLIENTS} clients"
        ),
        ours=ours,
        peer=naive,
        peer_name="an ordinary Django backend",
        unit="ms",
        at_least=at_least,
    )


def main() -> None:
    with prepared() as (server, token):
        publish(over_a_wire(server, token))
        publish(on_one_machine(server, token, 10_000, 2))
        publish(on_one_machine(server, token, 100_000, 4))


if __name__ == "__main__":
    main()
