"""Compare the service with its peers in one run: ``make bench`` (about half an hour).

The command starts PostgreSQL, runs the benchmarks in sequence, and writes a table of the results
and a description of the machine between the two marks in docs/explanation/performance.md. The
benchmark ``scale`` also writes its plot.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg

from tests.support import postgres
from tests.support.installation import ROOT
from tools.bench.figures import COLLECTED_IN, Figure, Remark

DOCUMENT = ROOT / "docs/explanation/performance.md"
START, END = "<!-- figures: written by make bench -->", "<!-- end of figures -->"
# Benchmarks with a million rows run last, because they enlarge the shared database.
BENCHES = (
    "authentication", "filterlang", "push", "backend", "named", "reports", "terraform", "history",
    "moving", "assistants", "scale", "limits", "memory", "lists", "fleet",
)  # fmt: skip
HEADER = ("work", "this service", "peer", "ratio", "target", "met")


def machine(url: str) -> str:
    """Return a short description of the machine."""
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    assert memory is not None
    with psycopg.connect(url) as connection:
        server = connection.info.server_version // 10_000
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("Django", "djangorestframework", "psycopg", "gunicorn")
    )
    return (
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}; {os.cpu_count()} cores "
        f"({cpu[1].strip() if cpu else platform.machine()}), "
        f"{int(memory[1]) / 1024**2:.0f} GiB; Linux {platform.release().partition('-')[0]}, "
        f"Python {platform.python_version()}, PostgreSQL {server}, {versions}."
    )


def measure(url: str) -> tuple[list[Figure], list[Remark]]:
    """Run every benchmark, and return the figures and remarks in order."""
    with tempfile.NamedTemporaryFile("r", prefix="infra-bench-") as collected:
        environment = {**os.environ, "DATABASE_URL": url, COLLECTED_IN: collected.name}
        for name in BENCHES:
            print(f"\n== {name}", flush=True)
            command = [sys.executable, "-m", f"tools.bench.{name}"]
            subprocess.run(command, cwd=ROOT, env=environment, check=True)
        found = [json.loads(line) for line in collected]
    return (
        [Figure(**one) for one in found if "work" in one],
        [Remark(**one) for one in found if "text" in one],
    )


def table(figures: list[Figure], remarks: list[Remark]) -> str:
    """Return the figures and remarks as Markdown."""
    rows = [HEADER, tuple("---" for _ in HEADER), *(figure.row() for figure in figures)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", *(f"- {remark.text}" for remark in remarks)])


def main() -> None:
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    with postgres.running() as server:
        description = machine(server.url)
        load = os.getloadavg()[0]
        figures, remarks = measure(server.url)
    description += f" Load of the machine before: {load:.1f}."
    written = f"{description}\n\n{table(figures, remarks)}"
    DOCUMENT.write_text(f"{before}{START}\n\n{written}\n\n{END}{after}")
    print(f"\n{written}")
    if missed := [figure.work for figure in figures if not figure.is_met]:
        sys.exit(f"not met: {', '.join(missed)}")


if __name__ == "__main__":
    main()
