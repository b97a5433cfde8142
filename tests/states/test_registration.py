"""Registration of a state while other clients delete what it has just read or written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from states.actions import catalogue
from states.errors import ApplicationNotFound
from states.models import Component, State
from tests.conftest import ClientWith
from tests.states.conftest import Backend, document
from tests.states.test_named import Named


def interrupted_once(real: Callable[..., Any], instead: Callable[[], Any]) -> Callable[..., Any]:
    """Return the function with another first call."""
    pending = [instead]

    def call(*args: Any, **given: Any) -> Any:
        return pending.pop()() if pending else real(*args, **given)

    return call


@pytest.mark.parametrize("model", [Component, State])
def test_a_record_that_is_deleted_meanwhile_is_registered_again(
    backend: Backend, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = interrupted_once(model.objects.bulk_create, lambda: None)
    monkeypatch.setattr(model.objects, "bulk_create", create)

    assert backend.push(document(1)).status_code == 200
    assert backend.record.version_number == 1


def test_an_application_that_is_deleted_meanwhile_is_registered_again(
    client_with: ClientWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[Any] = []
    real = catalogue.lock_entry

    def lock_entry(model: Any, entry_id: Any) -> None:
        locked.append(entry_id)
        if len(locked) == 1:
            raise ApplicationNotFound
        real(model, entry_id)

    monkeypatch.setattr(catalogue, "lock_entry", lock_entry)
    state = Named(client_with("state:read", "state:write"), "shop/network/prod")

    assert state.push(document(1)).status_code == 200
    assert locked[-1] == state.record.application_id
    assert len(locked) == 2
