"""Measure many clients and workers: ``python -m tools.bench.scale [--seconds N]``.

Between 1 and 64 clients send cycles of LOCK, GET, POST and UNLOCK of 10 KB, each for its own state,
to 1, 2 and 4 workers, with the database in ``DATABASE_URL``. The benchmark writes
docs/images/scale.svg with the cycles per second, the median and the 99th percentile of their
durations, and the CPU time per cycle of the service and PostgreSQL. The clients run in a single
process on the same machine.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import threading
import time
from typing import NamedTuple

from tests.support.installation import ROOT
from tools.bench.backend import OURS, Client, prepared, started
from tools.bench.figures import remark
from tools.bench.lists import cpu_seconds, postmaster
from tools.bench.plot import Line, Panel, svg

PLOT = ROOT / "docs/images/scale.svg"
WORKERS, CLIENTS = (1, 2, 4), (1, 2, 4, 8, 16, 32, 64)
SIZE = 10_000


class Point(NamedTuple):
    """The results for a number of clients and workers: a rate, and times in milliseconds."""

    rate: float
    median: float
    slowest: float
    cpu: float


def point(port: int, token: str, clients: int, seconds: float, pids: tuple[int, ...]) -> Point:
    """Run the clients for ``seconds``, after a warm-up cycle each, and return the results."""
    all_clients = [Client(port, token, OURS, SIZE) for _ in range(clients)]
    taken: list[list[float]] = [[] for _ in all_clients]
    ready = threading.Barrier(clients + 1)

    def work(number: int) -> None:
        all_clients[number].cycle()
        ready.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            taken[number].append(sum(all_clients[number].cycle().values()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    ready.wait()
    began, before = time.monotonic(), cpu_seconds(*pids)
    for thread in threads:
        thread.join()
    lasted, spent = time.monotonic() - began, cpu_seconds(*pids) - before
    for client in all_clients:
        client.connection.close()
    times = sorted(itertools.chain(*taken))
    return Point(
        len(times) / lasted,
        statistics.median(times),
        times[int(len(times) * 0.99)],
        spent / len(times) * 1000,
    )


def draw(found: dict[int, list[Point]]) -> str:
    """Return the plot as SVG."""
    names = {workers: f"{workers} worker{'s' * (workers > 1)}" for workers in found}

    def lines(value: str, of: str = "", *, is_dashed: bool = False) -> list[Line]:
        return [
            Line(names[workers] + of, [getattr(p, value) for p in points], number, is_dashed)
            for number, (workers, points) in enumerate(found.items())
        ]

    waits = [*lines("median", ", p50"), *lines("slowest", ", p99", is_dashed=True)]
    panels = [
        Panel("cycles per second", lines("rate")),
        Panel("milliseconds per cycle", waits),
        Panel("CPU per cycle, ms", lines("cpu")),
    ]
    return svg(panels, CLIENTS, "clients")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    found: dict[int, list[Point]] = {}
    with prepared() as (server, token):
        url = server.environment["DATABASE_URL"]
        for workers in WORKERS:
            server.environment["WEB_WORKERS"] = str(workers)
            with started(server, url) as port:
                pids = (server.pid, postmaster(url))
                found[workers] = [point(port, token, n, seconds, pids) for n in CLIENTS]
            for clients, each in zip(CLIENTS, found[workers], strict=True):
                print(
                    f"{workers} workers {clients:2} clients {each.rate:7.1f} cycles/s "
                    f"p50 {each.median:7.1f} ms p99 {each.slowest:7.1f} ms CPU {each.cpu:5.1f} ms"
                )
    PLOT.write_text(draw(found))
    for workers, points in found.items():
        best = max(points, key=lambda each: each.rate)
        remark(
            f"{workers} worker{' completes' if workers == 1 else 's complete'} at most "
            f"{best.rate:.0f} cycles of LOCK, GET, POST and UNLOCK of 10 KB per second, with "
            f"{CLIENTS[points.index(best)]} clients (median {best.median:.0f} ms, 99th percentile "
            f"{best.slowest:.0f} ms; {best.cpu:.1f} ms of CPU per cycle, including PostgreSQL's)."
        )


if __name__ == "__main__":
    main()
