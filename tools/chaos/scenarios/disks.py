"""A scenario in which PostgreSQL's disk is full."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psycopg

from tools.chaos.databases import Postgres
from tools.chaos.disks import small_disk
from tools.chaos.report import Outcome
from tools.chaos.scenario import course
from tools.chaos.service import serving

_UNPRIVILEGED = 65534


def full_disk_of_postgresql(directory: Path) -> list[Outcome]:
    """Fill the file system with the data and the WAL. Restart the server if it ends."""
    with small_disk(directory / "disk", 400, _UNPRIVILEGED) as disk:
        database = Postgres(directory, "a", data=disk.path / "data")
        try:
            database.create()
            database.start()
            with (
                serving(directory, DATABASE_URL=database.url) as front,
                course("PostgreSQL's disk is full for 10 s", front) as this,
            ):
                disk.fill()
                time.sleep(10)
                disk.empty()
                with contextlib.suppress(psycopg.Error):
                    database.run_sql("SELECT 1")
                if database.program.has_ended():
                    this.outcome.figures["PostgreSQL itself"] = "ended, and was restarted"
                    database.start()
                this.is_back()
                this.wait_for_pushes()
        finally:
            database.stop()
    return [this.outcome]
