"""``last_used_at``: at most once a minute, and never waited for."""

import contextlib
import datetime as dt
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys.models import ApiKey, User
from infra_service.lib.database import busy_timeout
from tests.apikeys.conftest import NOW, KeyOwner


def writes(owner: KeyOwner) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert owner.get("/v1/whoami").status_code == 200
    return sum(q["sql"].startswith("UPDATE") for q in queries.captured_queries)


def test_single_write_per_minute(owner: KeyOwner, monkeypatch: pytest.MonkeyPatch) -> None:
    now = NOW()
    monkeypatch.setattr(timezone, "now", lambda: now)
    assert [writes(owner) for _ in range(3)] == [1, 0, 0]

    used = now - dt.timedelta(seconds=59)
    ApiKey.objects.update(last_used_at=used)
    assert writes(owner) == 0
    assert owner.key.last_used_at == used

    ApiKey.objects.update(last_used_at=now - dt.timedelta(seconds=60))
    assert writes(owner) == 1


def test_only_the_first_concurrent_use_writes(owner: KeyOwner) -> None:
    now = NOW()

    assert ApiKey.objects.touch(owner.key_id, now, "192.0.2.1") is True
    assert ApiKey.objects.touch(owner.key_id, now, "192.0.2.1") is False


@pytest.fixture
def other_connection(db: None) -> Iterator[Any]:
    """A second connection to the test's database, which commits, under the name "other"."""
    connections["other"] = other = connections.create_connection("default")
    other.alias = "other"
    other.settings_dict = connection.settings_dict
    yield other
    other.rollback()
    other.set_autocommit(True)
    ApiKey.objects.using("other").all().delete()
    User.objects.using("other").all().delete()
    other.close()
    other.close_pool()
    del connections["other"]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the database, see below")
def test_a_row_that_another_holds_is_not_waited_for(other_connection: Any) -> None:
    user = User.objects.using("other").create(username="x")
    key = ApiKey.objects.using("other").create(
        created_by=user, name="x", scopes=["state:read"], digest=b"0" * 32
    )
    other_connection.set_autocommit(False)
    ApiKey.objects.using("other").update(name="y")  # and does not commit

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '5s'")  # a blocked statement fails
    assert ApiKey.objects.touch(key.pk, NOW(), "192.0.2.1") is False

    other_connection.rollback()
    with contextlib.suppress(RuntimeError), transaction.atomic():
        assert ApiKey.objects.touch(key.pk, NOW(), "192.0.2.1") is True
        raise RuntimeError  # gives the row back, for the other to delete


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL locks rows, see above")
def test_sqlites_writer_is_not_waited_for(
    db: None, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "db"
    settings_dict = {**settings.DATABASES["default"], "NAME": str(path)}
    other = connections.create_connection("default")
    other.settings_dict = {**connection.settings_dict, **settings_dict}
    monkeypatch.setattr(busy_timeout, "connection", other)
    with other.cursor() as cursor:
        cursor.execute("CREATE TABLE used (at int)")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    waits = []

    def write() -> int:
        waits.append(timeout())
        with other.cursor() as cursor:
            return int(cursor.execute("INSERT INTO used VALUES (1)").rowcount)

    def timeout() -> int:
        with other.cursor() as cursor:
            return int(cursor.execute("PRAGMA busy_timeout").fetchone()[0])

    try:
        assert busy_timeout.without_waiting(write) is False
        assert waits == [0]
        assert timeout() == 20_000
        holder.execute("COMMIT")
        assert busy_timeout.without_waiting(write) is True

        def broken() -> int:
            with other.cursor() as cursor:
                return int(cursor.execute("INSERT INTO missing VALUES (1)").rowcount)

        with pytest.raises(OperationalError, match="no such table"):
            busy_timeout.without_waiting(broken)
    finally:
        holder.close()
        other.close()


def test_a_use_is_noted_inside_a_transaction_too(owner: KeyOwner) -> None:
    with transaction.atomic():
        assert ApiKey.objects.touch(owner.key_id, NOW(), "192.0.2.1") is True
