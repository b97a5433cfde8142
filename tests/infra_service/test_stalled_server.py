"""A server that accepts data and never answers: requests time out quickly."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connection

from infra_service.lib.database.deadline import within
from infra_service.lib.database.postgresql import stalled_server
from infra_service.lib.database.postgresql.stalled_server import Watch, WatchedConnection
from tests.support.waiting import MAX_WAIT

on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="waits for a real PostgreSQL"
)


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server whose kernel accepts connections without any process to serve them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def watch(listener: socket.socket) -> Watch:
    return Watch({"host": "127.0.0.1", "port": listener.getsockname()[1]})


def connections(listener: socket.socket) -> int:
    """Return how many connected since the last call."""
    count = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def test_failed_check_is_shared(silent: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalled_server, "_FRESH", 600)
    watching = watch(silent)
    watching.refuse_if_silent()  # no suspicion yet
    assert connections(silent) == 0

    assert not watching.answers()
    assert not watching.answers()
    for _ in range(3):
        with pytest.raises(psycopg.OperationalError, match="does not respond"):
            watching.refuse_if_silent()
    assert connections(silent) == 1


def test_requests_fail_without_waiting_during_a_check(silent: socket.socket) -> None:
    watching = watch(silent)
    watching.suspect()
    with watching._check_lock, pytest.raises(psycopg.OperationalError, match="does not respond"):
        watching.refuse_if_silent()
    assert connections(silent) == 0


@on_postgresql
def test_recovered_server_rejects_no_request(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests wait briefly for the first check; on a busy machine, it takes longer."""
    monkeypatch.setattr(stalled_server, "_MOMENT", MAX_WAIT)
    watching = Watch(connection.get_connection_params())
    watching.suspect()
    with ThreadPoolExecutor(8) as pool:
        for refused in [pool.submit(watching.refuse_if_silent) for _ in range(8)]:
            refused.result()


def test_a_refusal_is_an_answer(silent: socket.socket) -> None:
    watching = watch(silent)
    watching.suspect()
    silent.close()
    watching.refuse_if_silent()
    assert watching.answers()


class Reported(Watch):
    """A watch with given results, without connections."""

    def __init__(self, *answers: bool) -> None:
        self._answers = list(answers)

    def answers(self) -> bool:
        return self._answers.pop(0)


@pytest.fixture
def waiting(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[WatchedConnection]:
    monkeypatch.setattr(stalled_server, "TIMEOUT", 0.01)
    wrapper: Any = connection
    parameters = wrapper.get_connection_params()
    with WatchedConnection.connect(**parameters) as opened:
        process = opened.info.backend_pid
        yield opened
    with psycopg.connect(**parameters) as other:  # else the abandoned statement continues
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [process])


@on_postgresql
@pytest.mark.parametrize("limit", [(60, Reported(True, True, False)), (0.1, None)])
def test_a_statement_without_an_answer(waiting: WatchedConnection, limit: Any) -> None:
    waiting.limit(*limit)
    with pytest.raises(psycopg.OperationalError, match="does not respond"):
        waiting.execute("SELECT pg_sleep(60)")
    assert waiting.closed


@on_postgresql
def test_deadline_is_enforced(waiting: WatchedConnection) -> None:
    """The answer is given up, and its connection with it; a faster answer arrives."""
    began = time.monotonic()
    with within(20):
        waiting.execute("SELECT pg_sleep(0.3)")
    with pytest.raises(psycopg.OperationalError, match="does not respond"), within(0.3):
        waiting.execute("SELECT pg_sleep(60)")

    assert waiting.closed
    assert 0.6 <= time.monotonic() - began < 20


@on_postgresql
def test_long_statement_is_not_interrupted(waiting: WatchedConnection) -> None:
    answers = Reported(*[True] * 100_000)  # more than a busy machine asks for
    waiting.limit(60, answers)
    assert waiting.execute("SELECT pg_sleep(0.5), 7").fetchone() == ("", 7)
    assert len(answers._answers) < 100_000
    with pytest.raises(psycopg.errors.DivisionByZero):
        waiting.execute("SELECT 1/0")


@on_postgresql
def test_responding_server_is_not_interrupted(db: None) -> None:
    wrapper: Any = connection
    watching = Watch(wrapper.get_connection_params())
    watching.suspect()
    watching.refuse_if_silent()
    assert watching.answers()
