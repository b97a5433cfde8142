"""Measure lists of a million rows: ``python -m tools.bench.lists [--rows N] [--url URL]``.

The benchmark compares a complete request for a page of 100 states with two peers: the same keyset
with a ModelSerializer, and DRF's page numbers. It measures the first and the 5,000th page. The
requests are interleaved, because the machine is shared. The results are the median wait of the
client, and the CPU time of the server and the database.

Without ``--url``, the benchmark starts and fills a PostgreSQL server, which takes minutes.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.support import postgres
from tests.support.server import LiveServer
from tools.bench.figures import Figure, publish

ROUNDS = 120
LATE = 5_000
LIST = "/api/v1/states?page_size=100"
# The servers of a benchmark use the same database, and therefore the same key.
KEYS = os.environ.get("STATE_ENCRYPTION_KEYS") or base64.b64encode(secrets.token_bytes(32)).decode()


def cpu_seconds(*roots: int) -> float:
    """Return the CPU time of these processes and their descendants."""
    ticks, parents = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            ticks[int(entry.parent.name)] = sum(map(int, fields[11:15]))
            parents[int(entry.parent.name)] = int(fields[1])
    family = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def serving(**environment: str) -> Iterator[LiveServer]:
    """Run a server on a database that an earlier run may have prepared."""
    with tempfile.TemporaryDirectory(prefix="infra-bench-") as directory:
        server = LiveServer(Path(directory), STATE_ENCRYPTION_KEYS=KEYS, **environment)
        with contextlib.suppress(subprocess.CalledProcessError):
            server.prepare()  # fails if the user already exists
        server.start()
        try:
            yield server
        finally:
            server.close()


def postmaster(url: str) -> int:
    with psycopg.connect(url) as connection:
        ((directory,),) = connection.execute("SHOW data_directory").fetchall()
    return int(Path(directory, "postmaster.pid").read_text().split()[0])


class Client:
    """A minimal client with a persistent connection, whose own work takes little time."""

    def __init__(self, server: LiveServer, token: str = "") -> None:
        self.connection = socket.create_connection(("127.0.0.1", server.port))
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        token = token or server.token("state:read")
        self.headers = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"

    def get(self, path: str) -> bytes:
        return self._answer(f"GET {path} HTTP/1.1\r\n{self.headers}\r\n")

    def post(self, path: str, body: str) -> bytes:
        head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return self._answer(f"POST {path} HTTP/1.1\r\n{self.headers}{head}\r\n{body}")

    def _answer(self, request: str) -> bytes:
        self.connection.sendall(request.encode())
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self.connection.recv(65536)
        head = bytes(received[:end])
        assert head.startswith(b"HTTP/1.1 200 "), head
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        while len(received) < end + 4 + length:
            received += self.connection.recv(65536)
        return bytes(received[end + 4 :])


def page_after(client: Client, pages: int) -> str:
    """Read a number of pages, and return the token of the next page."""
    token = ""
    for _ in range(pages):
        token = json.loads(client.get(f"{LIST}&page_token={token}"))["next_page_token"]
    return token


def requests(server: LiveServer, url: str, rows: int) -> list[Figure]:
    """Measure our request and its peers, which return the same page of 100 rows."""
    client = Client(server)
    late = min(LATE, rows // 100 - 1)
    first, last = "this service, page 1", f"this service, page {late}"
    paths = {
        first: LIST,
        last: f"{LIST}&page_token={page_after(client, late - 1)}",
        "DRF ModelSerializer with the same keyset": "/bench/keyset?page_size=100",
        "DRF page number, page 1": "/bench/page-number?page=1",
        f"DRF page number, page {late}": f"/bench/page-number?page={late}",
    }
    pids = (server.pid, postmaster(url))
    waited: dict[str, list[float]] = {name: [] for name in paths}
    spent = dict.fromkeys(paths, 0.0)
    for turn in range(-2, ROUNDS // 10):
        for name, path in paths.items():
            before = cpu_seconds(*pids)
            for _ in range(10):
                started = time.perf_counter()
                client.get(path)
                if turn >= 0:
                    waited[name].append((time.perf_counter() - started) * 1000)
            if turn >= 0:
                spent[name] += cpu_seconds(*pids) - before
    wait = {name: statistics.median(times) for name, times in waited.items()}
    print(f"{'a page of 100 states':42} {'wait':>9} {'CPU':>10}")
    for name in paths:
        print(f"{name:42} {wait[name]:6.2f} ms {spent[name] / ROUNDS * 1000:7.2f} ms")
    work = f"page of 100 states of {rows:,}"
    common: dict[str, Any] = {"work": work, "ours": wait[first], "unit": "ms"}
    figures = [
        Figure(**common, peer=wait[name], peer_name=name, at_least=25 if "page" in name else 4.5)
        for name in list(paths)[2:]
    ]
    common |= {"work": f"{work}, page {late}", "ours": wait[last]}
    return [*figures, Figure(**common, peer=wait[first], peer_name=first, at_most=1.25)]


def bench(url: str, rows: int) -> None:
    environment = {"DJANGO_SETTINGS_MODULE": "tools.bench.peers", "WEB_WORKERS": "1"}
    with serving(DATABASE_URL=url, **environment) as server:
        publish(*requests(server, url, rows))


def fill(url: str, states: int, clusters: int = 0, workloads: int = 0) -> None:
    """Migrate the database, and create demo data and additional states in bulk."""
    options = ("--clusters", str(clusters), "--workloads", str(workloads), "--json")
    with serving(DATABASE_URL=url) as server:
        print("seeded:", server.manage("seed_demo", *options))
        bulk = [sys.executable, "-m", "tools.bench.bulk_states", str(states)]
        subprocess.run(bulk, env=server.environment, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--url", help="a database that seed_demo has filled")
    given = parser.parse_args()
    if given.url:
        bench(given.url, given.rows)
        return
    with postgres.running() as server:
        fill(server.url, given.rows)
        bench(server.url, given.rows)


if __name__ == "__main__":
    main()
