"""Classification of database exceptions, raised by a real database where possible."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import Client
from psycopg_pool import PoolTimeout, TooManyRequests

from apikeys.models import User
from infra_service.lib.api.errors import reason_of
from infra_service.lib.database import citus
from infra_service.lib.database.failures import (
    FAILURES,
    failure_of,
    is_failure,
    is_of_worker,
    is_repeatable,
)
from infra_service.operations.health import ReadyView
from tests.conftest import error_reason

postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's own")


def reason(error: BaseException) -> str | None:
    failure = failure_of(error)
    return None if failure is None else reason_of(failure)


def raised(act: Callable[[], Any]) -> Exception:
    with pytest.raises(DatabaseError) as caught:
        act()
    return caught.value


def execute(sql: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in sql.split(";"):
            cursor.execute(statement)


@postgresql
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SET LOCAL statement_timeout = 50; SELECT pg_sleep(30)", "DATABASE_STATEMENT_TIMEOUT"),
        ("SET LOCAL transaction_read_only = on; DELETE FROM django_session", "DATABASE_READ_ONLY"),
        ("SELECT nothing", None),
        ("SELECT 1 / 0", None),
    ],
)
def test_postgresql_errors_are_classified(db: None, sql: str, expected: str | None) -> None:
    assert reason(raised(lambda: execute(sql))) == expected


@postgresql
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("failure on connection marked as essential: 10.0.0.41:5432", "XX000"),
        ("failed to COPY to shard 102008 on 10.0.0.41:5432", "58030"),
        ("failed to complete COPY on 10.0.0.41:5432", "58030"),
        ("server closed the connection unexpectedly", "XX000"),
        ("SSL SYSCALL error: EOF detected", "XX000"),
        ("SSL connection has been closed unexpectedly", "XX000"),
        ("could not send data to server: Broken pipe", "XX000"),
        ("no connection to the server", "XX000"),
    ],
)
def test_a_worker_of_citus_that_is_lost_before_the_commit_is_unavailable(
    db: None, message: str, code: str
) -> None:
    lost = f"DO $$ BEGIN RAISE '{message}' USING ERRCODE = '{code}'; END $$"
    with transaction.atomic(), connection.cursor() as cursor:
        error = raised(lambda: cursor.execute(lost))
        transaction.set_rollback(True)
    assert reason(error) == "DATABASE_UNAVAILABLE"


@postgresql
def test_full_disk_quota_is_a_full_disk(db: None) -> None:
    """PostgreSQL has no SQLSTATE for EDQUOT."""
    message = 'could not extend file "base/5/16387": Disk quota exceeded'
    full = f"DO $$ BEGIN RAISE '{message}' USING ERRCODE = 'XX000'; END $$"

    error = raised(lambda: execute_one(full))

    assert (reason(error), is_failure(error)) == ("DATABASE_FULL", True)


@postgresql
@pytest.mark.parametrize(
    ("code", "message", "is_worker"),
    [
        ("08006", "connection failure", True),
        ("XX000", "failure on connection marked as essential", True),
        ("57P01", "terminating connection due to administrator command", False),
        ("40003", "statement completion unknown", False),
        ("55P03", "canceling statement due to lock timeout", False),
    ],
)
def test_only_lost_workers_of_citus_leave_other_rows_available(
    db: None, monkeypatch: pytest.MonkeyPatch, code: str, message: str, is_worker: bool
) -> None:
    block = f"DO $$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = '{code}'; END $$"
    error = raised(lambda: execute_one(block))
    assert isinstance(error, DatabaseError)

    assert not is_of_worker(error)
    monkeypatch.setattr(citus, "is_used", lambda: True)
    assert is_of_worker(error) is is_worker


@postgresql
def test_lost_coordinator_is_no_lost_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    error = _caused(psycopg.OperationalError("server closed the connection unexpectedly"))
    assert isinstance(error, DatabaseError)
    monkeypatch.setattr(citus, "is_used", lambda: True)

    assert not is_of_worker(error)


_TABLE = Path(__file__).parents[2] / "docs" / "explanation" / "consistency.md"


def documented(column: int) -> dict[str, str | None]:
    """Return the reason for each code in a column of the table; null marks a bug of ours."""
    found: dict[str, str | None] = {}
    text = _TABLE.read_text().partition("| PostgreSQL | SQLite |")[2].partition("\n\n")[0]
    for row in text.splitlines()[2:]:
        cells = row.split("|")
        reasons = re.findall(r"`([A-Z_]+)`", cells[4])
        named = re.findall(r"\b[0-9A-Z]{2,}\b", cells[column])
        found |= dict.fromkeys(named, reasons[0] if reasons else None)
    return found


@postgresql
def test_every_sqlstate_matches_the_documentation(db: None) -> None:
    states = [getattr(kind, "sqlstate", None) for kind in vars(psycopg.errors).values()]
    codes = {state for state in states if isinstance(state, str)}
    table = documented(1)
    assert len(codes) > 200
    assert {code[:2] for code in codes} == {code for code in table if len(code) == 2}

    for code in sorted(codes):
        error = raised(lambda code=code: execute_one(_RAISE.format(code)))

        expected = table.get(code, table[code[:2]])
        assert (code, reason(error)) == (code, expected)
        assert is_repeatable(error) is (expected == "WRITE_CONFLICT")


_RAISE = "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{}'; END $$"


def execute_one(sql: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


@postgresql
def test_locked_row_is_reported(db: None) -> None:
    table = "django_session"
    with psycopg.connect(**_address(), autocommit=False) as other:
        other.execute(f"LOCK TABLE {table}")
        wait = f"SET LOCAL lock_timeout = 50; DELETE FROM {table}"
        assert reason(raised(lambda: execute(wait))) == "DATABASE_LOCK_TIMEOUT"


@postgresql
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("SELECT pg_terminate_backend({pid})", "DATABASE_UNAVAILABLE"),
        ("", "DATABASE_TRANSACTION_TIMEOUT"),  # it is ended by itself
    ],
)
def test_lost_connection_is_reported(db: None, end: str, expected: str) -> None:
    own = connection.copy()  # type: ignore[attr-defined]
    own.settings_dict["OPTIONS"]["pool"] = None
    try:
        own.set_autocommit(False)
        with own.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone()
            if not end:
                cursor.execute("SET idle_in_transaction_session_timeout = 100")
        if end:
            execute(end.format(pid=pid))
        time.sleep(1)
        with pytest.raises(DatabaseError) as caught, own.cursor() as cursor:
            cursor.execute("SELECT 1")
        assert reason(caught.value) == expected
    finally:
        own.close()


@postgresql
def test_missing_server_is_reported(db: None) -> None:
    own = connection.copy()  # type: ignore[attr-defined]
    own.settings_dict |= {"PORT": "1", "HOST": "127.0.0.1"}
    own.settings_dict["OPTIONS"]["pool"] = None
    assert reason(raised(own.ensure_connection)) == "DATABASE_UNAVAILABLE"


def _address() -> dict[str, Any]:
    settings = connection.settings_dict
    names = {"host": "HOST", "port": "PORT", "user": "USER", "dbname": "NAME"}
    given = {name: settings[key] for name, key in names.items() if settings[key]}
    return {**given, **({"password": settings["PASSWORD"]} if settings["PASSWORD"] else {})}


@pytest.mark.parametrize("error", [PoolTimeout("none"), TooManyRequests("too many")])
def test_pool_without_connections_is_reported_as_busy(error: Exception) -> None:
    assert reason(_caused(error)) == "DATABASE_BUSY"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    file = sqlite3.connect(tmp_path / "x.sqlite3", timeout=0.05, isolation_level=None)
    file.execute("CREATE TABLE t (x)")
    yield file
    file.close()


def from_sqlite(database: sqlite3.Connection, sql: str) -> str | None:
    with pytest.raises(sqlite3.Error) as caught:
        database.execute(sql)
    return reason(_caused(caught.value))


def _caused(cause: BaseException) -> Exception:
    from django.db import OperationalError  # noqa: PLC0415 - as Django wraps it

    error = OperationalError(*cause.args)
    error.__cause__ = cause
    return error


def test_sqlite_is_busy(database: sqlite3.Connection, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "x.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert from_sqlite(database, "INSERT INTO t VALUES (1)") == "DATABASE_BUSY"
    other.close()


def test_sqlite_is_full(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA max_page_count = 2")
    assert from_sqlite(database, "INSERT INTO t VALUES (zeroblob(100000))") == "DATABASE_FULL"


def test_sqlite_is_read_only(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA query_only = 1")
    assert from_sqlite(database, "INSERT INTO t VALUES (1)") == "DATABASE_READ_ONLY"


def test_sqlite_cannot_read_its_file(database: sqlite3.Connection) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
    assert reason(_caused(error)) == "DATABASE_DISK_ERROR"


def test_sqlite_finds_other_bytes(database: sqlite3.Connection, tmp_path: Path) -> None:
    database.executemany("INSERT INTO t VALUES (?)", [["x" * 1000]] * 50)
    database.close()
    file = tmp_path / "x.sqlite3"
    file.write_bytes(file.read_bytes()[:4096] + b"\xff" * 60_000)
    with closing(sqlite3.connect(file)) as damaged:
        assert from_sqlite(damaged, "SELECT * FROM t") == "DATABASE_DISK_ERROR"
    file.write_bytes(b"\xff" * 60_000)
    with closing(sqlite3.connect(file)) as foreign:
        assert from_sqlite(foreign, "SELECT * FROM t") == "DATABASE_DISK_ERROR"


def test_every_sqlite_result_code_matches_the_documentation() -> None:
    table = documented(2)
    assert len(table) > 20
    for name, expected in table.items():
        error = sqlite3.OperationalError("x")
        error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{name}")
        assert (name, reason(_caused(error))) == (name, expected)


def test_sqlite_finds_no_table(database: sqlite3.Connection) -> None:
    assert from_sqlite(database, "SELECT * FROM nothing") is None


@pytest.mark.parametrize("error", [IntegrityError("x"), RuntimeError("x"), None])
def test_programming_error_is_an_internal_error(error: Exception | None) -> None:
    assert failure_of(error) is None


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Exception]:
    """Let the session's table, which every page of the admin asks for, fail with an SQLSTATE."""

    def fail(sqlstate: str) -> Exception:
        error = _caused(psycopg.errors.lookup(sqlstate)())

        def refuse(*_: Any) -> None:
            raise error

        monkeypatch.setattr(SessionStore, "load", refuse)
        monkeypatch.setattr(ReadyView, "get", refuse)
        return error

    return fail


