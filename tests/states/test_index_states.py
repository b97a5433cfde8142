"""The command index_states."""

from __future__ import annotations

import io
import json
import os
import signal
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from states.management.commands import index_states
from states.resources import indexing
from tests.states.conftest import Backend, UnsteadyStorage
from tests.states.indexed import addresses, with_things
from tests.states.samples import ENCRYPTED
from tests.terminal import Terminal


def _index(**options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("index_states", stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_outcome(backend: Backend) -> None:
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


def test_progress(backend: Backend, each_count_is_drawn: None) -> None:
    for _ in range(3):
        Backend(backend.client).push(with_things(1, a="i-a"))
    terminal = Terminal()

    call_command("index_states", stdout=io.StringIO(), stderr=terminal)

    assert " 3 of 3, " in terminal.drawn[-1]


def test_the_object_store_is_away(backend: Backend, store: UnsteadyStorage) -> None:
    backend.push(with_things(1, a="i-a"))
    store.failing = True

    with pytest.raises(CommandError, match="stopped after 0 states"):
        _index()


def test_an_interval_of_nothing() -> None:
    with pytest.raises(CommandError, match="more than 0"):
        _index(interval=0)


def test_a_watch_goes_on_after_a_failure(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    backend.push(with_things(1, a="i-a"))
    real, looks = indexing.index_due, iter(["fails", "works", "ends"])

    def due_then() -> Any:
        look = next(looks, "works")
        if look == "fails":
            raise OperationalError("away")
        if look == "ends":
            os.kill(os.getpid(), signal.SIGTERM)
        return real()

    monkeypatch.setattr(indexing, "index_due", due_then)
    monkeypatch.setattr(index_states, "_PATIENCE", 0)
    monkeypatch.setattr(connection, "close", lambda: None)

    out, err = _index(watch=True, interval=0.001)

    assert (out, err) == ("", "waiting: away\n")
    assert addresses() == ["thing.a"]
