"""A scenario in which a pgbouncer in transaction mode restarts."""

from __future__ import annotations

import time
from pathlib import Path

from tools.chaos.databases import Postgres
from tools.chaos.pooler import Pooler, programs, version_of
from tools.chaos.programs import running, wait_for_port
from tools.chaos.report import Outcome
from tools.chaos.scenario import course
from tools.chaos.service import serving

#: The first version that tracks prepared statements per client.
_KNOWS_PREPARED = (1, 21)


def in_transaction_mode(directory: Path) -> list[Outcome]:
    """Restart each pgbouncer with default settings. Test newer ones with prepared statements."""
    outcomes = []
    for number, program in enumerate(programs()):
        outcomes += _with(program, directory / str(number), {})
        if version_of(program) >= _KNOWS_PREPARED:
            setting = {"DATABASE_PREPARE_THRESHOLD": "2"}
            outcomes += _with(program, directory / f"{number}-prepared", setting)
    return outcomes


def _with(program: str, directory: Path, settings: dict[str, str]) -> list[Outcome]:
    directory.mkdir(mode=0o755)
    database = Postgres(directory, "a")
    more = "max_prepared_statements = 100" if settings else ""
    pooler = Pooler(program, directory / "pgbouncer", database, more)
    version = ".".join(map(str, version_of(program)))
    words = "prepared statements" if settings else "default settings"
    try:
        database.create()
        database.start()
        with running(pooler.program):
            wait_for_port("127.0.0.1", pooler.port)
            with serving(directory, DATABASE_URL=pooler.url, **settings) as front:
                name = f"pgbouncer {version} in transaction mode, {words}, restarted"
                with course(name, front) as this:
                    time.sleep(8)
                    pooler.program.stop()
                    pooler.program.start()
                    wait_for_port("127.0.0.1", pooler.port)
                    this.is_back()
                    this.wait_for_pushes()
        return [this.outcome]
    finally:
        database.stop()
