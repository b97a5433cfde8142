"""Measure the resources that the service and its database use, from outside."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Self

import psycopg

from tests.e2e.crowd import memory_of
from tests.support.server import LiveServer
from tools.bench.lists import cpu_seconds, postmaster

#: The bytes of WAL in two seconds below which the service counts as idle.
_QUIET: Final = 50_000
_WAL: Final = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"


@dataclass(frozen=True, kw_only=True)
class Resources:
    """CPU time in seconds since the start of each process, and sizes in bytes."""

    moment: float
    #: The CPU time of the workers, the indexer and the delivery of webhooks.
    service_cpu: float
    postgresql_cpu: float
    #: The CPU time of this process, which sends the load.
    clients_cpu: float
    wal: int
    database: int

    @classmethod
    def used(cls, server: LiveServer, commands: tuple[int, ...]) -> Self:
        """Return the resources used so far."""
        url = server.environment["DATABASE_URL"]
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute(f"{_WAL}, pg_database_size(current_database())").fetchone()
        assert row is not None
        return cls(
            moment=time.monotonic(),
            service_cpu=cpu_seconds(server.pid, *commands),
            postgresql_cpu=cpu_seconds(postmaster(url)),
            clients_cpu=time.process_time(),
            wal=row[0],
            database=row[1],
        )

    def since(self, earlier: Resources) -> Resources:
        """Return the differences from an earlier measurement."""
        differences = {
            field.name: getattr(self, field.name) - getattr(earlier, field.name)
            for field in fields(self)
        }
        return Resources(**differences)


def settle(server: LiveServer) -> None:
    """Wait until the indexer and the deliveries are idle, at most three minutes.

    Run VACUUM first, so that autovacuum does not run during a measurement.
    """
    with psycopg.connect(server.environment["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        for _ in range(90):
            before = connection.execute(_WAL).fetchone()
            time.sleep(2)
            after = connection.execute(_WAL).fetchone()
            assert before
            assert after
            if after[0] - before[0] < _QUIET:
                return


def memory(server: LiveServer) -> tuple[int, int]:
    """Return the memory of the service's workers and of PostgreSQL's processes, in bytes."""
    root = postmaster(server.environment["DATABASE_URL"])
    children = Path(f"/proc/{root}/task/{root}/children").read_text().split()
    return memory_of(server), sum(_proportional(pid) for pid in (root, *map(int, children)))


def _proportional(pid: int) -> int:
    """Return the memory of a process with its share of shared memory; 0 if it has exited."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
