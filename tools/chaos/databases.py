"""PostgreSQL servers on the hosts of a scenario, and standbys."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psycopg

from tests.support.postgres import binaries
from tools.chaos.network import ADDRESSES
from tools.chaos.programs import UNPRIVILEGED, Program, run, wait_for_port

PORT = 5432
_SETTINGS = {
    "listen_addresses": "*",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "wal_level": "replica",
    "hot_standby": "on",
    "logging_collector": "off",
}


class Postgres:
    """A PostgreSQL server. ``data`` may be on a separate file system."""

    def __init__(self, directory: Path, host: str = "lab", data: Path | None = None) -> None:
        self.host, self.directory = host, directory / f"postgres-{host}"
        self.directory.mkdir()
        os.chown(self.directory, 65534, 65534)
        self.data = data or self.directory / "data"
        self.binaries = binaries(directory)
        words = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        self.program = Program(
            *UNPRIVILEGED,
            self.binaries / "postgres",
            "-D",
            self.data,
            "-k",
            self.directory,
            *words,
            log=self.directory / "log",
            host=host,
        )

    @property
    def address(self) -> str:
        return f"{ADDRESSES[self.host]}:{PORT}"

    @property
    def url(self) -> str:
        return f"postgres://postgres@{self.address}/postgres"

    def create(self) -> None:
        """Create the data directory, and allow connections from every host of the lab."""
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        with (self.data / "pg_hba.conf").open("a") as access:
            access.write("host all all all trust\nhost replication all all trust\n")

    def follow(self, leader: Postgres) -> None:
        """Copy another server, to become its standby."""
        leader_address = ADDRESSES[leader.host]
        source = ("-h", leader_address, "-p", str(PORT), "-U", "postgres")
        self._run("pg_basebackup", *source, "-D", self.data, "-R", "-X", "stream", "-c", "fast")

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        self.program.start()
        wait_for_port(ADDRESSES[self.host], PORT)
        self.run_sql("SELECT 1", max_wait=30)

    def stop(self) -> None:
        """Stop the server immediately."""
        self.program.stop(signal.SIGQUIT)

    def run_sql(self, statement: str, max_wait: float = 5) -> list[tuple[object, ...]]:
        """Run a statement as the superuser. Retry failed connections for ``max_wait`` seconds."""
        for attempt in range(int(max_wait * 5) + 1):
            try:
                with psycopg.connect(self.url, autocommit=True, connect_timeout=3) as connection:
                    cursor = connection.execute(statement)
                    return cursor.fetchall() if cursor.description else []
            except psycopg.OperationalError:
                if attempt >= max_wait * 5:
                    raise
                subprocess.run(["sleep", "0.2"], check=True)
        return []

    def promote(self) -> None:
        """Promote the standby, and wait until it is the primary.

        Use pg_ctl instead of a statement, because replay may cancel a statement on a standby at any
        time.
        """
        self._run("pg_ctl", "promote", "-D", self.data)

    def _run(self, program: str, *arguments: str | Path) -> None:
        run([*UNPRIVILEGED, self.binaries / program, *arguments], host=self.host)
