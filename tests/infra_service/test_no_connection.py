"""Connection pool timeouts: all connections are in use, or the server cannot be reached."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import Error, connection
from django.db.utils import ConnectionHandler
from environ import Env

from infra_service.lib.database.failures import (
    DatabaseBusy,
    DatabaseFailure,
    DatabaseUnavailable,
    failure_of,
)
from tests.support import postgres

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has no pool of connections"
)

#: Returns the calling thread's own access to the database.
Wrapper = Callable[[], Any]


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    """A server that can be stopped."""
    with postgres.running() as running:
        yield running


@pytest.fixture
def wrapper(server: postgres.Server, django_db_blocker: Any) -> Iterator[Wrapper]:
    """Access to the server by a pool with a single connection."""
    ours = connection.settings_dict
    pool = {"min_size": 1, "max_size": 1, "timeout": 0.5}
    there = Env.db_url_config(server.url)
    there |= {"ENGINE": ours["ENGINE"], "OPTIONS": {**ours["OPTIONS"], "pool": pool}}
    # Pools and watches of silent servers are stored by alias.
    alias = f"port {server.port}"
    handler = ConnectionHandler({"default": {}, alias: there})
    with django_db_blocker.unblock():  # it is not the tests' database
        assert value(handler[alias]) == 1
        yield lambda: handler[alias]
    own: Any = handler[alias]
    own.close()
    own.close_pool()


def value(own: Any) -> Any:
    with own.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()[0]


def failure(wrapper: Wrapper) -> DatabaseFailure | None:
    """Return the failure of a statement."""
    with pytest.raises(Error) as raised:
        value(wrapper())
    return failure_of(raised.value)


@contextlib.contextmanager
def held(wrapper: Wrapper) -> Iterator[None]:
    """Use the only connection, in another thread, for as long as the block."""
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with contextlib.closing(wrapper()) as own, own.cursor() as cursor:
            cursor.execute("SELECT 1")
            is_held.set()
            may_end.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert is_held.wait(60)
        yield
    finally:
        may_end.set()
        holder.join()


def test_all_in_use(wrapper: Wrapper) -> None:
    with held(wrapper):
        assert isinstance(failure(wrapper), DatabaseBusy)
    assert value(wrapper()) == 1


def test_unreachable_server_gives_database_unavailable(
    wrapper: Wrapper, server: postgres.Server
) -> None:
    """The pool counts those, too, that it only tries to open."""
    server.stop()
    assert isinstance(failure(wrapper), DatabaseUnavailable)


def test_exhausted_pool_with_a_silent_server_gives_database_unavailable(
    wrapper: Wrapper, server: postgres.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error must not blame other requests when the server is silent."""
    own = wrapper()
    wait = own.pool.getconn

    def suspect_and_wait() -> Any:
        own.watch.suspect()  # as another thread does meanwhile
        return wait()

    with held(wrapper), server.frozen():
        monkeypatch.setattr(own.pool, "getconn", suspect_and_wait)
        assert isinstance(failure(wrapper), DatabaseUnavailable)
