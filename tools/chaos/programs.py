"""Run programs on the hosts of a scenario, and stop them by process id."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.chaos.network import inside

#: The Debian packages with the programs of the scenarios.
PACKAGES = {
    "ip": "iproute2",
    "setpriv": "util-linux",
    "mkfs.ext4": "e2fsprogs",
    "nginx": "nginx-light",
    "haproxy": "haproxy",
    "pgbouncer": "pgbouncer",
    "redis-server": "redis-server",
    "etcd": "etcd-server",
    "patroni": "patroni",
    "patronictl": "patroni",
}
#: The command that runs PostgreSQL and similar programs as another user, because they refuse root.
UNPRIVILEGED = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def missing(needed: Iterable[str]) -> list[str]:
    """Return the packages of missing programs."""
    return sorted({PACKAGES[name] for name in needed if not shutil.which(name)})


class Program:
    """A program with its process group on a host."""

    def __init__(self, *command: str | Path, log: Path, host: str = "lab", **more: str) -> None:
        self.command = [*(inside(host) if host != "lab" else []), *map(str, command)]
        self.log, self.environment = log, {**os.environ, **more}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the program as the leader of a process group."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self.environment,
                start_new_session=True,
            )

    def has_ended(self) -> bool:
        """Return whether the program has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 20) -> None:
        """Stop the program. Kill it after a timeout."""
        if self._process is None:
            return
        for last_word in (number, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, last_word)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
                break
        self._process = None


@contextlib.contextmanager
def running(*programs: Program) -> Iterator[None]:
    """Run programs during the block."""
    with contextlib.ExitStack() as stack:
        for program in programs:
            stack.callback(program.stop)
            program.start()
        yield


def wait_for_port(address: str, port: int, seconds: float = 30) -> None:
    """Wait until a server accepts connections."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection((address, port), timeout=1).close()
            return
        assert time.monotonic() < deadline, f"no server listens on {address}:{port}"
        time.sleep(0.05)


def run(command: Sequence[str | Path], host: str = "lab") -> str:
    """Run a command on a host, and return its output."""
    words = [*(inside(host) if host != "lab" else []), *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    return done.stdout


def read_tail(path: Path, characters: int = 3000) -> str:
    """Return the end of a log file, or "" if it does not exist."""
    return path.read_text(errors="replace")[-characters:] if path.exists() else ""
