"""Scenarios with SQLite: a full or read-only disk, a lock of another process, and a backup."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.backend import Backend
from tools.chaos.disks import SmallDisk, small_ext4
from tools.chaos.report import Outcome
from tools.chaos.scenario import Course, course
from tools.chaos.service import Front, reason_of, serving_alone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_HELD = 60
#: The seconds that a writer waits. Readers must not wait for writers.
_BUSY_TIMEOUT = 20
_WRITTEN = ("db.sqlite3", "db.sqlite3-wal")
#: More writers than the threads of both workers.
_WRITERS = 100
# From docs/how-to/deploy.md.
_BACKUP = "import sqlite3, sys; a, b = map(sqlite3.connect, sys.argv[1:]); a.backup(b)"


def disk_lock_and_backup(directory: Path) -> list[Outcome]:
    """Run one instance with ``var/`` on a small file system, and inject each fault."""
    outcomes = []
    with (
        small_ext4(directory / "var", 400) as disk,
        serving_alone(directory, disk.path) as front,
    ):
        workers = front.instances[0].workers()
        for name, action in _ACTIONS.items():
            with course(name, front) as this:
                action(this, disk)
                this.is_back()
                this.wait_for_pushes(seconds=90)
            outcomes.append(this.outcome)
            if front.instances[0].workers() != workers:
                this.outcome.broken.append("a worker ended")
    return outcomes


def _full(_this: Course, disk: SmallDisk) -> None:
    disk.fill()
    time.sleep(10)
    disk.empty()


def _read_only(this: Course, disk: SmallDisk) -> None:
    """Make the database read-only. Reads of documents also fail, because they write audit events.

    Requests on a thread without a connection also fail, because opening a connection writes.
    SQLite's shared memory file remains writable, because the kernel would kill a process that
    writes to a mapped read-only file.
    """
    reader = _Reader(this.front)
    disk.set_read_only(True, *_WRITTEN)
    reader.start()
    time.sleep(10)
    disk.set_read_only(False, *_WRITTEN)
    reader.finish(this, expected={200, 503})


def _locked(this: Course, disk: SmallDisk) -> None:
    """Lock the database. Writers fail after their timeout, but lists remain readable."""
    reader = _Reader(this.front)
    with _holding(disk):
        reader.start()
        time.sleep(_HELD)
    reader.finish(this)


def _crowd(this: Course, disk: SmallDisk) -> None:
    """Lock the database, and start more writers than threads."""
    reader, seen = _Reader(this.front), Counter[str]()
    token = this.traffic.ledgers[0].backend.token

    def write() -> None:
        answer = Backend(this.front, token).lock(str(uuid.uuid4()))
        seen[f"{answer.status} {'' if answer.status == 200 else reason_of(answer)}".strip()] += 1

    threads = [threading.Thread(target=write) for _ in range(_WRITERS)]
    with _holding(disk):
        for thread in threads:
            thread.start()
        reader.start()
        for thread in threads:
            thread.join()
    reader.finish(this)
    this.outcome.figures[f"{_WRITERS} more writers"] = dict(seen)
    if set(seen) - {"200", "503 DATABASE_BUSY"}:
        this.outcome.broken.append(f"writers received {dict(seen)}")


@contextmanager
def _holding(disk: SmallDisk) -> Iterator[None]:
    """Acquire the database's only write lock for the block."""
    with closing(sqlite3.connect(disk.path / "db.sqlite3", isolation_level=None)) as holder:
        holder.execute("PRAGMA busy_timeout = 30000")
        holder.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            holder.execute("ROLLBACK")


class _Reader(threading.Thread):
    """A thread that reads a list and checks the readiness of the service every half second."""

    def __init__(self, front: Front) -> None:
        super().__init__()
        self.front, self.token = front, front.token("state:read")
        self.statuses: Counter[int] = Counter()
        self.slowest = 0.0
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.wait(0.5):
            started = time.monotonic()
            for path in ("/api/v1/states", "/readyz"):
                answer = self.front.request("GET", path, token=self.token)
                self.statuses[answer.status] += 1
            self.slowest = max(self.slowest, time.monotonic() - started)

    def finish(self, this: Course, expected: Collection[int] = (200,)) -> None:
        """Stop, and record the result in the outcome."""
        self._end.set()
        self.join()
        this.outcome.figures["lists and /readyz during the fault"] = dict(self.statuses)
        this.outcome.figures["slowest of these requests"] = f"{self.slowest:.1f} s"
        if not self.statuses[200] or self.statuses.keys() - set(expected):
            this.outcome.broken.append("lists could not be read, or the service was not ready")
        if self.slowest > _BUSY_TIMEOUT / 2:
            this.outcome.broken.append(f"a list took {self.slowest:.0f} s")


def _backed_up(this: Course, disk: SmallDisk) -> None:
    """Check that a backup is complete and contains everything acknowledged before its start."""
    promised = {md5 for ledger in this.traffic.ledgers for md5 in [*ledger.acknowledged]}
    copy = disk.path.parent / "backup" / "db.sqlite3"
    copy.parent.mkdir()
    subprocess.run([sys.executable, "-c", _BACKUP, disk.path / "db.sqlite3", copy], check=True)
    restored = Front(copy.parent, (), **{**this.front.environment, "VAR_DIR": str(copy.parent)})
    found = restored.manage("verify_states", "--json")
    with closing(sqlite3.connect(copy)) as database:
        stored = {md5 for (md5,) in database.execute("SELECT md5 FROM states_stateversion")}
    this.outcome.figures["in the backup"] = (
        f"{len(stored)} versions, verify_states: {found.strip()}"
    )
    if promised - stored or '"problems": []' not in found:
        this.outcome.broken.append("the backup is not complete")


_ACTIONS = {
    "SQLite: the disk is full for 10 s": _full,
    "SQLite: the files are read-only for 10 s": _read_only,
    f"SQLite: another process locks the database for {_HELD} s": _locked,
    f"SQLite: another process locks the database, and {_WRITERS} more writers": _crowd,
    "SQLite: backup": _backed_up,
}
