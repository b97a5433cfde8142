"""Measure a worker's memory: ``python -m tools.bench.memory [--requests N]`` (``DATABASE_URL``).

The benchmark measures the memory after a first cycle of LOCK, GET, POST and UNLOCK of 10 KB, and
again after 100,000 requests of such cycles from eight clients.
"""

from __future__ import annotations

import argparse
import threading
from pathlib import Path

from tools.bench.backend import CLIENTS, METHODS, OURS, Client, prepared, started
from tools.bench.figures import remark


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024 / 1e6


def cycles(port: int, token: str, number: int) -> None:
    """Send a number of cycles, distributed among the clients."""
    clients = [Client(port, token, OURS, 10_000) for _ in range(CLIENTS)]

    def work(client: Client) -> None:
        for _ in range(-(-number // CLIENTS)):
            client.cycle()

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    requests = parser.parse_args().requests
    with prepared() as (server, token):
        server.environment["WEB_WORKERS"] = "1"
        with started(server, server.environment["DATABASE_URL"]) as port:
            (worker,) = server.workers()
            cycles(port, token, 1)
            found = [resident_mb(worker)]
            for _ in range(2):
                cycles(port, token, requests // 2 // len(METHODS))
                found.append(resident_mb(worker))
    first, half, last = found
    remark(
        f"A worker uses {first:.0f} MB of memory after its first requests, {half:.0f} MB after "
        f"{requests // 2:,} requests of LOCK, GET, POST and UNLOCK cycles of 10 KB, "
        f"and {last:.0f} MB after {requests:,}."
    )


if __name__ == "__main__":
    main()
