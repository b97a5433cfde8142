"""Measure the extra cost of addresses with names: ``python -m tools.bench.named``.

A single client sends LOCK, GET, POST and UNLOCK for a small state, and alternates between the
addresses. The comparison uses the CPU time of the worker and of PostgreSQL, which other load does
not change. Names need no additional round trip, because the statement that finds the state also
resolves them.
"""

from __future__ import annotations

import random
import statistics
import time

import psycopg

from tests.support.server import LiveServer, live_server
from tools.bench.backend import METHODS, OURS, Client
from tools.bench.figures import Figure, publish, remark

TURNS = 150
CYCLES = 4
#: The maximum CPU time that names may add to a request, in milliseconds.
MOST = 0.1
ADDRESSES = {
    "ids": "",
    "component/environment": "/api/v1/state/at/network/production",
    "application/component/environment": "/api/v1/state/at/shop/network/production",
}


def cpu_of(pid: int) -> float:
    """Return the CPU milliseconds of a process, from clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2) * 1000


def clients(port: int, token: str) -> dict[str, Client]:
    """Return a client for each form of an address, each with its own state."""
    found = {}
    for name, path in ADDRESSES.items():
        found[name] = Client(port, token, OURS, 1_000)
        found[name].path = path or found[name].path
        for _ in range(10):  # a statement is prepared at its third use
            found[name].cycle()
    return found


def cpu_of_requests(server: LiveServer) -> dict[str, tuple[float, float]]:
    """Return the CPU milliseconds of the worker and of PostgreSQL per request, by address."""
    ours = clients(server.port, server.token("state:read", "state:write"))
    (worker,) = server.workers()
    with psycopg.connect(server.environment["DATABASE_URL"]) as connection:
        others = (
            "SELECT pid FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        backends = [pid for (pid,) in connection.execute(others)]
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ours}
    order = list(ours)
    for _ in range(TURNS):
        random.shuffle(order)
        for name in order:
            before = cpu_of(worker), _sum(backends)
            for _ in range(CYCLES):
                ours[name].cycle()
            after = cpu_of(worker), _sum(backends)
            spent[name].append((after[0] - before[0], after[1] - before[1]))
    requests = CYCLES * len(METHODS)
    return {
        name: (
            statistics.median(own for own, _ in of) / requests,
            statistics.median(database for _, database in of) / requests,
        )
        for name, of in spent.items()
    }


def _sum(pids: list[int]) -> float:
    return sum(map(cpu_of, pids))


def main() -> None:
    with live_server(WEB_WORKERS="1") as server:
        found = cpu_of_requests(server)
    for name, (worker, database) in found.items():
        remark(
            f"A request to an address with {name} takes {worker:.3f} ms of the worker's CPU and "
            f"{database:.3f} ms of PostgreSQL's."
        )
    # The target excludes addresses with an application, which contain three names.
    by_ids, by_names = (sum(found[name]) for name in ("ids", "component/environment"))
    publish(
        Figure(
            work="extra CPU of an address with component/environment, compared with ids",
            ours=max(by_names - by_ids, 0.001),
            peer=MOST,
            peer_name="the target itself",
            unit="ms",
            at_most=1,
        )
    )


if __name__ == "__main__":
    main()
