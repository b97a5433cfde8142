"""A pool that gives no connection in time: its connections are in use, or none can be opened."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import Error, connection
from django.db.utils import ConnectionHandler
from environ import Env

from infra_service.database.failures import (
    DatabaseBusy,
    DatabaseFailure,
    DatabaseUnavailable,
    failure_of,
)
from tests import postgres

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has no pool of connections"
)
_ALIAS = "elsewhere"


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """A server that can be stopped."""
    with postgres.running() as running:
        yield running


@pytest.fixture
def handler(server: postgres.Server, django_db_blocker: Any) -> Iterator[ConnectionHandler]:
    """Connections to it; the pool has room for one."""
    ours = connection.settings_dict
    pool = {"min_size": 1, "max_size": 1, "timeout": 0.5}
    there = Env.db_url_config(server.url)
    there |= {"ENGINE": ours["ENGINE"], "OPTIONS": {**ours["OPTIONS"], "pool": pool}}
    handler = ConnectionHandler({"default": {}, _ALIAS: there})
    wrapper: Any = handler[_ALIAS]
    with django_db_blocker.unblock():  # it is not the tests' database
        assert value(wrapper) == 1
        yield handler
    wrapper.close()
    wrapper.close_pool()


def value(wrapper: Any) -> Any:
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()[0]


def failure(handler: ConnectionHandler) -> DatabaseFailure | None:
    """Return what a statement says of the database."""
    with pytest.raises(Error) as raised:
        value(handler[_ALIAS])
    return failure_of(raised.value)


@contextlib.contextmanager
def held(handler: ConnectionHandler) -> Iterator[None]:
    """Use the only connection, in another thread, for as long as the block."""
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with contextlib.closing(handler[_ALIAS]) as wrapper, wrapper.cursor() as cursor:
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


def test_all_in_use(handler: ConnectionHandler) -> None:
    with held(handler):
        assert isinstance(failure(handler), DatabaseBusy)
    assert value(handler[_ALIAS]) == 1


def test_none_can_be_opened(handler: ConnectionHandler, server: postgres.Server) -> None:
    """The pool counts those, too, that it only tries to open."""
    server.stop()
    try:
        assert isinstance(failure(handler), DatabaseUnavailable)
    finally:
        server.start()


def test_all_in_use_since_nothing_answers(
    handler: ConnectionHandler, server: postgres.Server
) -> None:
    """Whoever waits for a connection is not told that others are at work, when none are."""
    wrapper: Any = handler[_ALIAS]
    with held(handler):
        server.freeze()
        try:
            threading.Timer(0.1, wrapper.watch.suspect).start()
            assert isinstance(failure(handler), DatabaseUnavailable)
        finally:
            server.thaw()
