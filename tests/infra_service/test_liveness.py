"""Connections lost while idle, and servers that are no longer the primary."""

from __future__ import annotations

import select
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import InternalError, connection, transaction

from apikeys.models import User
from infra_service.lib.database.connecting import with_defaults
from tests.support.committed import (
    backend_pid,
    db,  # noqa: F401 - a fixture
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no pool")


@pytest.fixture
def administrator(db: None) -> Iterator[Any]:  # noqa: F811 - the fixture
    """A connection outside the pool."""
    parameters = connection.get_connection_params()
    names = ("dbname", "host", "port", "user", "password")
    given = {name: parameters[name] for name in names if parameters.get(name)}
    with psycopg.connect(**given, autocommit=True) as one:
        yield one


def idle_pids(administrator: Any) -> set[int]:
    query = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle'"
        " AND pid <> pg_backend_pid()"
    )
    return {pid for (pid,) in administrator.execute(query)}


def ended(administrator: Any, pid: int) -> bool:
    query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
    return administrator.execute(query, [pid]).fetchone() is None


def wait_until_closed(one: Any) -> None:
    """Wait until the end of a server process has reached the socket of its connection."""
    poll = select.poll()
    poll.register(one.fileno(), select.POLLRDHUP)
    wait_until(lambda: poll.poll(0))


def test_terminated_connection_in_the_pool_is_replaced(administrator: Any) -> None:
    backend_pid()  # opens the pool, which may open another connection in the meantime
    one = connection.pool.getconn()
    pid = one.info.backend_pid
    connection.pool.putconn(one)
    administrator.execute("SELECT pg_terminate_backend(%s)", [pid])
    wait_until_closed(one)

    assert User.objects.count() == 0
    assert pid not in {backend_pid() for _ in range(4)}


def test_lost_connection_empties_the_pool(administrator: Any) -> None:
    """Other connections may be dead too without reporting an error."""
    backend_pid()  # opens the pool
    pool = connection.pool
    mine, other = pool.getconn(), pool.getconn()
    pids = {mine.info.backend_pid, other.info.backend_pid}
    pool.putconn(mine)
    pool.putconn(other)
    administrator.execute("SELECT pg_terminate_backend(%s)", [mine.info.backend_pid])
    wait_until_closed(mine)

    seen = {backend_pid() for _ in range(4)}

    assert not seen & pids
    wait_until(lambda: not idle_pids(administrator) & pids)


def test_a_server_that_takes_no_writes_is_left(administrator: Any) -> None:
    """After a switch of roles the old connections still read."""
    pids = []

    @transaction.atomic
    def write_where_nothing_is_taken() -> None:
        pids.append(backend_pid())
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        User.objects.create(username="ada")

    with pytest.raises(InternalError, match="read-only"):
        write_where_nothing_is_taken()

    User.objects.create(username="ada")
    wait_until(lambda: ended(administrator, pids[0]))


def test_a_notice_is_no_loss(administrator: Any) -> None:
    """Words that arrive in the pool are read, and the connection stays."""
    pids = {backend_pid() for _ in range(3)}
    with connection.cursor() as cursor:
        cursor.execute("LISTEN anything")
    administrator.execute("NOTIFY anything")

    assert {backend_pid() for _ in range(3)} <= pids | idle_pids(administrator)
    assert all(not ended(administrator, pid) for pid in pids)


def test_options_have_defaults_that_the_address_changes() -> None:
    options = settings.DATABASES["default"]["OPTIONS"]
    assert (options["connect_timeout"], options["target_session_attrs"]) == (3, "read-write")
    assert options["tcp_user_timeout"] == 6000

    changed = with_defaults({"connect_timeout": 9, "sslmode": "require"})

    assert (changed["connect_timeout"], changed["keepalives_idle"]) == (9, 3)
    assert changed["sslmode"] == "require"
