"""A scenario in which an administrator changes a database under traffic."""

from __future__ import annotations

import time
from pathlib import Path

from tools.chaos.databases import Postgres
from tools.chaos.report import Outcome
from tools.chaos.scenario import Course, course
from tools.chaos.service import serving

_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def administrator_mistakes(directory: Path) -> list[Outcome]:
    """Set the primary to read-only, terminate connections, cancel statements, and set a timeout."""
    database = Postgres(directory, "a")
    outcomes = []
    try:
        database.create()
        database.start()
        with serving(directory, DATABASE_URL=database.url) as front:
            for name, action in _ACTIONS.items():
                with course(name, front) as this:
                    action(this, database)
                    this.wait_for_pushes()
                outcomes.append(this.outcome)
    finally:
        database.stop()
    return outcomes


def _read_only(this: Course, database: Postgres) -> None:
    _set(database, "default_transaction_read_only", "on")
    time.sleep(6)
    _set(database, "default_transaction_read_only", "off")
    this.is_back()


def _terminate(this: Course, database: Postgres) -> None:
    for _ in range(30):
        database.run_sql(f"SELECT pg_terminate_backend(pid) {_OTHERS}")
        time.sleep(0.3)
    this.is_back()


def _cancel(this: Course, database: Postgres) -> None:
    for _ in range(100):
        database.run_sql(f"SELECT pg_cancel_backend(pid) {_OTHERS} AND state <> 'idle'")
        time.sleep(0.05)
    this.is_back()


def _idle_in_transaction(this: Course, database: Postgres) -> None:
    """Set a timeout of 1 ms, which affects transactions with Python code between statements."""
    _set(database, "idle_in_transaction_session_timeout", "1ms")
    time.sleep(6)
    _set(database, "idle_in_transaction_session_timeout", "0")
    this.is_back()


def _set(database: Postgres, name: str, value: str) -> None:
    database.run_sql(f"ALTER SYSTEM SET {name} = '{value}'")
    database.run_sql("SELECT pg_reload_conf()")


_ACTIONS = {
    "primary set to read-only for 6 s": _read_only,
    "all connections terminated 30 times": _terminate,
    "all statements cancelled 100 times": _cancel,
    "idle_in_transaction_session_timeout of 1 ms for 6 s": _idle_in_transaction,
}
