"""Measure the speed of ``import_states`` on SQLite: ``python -m tools.bench.moving``.

The benchmark imports states of 20 KB from a directory, with the overview before the import and the
verification after it. It also measures the memory for ten times as many states.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.installation import ROOT
from tests.support.server import LiveServer
from tools.bench.figures import Figure, publish, remark
from tools.bench.push import state

FEW, MANY = 200, 2000
SIZE = 20_000
#: The target: 20 ms per state, or 50 states per second.
MILLISECONDS = 20
#: The measured program. The measurement excludes the start of Python, Django and the connection.
_TIMED = """
import json, resource, sys, time
import django
django.setup()
from django.core.management import call_command
from django.db import connection
connection.ensure_connection()
started = time.perf_counter()
call_command("import_states", "--from", sys.argv[1], stdout=sys.stderr)
seconds = time.perf_counter() - started
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def imported(count: int) -> tuple[float, float]:
    """Import a number of states into a new service, and return the seconds and the peak MiB."""
    with tempfile.TemporaryDirectory(prefix="infra-bench-") as name:
        directory = Path(name)
        (directory / "var").mkdir()
        server = LiveServer(directory / "var")
        server.prepare()
        for number in range(count):
            file = directory / "states" / f"prod-{number % 8}" / f"c{number}" / "terraform.tfstate"
            file.parent.mkdir(parents=True)
            file.write_bytes(state(SIZE, number))
        done = subprocess.run(
            [sys.executable, "-c", _TIMED, str(directory / "states")],
            cwd=ROOT,
            env=server.environment,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        server.close()
    seconds, megabytes = json.loads(done.stdout)
    return seconds, megabytes


def main() -> None:
    os.environ.pop("DATABASE_URL", None)
    seconds, few = imported(FEW)
    publish(
        Figure(
            work=f"import a state of {SIZE // 1000} KB, of {FEW}, on SQLite",
            ours=seconds / FEW * 1000,
            peer=MILLISECONDS,
            peer_name=f"the target: {1000 // MILLISECONDS} per second",
            unit="ms",
            at_most=1,
        )
    )
    _, many = imported(MANY)
    remark(
        f"`import_states` uses {few:.0f} MiB of memory at most for {FEW} states, "
        f"and {many:.0f} MiB for {MANY:,}."
    )


if __name__ == "__main__":
    main()
