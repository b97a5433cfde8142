"""Our PostgreSQL backend: when it takes a connection from the pool, and when it returns it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from apikeys.models import User
from infra_service.lib.database.bounded_pages.planning import planned_for_values
from tests.support.committed import (
    backend_pid,
    db,  # noqa: F401 - a fixture
)

pytestmark = pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no pool")


def is_owned() -> bool:
    return connection.connection is not None


@pytest.fixture(autouse=True)
def users(db: None) -> Iterator[None]:  # noqa: F811 - the fixture
    User.objects.bulk_create(User(username=f"user-{number}") for number in range(5))
    assert not is_owned()
    yield
    assert not is_owned()


def test_a_statement_returns_it() -> None:
    assert User.objects.count() == 5
    assert not is_owned()
    assert list(User.objects.values_list("username")[:1]) == [("user-0",)]
    assert not is_owned()
    assert User.objects.filter(username="x").update(email="y") == 0
    assert not is_owned()


def test_a_statement_that_fails_returns_it() -> None:
    with connection.cursor() as cursor, pytest.raises(Exception, match="syntax"):
        cursor.execute("SELECTT 1")
    assert not is_owned()


def test_a_transaction_keeps_it() -> None:
    with transaction.atomic():
        assert User.objects.count() == 5
        assert is_owned()
        with transaction.atomic():
            User.objects.create(username="inner")
        assert is_owned()
    assert not is_owned()
    assert User.objects.count() == 6


def test_a_transaction_that_fails_returns_it() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.bulk_create([User(username="lost"), User(username="lost")])
    assert not is_owned()
    assert User.objects.count() == 5


def test_on_commit_callback_can_query() -> None:
    seen: list[int] = []
    with transaction.atomic():
        User.objects.create(username="new")
        transaction.on_commit(lambda: seen.append(User.objects.count()))
    assert seen == [6]
    transaction.on_commit(lambda: seen.append(0))
    assert seen == [6, 0]
    assert not is_owned()


def test_manual_transactions_keep_it() -> None:
    transaction.set_autocommit(False)
    User.objects.create(username="new")
    assert is_owned()
    transaction.rollback()
    transaction.set_autocommit(True)
    assert not is_owned()
    assert User.objects.count() == 5


def test_server_side_cursor_keeps_its_connection() -> None:
    """A server-side cursor, which lives on its connection, in addition to other statements."""
    rows = User.objects.order_by("username").iterator(chunk_size=2)
    assert next(rows).username == "user-0"
    assert User.objects.count() == 5
    assert is_owned()
    assert [user.username for user in rows] == ["user-1", "user-2", "user-3", "user-4"]
    assert not is_owned()


def test_closed_iterator_returns_its_connection() -> None:
    rows = User.objects.iterator(chunk_size=2)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert not is_owned()


def test_nested_cursor_works() -> None:
    with connection.cursor() as outer:
        with connection.cursor() as inner:
            inner.execute("SELECT 1")
        assert is_owned()
        outer.execute("SELECT 1")
    outer.close()  # twice
    assert not is_owned()


def test_unclosed_cursor_is_closed_with_the_request() -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT 1")
    assert is_owned()
    connection.close()
    cursor.close()


def test_get_autocommit_takes_no_connection() -> None:
    assert transaction.get_autocommit()
    assert not is_owned()


def test_connection_lost_in_a_transaction_is_closed() -> None:
    def fail() -> None:
        with transaction.atomic():
            connection.connection.close()
            User.objects.count()

    with pytest.raises(OperationalError):
        fail()
    assert User.objects.count() == 5
    connection.close()


def test_connection_closed_in_a_transaction_is_discarded() -> None:
    with transaction.atomic():
        User.objects.create(username="lost")
        connection.close()
    assert User.objects.count() == 5
    with transaction.atomic():  # it was returned in a transaction, and is as any other
        User.objects.create(username="kept")
    assert User.objects.count() == 6


def test_a_plan_of_its_own_is_for_the_block_only() -> None:
    with planned_for_values(User.objects.filter(username="rare")):
        assert connection.connection.prepare_threshold is None
        list(User.objects.all())
        assert connection.connection.prepare_threshold is None
    with connection.cursor() as cursor:
        assert cursor.connection.prepare_threshold == 2


LARGE = 8 * 1024 * 1024


@pytest.mark.parametrize(("size", "is_kept"), [(LARGE - 1, True), (LARGE, False)])
@pytest.mark.parametrize("way", ["sent", "received"])
def test_large_values_end_a_connection(
    size: int, way: str, is_kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Else each connection of the pool would keep buffers of the largest that it has carried."""
    pid: Any = None
    with connection.cursor() as cursor:
        pid = cursor.connection.info.backend_pid
        if way == "sent":
            cursor.execute("SELECT length(%s)", [connection.Database.Binary(b"x" * size)])
        else:
            cursor.execute("SELECT convert_to(repeat('x', %s), 'UTF8')", [size])
            cursor.fetchone()
    pids = set()
    for _ in range(30):
        pids.add(backend_pid())
    assert (pid in pids) is is_kept
    assert caplog.records == []  # the end of the connection is no fault


def test_requests_are_limited_in_time_and_commands_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def limit() -> str:
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            return str(cursor.fetchone()[0])

    assert limit() == "0"
    wrapper = type(connection._connections[connection._alias])  # type: ignore[attr-defined]
    monkeypatch.setattr(wrapper, "serves_requests", True)
    assert limit() == "30s"
