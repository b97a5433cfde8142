"""The command index_states."""

from __future__ import annotations

import io
import json
import os
import signal
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DataError, InternalError, OperationalError, connection

from states.management.commands import index_states
from states.models import State, StateVersion
from states.resources import indexing
from tests.states.conftest import Backend, UnsteadyStorage
from tests.states.indexed import addresses, with_things
from tests.states.samples import ENCRYPTED
from tests.support.terminal import Terminal


def _index(**options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("index_states", stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_outcome_is_reported(backend: Backend) -> None:
    backend.push(with_things(1, a="i-a", b="i-b"))
    bad = Backend(backend.client)
    bad.push(ENCRYPTED)

    out, err = _index()

    assert out == "2 states indexed, with 2 resources; 1 cannot be read\n"
    assert err == f"{bad.record.pk} 1 STATE_ENCRYPTED\n"
    assert json.loads(_index(json=True)[0]) == {"indexed": 0, "resources": 0, "problems": []}
    again = json.loads(_index(json=True, all=True)[0])
    assert (again["indexed"], again["resources"]) == (2, 2)
    assert again["problems"] == [
        {"state": str(bad.record.pk), "version": 1, "problem": "STATE_ENCRYPTED"}
    ]


def test_progress_is_shown(backend: Backend, each_count_is_drawn: None) -> None:
    for _ in range(3):
        Backend(backend.client).push(with_things(1, a="i-a"))
    terminal = Terminal()

    call_command("index_states", stdout=io.StringIO(), stderr=terminal)

    assert " 3 of 3, " in terminal.drawn[-1]


def test_the_object_store_is_away(backend: Backend, store: UnsteadyStorage) -> None:
    for _ in range(3):
        Backend(backend.client).push(with_things(1, a="i-a"))
    store.failing = True

    with pytest.raises(CommandError, match="stopped after 0 states"):
        _index()


def test_store_fails_for_a_single_document(
    backend: Backend, store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = first_of_three(backend)
    object_name = StateVersion.objects.get(state_id=refused).object_name
    real = UnsteadyStorage.open

    def open_others(self: UnsteadyStorage, name: str, mode: str = "rb") -> Any:
        if name == object_name:
            raise PermissionError("denied")
        return real(self, name, mode)

    monkeypatch.setattr(UnsteadyStorage, "open", open_others)

    with pytest.raises(CommandError, match="2 states indexed; 1 failed, and the rest succeeded"):
        _index()
    assert len(addresses()) == 2


def first_of_three(backend: Backend) -> Any:
    """Push three states and return the ID of the state that is indexed first."""
    for _ in range(3):
        Backend(backend.client).push(with_things(1, a="i-a"))
    return State.objects.earliest("pk").pk


@pytest.mark.parametrize("error", [ValueError("unforeseen"), DataError("too long")])
def test_error_in_a_state_does_not_stop_the_pass(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It is not tried again before the state changes."""
    refused = first_of_three(backend)
    real = indexing.write_entries

    def write(state: State, resources: Any) -> None:
        if state.pk == refused and resources:
            raise error
        real(state, resources)

    monkeypatch.setattr(indexing, "write_entries", write)

    out, err = _index()

    assert out == "3 states indexed, with 2 resources; 1 cannot be read\n"
    assert err == f"{refused} 1 UNEXPECTED\n"
    assert json.loads(_index(json=True)[0]) == {"indexed": 0, "resources": 0, "problems": []}


class DamagedPageError(Exception):
    """The exception of the driver for a page that the database cannot read."""

    sqlstate = "XX001"


def test_failure_of_the_database_is_no_failure_of_the_document(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL reports some failures, such as a full quota, as internal errors."""
    refused = first_of_three(backend)
    real, attempts = indexing.write_entries, iter([InternalError("damaged page")])

    def write(state: State, resources: Any) -> None:
        if state.pk == refused and (error := next(attempts, None)):
            raise error from DamagedPageError
        real(state, resources)

    monkeypatch.setattr(indexing, "write_entries", write)

    with pytest.raises(CommandError, match="2 states indexed; 1 failed, and the rest succeeded"):
        _index()

    assert len(addresses()) == 2
    assert _index()[0] == "1 state indexed, with 1 resource; 0 cannot be read\n"


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), KeyError("unforeseen")])
def test_watch_survives_an_error_in_a_state(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    refused = first_of_three(backend)
    real, looks = indexing._replace, iter(range(3))

    def fail(state: State, read: Any) -> bool:
        if state.pk == refused:
            if next(looks, None) is None:
                os.kill(os.getpid(), signal.SIGTERM)
            raise error
        return real(state, read)

    monkeypatch.setattr(indexing, "_replace", fail)
    monkeypatch.setattr(index_states, "_RETRY_SECONDS", 0)
    monkeypatch.setattr(connection, "close", lambda: None)

    _, err = _index(watch=True, interval=0.001)

    assert set(err.splitlines()) == {
        "waiting: 1 failed, and the rest succeeded; the log lists the failures"
    }
    assert len(addresses()) == 2


def test_interval_of_zero_is_rejected() -> None:
    with pytest.raises(CommandError, match="greater than 0"):
        _index(interval=0)


@pytest.mark.parametrize("error", [OperationalError("away"), AttributeError("away")])
def test_a_watch_goes_on_after_a_failure(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    backend.push(with_things(1, a="i-a"))
    real, looks = indexing.index_due, iter(["fails", "works", "ends"])

    def due_then() -> Any:
        look = next(looks, "works")
        if look == "fails":
            raise error
        if look == "ends":
            os.kill(os.getpid(), signal.SIGTERM)
        return real()

    monkeypatch.setattr(indexing, "index_due", due_then)
    monkeypatch.setattr(index_states, "_RETRY_SECONDS", 0)
    monkeypatch.setattr(connection, "close", lambda: None)

    out, err = _index(watch=True, interval=0.001)

    assert (out, err) == ("", "waiting: away\n")
    assert addresses() == ["thing.a"]
