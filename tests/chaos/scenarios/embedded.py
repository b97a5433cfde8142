"""SQLite's disk is full, or read only; another process holds the database."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.chaos.disks import SmallDisk, small_disk
from tests.chaos.report import Outcome
from tests.chaos.scenario import Course, course
from tests.chaos.service import Front, serving_alone

_HELD = 60


def full_disk_and_lock(directory: Path) -> list[Outcome]:
    """One instance, whose ``var/`` is on a file system of 100 MB."""
    outcomes = []
    with (
        small_disk(directory / "var", 100, 0) as disk,
        serving_alone(directory, disk.path) as front,
    ):
        for name, deed in _DEEDS.items():
            with course(name, front) as this:
                deed(this, disk)
                this.is_back()
                this.wait_for_pushes(seconds=90)
            outcomes.append(this.outcome)
            if not front.instances[0].is_running:
                this.outcome.broken.append("the service ended")
    return outcomes


def _full(_this: Course, disk: SmallDisk) -> None:
    disk.fill()
    time.sleep(10)
    disk.empty()


def _locked(this: Course, disk: SmallDisk) -> None:
    """Writers are refused after their time-out, and lists are read meanwhile."""
    reader = _Reader(this.front)
    with closing(sqlite3.connect(disk.path / "db.sqlite3", isolation_level=None)) as holder:
        holder.execute("PRAGMA busy_timeout = 30000")
        holder.execute("BEGIN IMMEDIATE")
        reader.start()
        time.sleep(_HELD)
        holder.execute("ROLLBACK")
    reader.finish()
    this.outcome.figures["lists read meanwhile"] = dict(reader.statuses)
    this.outcome.figures["slowest list"] = f"{reader.slowest:.1f} s"
    if set(reader.statuses) != {200}:
        this.outcome.broken.append("lists were not read while another process held the database")


class _Reader(threading.Thread):
    """Reads a list each half second."""

    def __init__(self, front: Front) -> None:
        super().__init__()
        self.front, self.token = front, front.token("state:read")
        self.statuses: Counter[int] = Counter()
        self.slowest = 0.0
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.wait(0.5):
            started = time.monotonic()
            answer = self.front.request("GET", "/api/v1/states", token=self.token)
            self.slowest = max(self.slowest, time.monotonic() - started)
            self.statuses[answer.status] += 1

    def finish(self) -> None:
        self._end.set()
        self.join()


_DEEDS = {
    "SQLite: the disk is full for 10 s": _full,
    "SQLite: another process holds the database for 60 s": _locked,
}
