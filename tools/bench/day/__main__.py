"""``make bench-day``: find the largest company that a service on this machine can serve.

The command starts PostgreSQL, gunicorn, the indexer and the delivery of webhooks, and sends the
load in ``proportions`` at its scheduled times, even if the service does not keep up (an open loop).
Each step doubles the teams until the 99th percentile of a kind of request exceeds its limit, or a
response is unexpected. Two more steps then narrow down the capacity. The clients run on the same
machine and also use its CPU.

The command prints tables, and writes docs/images/day.svg.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.infra_service.webhooks.receiver import receiving
from tests.support import postgres
from tests.support.installation import ROOT
from tests.support.issuer import issuer_server
from tests.support.server import LiveServer, running
from tests.support.waiting import MAX_WAIT
from tools.bench.day import tables
from tools.bench.day.access import subscribe
from tools.bench.day.company import Company
from tools.bench.day.costs import costs_of
from tools.bench.day.steps import Step, capacity, take

_PLOT = ROOT / "docs/images/day.svg"


@contextlib.contextmanager
def service() -> Iterator[tuple[Company, tuple[int, ...]]]:
    """Run the service with a company. Yield the company and the process ids of the commands."""
    settings = {
        **dict.fromkeys(("RATE_LIMIT_TOKEN", "RATE_LIMIT_OWNER", "RATE_LIMIT_KEY"), "0"),
        **dict.fromkeys(("ISSUER_NETWORKS", "WEBHOOK_NETWORKS"), "127.0.0.0/8"),
    }
    with tempfile.TemporaryDirectory(prefix="infra-bench-") as directory:
        server = LiveServer(Path(directory), **settings)
        with (
            running(server), issuer_server(server.directory) as issuer, receiving() as receiver,
            _command(server, "index_states") as indexer,
            _command(server, "deliver_events") as deliveries,
        ):  # fmt: skip
            subscribe(server, receiver)
            yield Company(server, issuer), (indexer, deliveries)


@contextlib.contextmanager
def _command(server: LiveServer, name: str) -> Iterator[int]:
    """Run a command with ``--watch`` and yield its process id."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", name, "--watch"],
        cwd=ROOT, env=server.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process.pid
        assert process.poll() is None, f"{name} ended with {process.returncode}"
    finally:
        process.terminate()
        process.wait(MAX_WAIT)


def show(step: Step) -> None:
    print(tables.row(step), *(f"    {text}" for text in step.problems), sep="\n", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.day", description=__doc__)
    parser.add_argument("--teams", type=int, default=50, help="teams in the first step (50)")
    parser.add_argument("--seconds", type=float, default=45, help="length of a step (45)")
    options = parser.parse_args()
    if "DATABASE_URL" not in os.environ:
        with postgres.running() as server:
            command = [sys.executable, "-m", "tools.bench.day", *sys.argv[1:]]
            environment = {**os.environ, "DATABASE_URL": server.url}
            return subprocess.run(command, env=environment, check=False).returncode
    with service() as (company, commands):
        company.grow_to(1)
        costs = costs_of(company, commands)  # while the queues are otherwise empty
        take(company, options.teams, options.seconds / 5, commands)  # warm-up
        steps = capacity(company, options.teams, options.seconds, commands, show)
    good = [step for step in steps if not step.problems]
    print("", *tables.HEADER, *map(tables.row, steps), sep="\n")
    for step in good[-1:]:
        service_memory, database_memory = (size / 1e6 for size in step.memory)
        print(f"\n{step.teams} teams: {service_memory:.0f} MB of memory for the service, "
              f"{database_memory:.0f} MB for PostgreSQL")  # fmt: skip
        print("", *tables.kinds(step), sep="\n")
    print("", *costs, sep="\n")
    _PLOT.write_text(tables.draw(steps))
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
