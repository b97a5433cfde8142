"""``make chaos``: inject faults into the components around the service, with real programs.

``python -m tools.chaos [NAME…]`` runs the named scenarios, or all scenarios. The exit status is 0
if no promise was broken and no response had the status 500. ``CHAOS_LOGS=DIRECTORY`` keeps all
logs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.chaos import network, programs
from tools.chaos.report import Outcome, table
from tools.chaos.scenarios import SCENARIOS

_INSIDE = "CHAOS_NETWORK"


def main() -> int:
    """Create the hosts and run the scenarios on them, or list missing programs."""
    names = sys.argv[1:] or [*SCENARIOS]
    if unknown := sorted(set(names) - SCENARIOS.keys()):
        sys.exit(f"There is no scenario {unknown[0]}. The scenarios are {', '.join(SCENARIOS)}.")
    if os.getuid() != 0:
        sys.exit("make chaos requires root, to create network namespaces and file systems.")
    os.environ["PATH"] += ":/usr/sbin:/usr/local/sbin:/sbin"
    lacking = {name: programs.missing(SCENARIOS[name].needs) for name in names}
    runnable = [name for name in names if not lacking[name]]
    if _INSIDE in os.environ:
        return _run(runnable)
    for name in names:
        if lacking[name]:
            print(f"NOT RUN {name}: install the packages {', '.join(lacking[name])}", flush=True)
    if not runnable:
        return 1
    with network.network():
        command = [*network.inside("lab"), sys.executable, "-m", "tools.chaos", *runnable]
        environment = {**os.environ, _INSIDE: network.PREFIX}
        child = subprocess.Popen(command, env=environment)
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child receives it too, and cleans up
        return child.wait() or int(runnable != names)


def _run(names: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PGCONNECT_TIMEOUT"] = "3"  # for clients that bypass the service
    outcomes: list[Outcome] = []
    for name in names:
        started = time.monotonic()
        print(f"--- {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix=f"chaos-{name}-") as directory:
            Path(directory).chmod(0o755)
            try:
                outcomes += SCENARIOS[name].run(Path(directory))
            finally:
                _keep_logs(name, Path(directory))
        print(f"    {time.monotonic() - started:.0f} s", flush=True)
    print(table(outcomes))
    for outcome in outcomes:
        for problem in outcome.broken[:20]:
            print(f"BROKEN {outcome.name}: {problem}")
    return int(any(outcome.has_failed for outcome in outcomes))


def _keep_logs(name: str, directory: Path) -> None:
    """Copy the logs of all programs to ``CHAOS_LOGS`` if the variable is set."""
    if kept := os.environ.get("CHAOS_LOGS"):
        for log in [*directory.rglob("*.log"), *directory.rglob("log")]:
            target = Path(kept, name, log.relative_to(directory))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, target)


if __name__ == "__main__":
    sys.exit(main())