@pytest.mark.parametrize(
    ("sqlstate", "status", "wait", "text"),
    [
        ("57P01", 503, "2", "The database is unavailable"),
        ("53100", 503, None, "Retries do not help"),
        ("57014", 503, "30", "exceeded the time limit"),
        ("42P01", 500, None, "Something went wrong"),
    ],
)
def test_admin_reports_database_failures(
    failing: Callable[[str], Exception],
    sqlstate: str,
    status: int,
    wait: str | None,
    text: str,
) -> None:
    failing(sqlstate)
    browser = Client(raise_request_exception=False)
    browser.cookies["sessionid"] = "invented"

    for path in ("/admin/", "/admin/login/", "/admin/states/state/"):
        answer = browser.get(path)
        assert (answer.status_code, answer.get("Retry-After")) == (status, wait)
        assert text in answer.content.decode()
        assert answer["Content-Type"].startswith("text/html")


@postgresql
def test_unreadable_session_is_reported(db: None) -> None:
    """The browser keeps its cookie: it is logged in when the database is back."""
    browser = Client(raise_request_exception=False)
    browser.cookies["sessionid"] = "x" * 32
    with psycopg.connect(**_address()) as other:
        other.execute("LOCK TABLE django_session")
        execute_one("SET LOCAL lock_timeout = 50")
        answer = browser.get("/admin/")

    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer["Content-Type"].startswith("text/html")
    assert "A concurrent change to the same object is taking too long" in answer.content.decode()
    assert not answer.cookies


def test_a_page_of_a_failed_session_has_its_policy(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.create_user("person", password="correct horse", is_staff=True)
    error, save = _caused(psycopg.errors.lookup("57P01")()), SessionStore.save

    def refuse(store: SessionStore, must_create: bool = False) -> None:
        if not must_create:
            raise error
        save(store, must_create)

    monkeypatch.setattr(SessionStore, "save", refuse)

    # The view makes the session, and the session's middleware saves it, outside of the view.
    given = {"username": "person", "password": "correct horse"}
    answer = Client(raise_request_exception=False).post("/admin/login/", given)

    assert answer.status_code == 503
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("failure", FAILURES)
def test_api_reports_database_failures(
    failing: Callable[[str], Exception], failure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing("57P01")
    monkeypatch.setattr("infra_service.lib.api.errors.failure_of", lambda _error: failure())

    answer = Client().get("/readyz")

    assert (answer.status_code, error_reason(answer)) == (503, reason_of(failure))
    assert answer.get("Retry-After") == (None if failure.wait is None else str(failure.wait))
