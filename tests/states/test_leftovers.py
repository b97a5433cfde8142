"""Records of states that were never pushed: an aborted run leaves none, unless they are in use."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from apikeys.actors import Actor
from apikeys.bindings import Binding
from states.actions import locks, removal, workspaces
from states.models import Application, Component, Environment, State
from states.targets import StateTarget
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import UnsteadyStorage, document
from tests.states.test_named import ALL, Named

pytestmark = pytest.mark.both


@pytest.fixture
def named(client_with: ClientWith) -> Named:
    return Named(client_with(*ALL), "shop/network/prod")


def assert_nothing_is_left() -> None:
    for model in (State, Component, Application, Environment):
        assert not model._default_manager.exists()


def test_rejected_first_push_leaves_no_records(named: Named, lock_id: uuid.UUID) -> None:
    refused = named.push(document(1), f"?ID={lock_id}")
    assert (refused.status_code, error_reason(refused)) == (409, "LOCK_NOT_HELD")
    assert_nothing_is_left()


def test_rejected_push_without_a_required_lock_leaves_no_records(named: Named) -> None:
    Environment.objects.create(name="prod", slug="prod", require_lock=True)
    refused = named.push(document(1))
    assert (refused.status_code, error_reason(refused)) == (409, "LOCK_REQUIRED")
    assert not State.objects.exists()
    assert not Component.objects.exists()
    assert Environment.objects.exists()


def test_first_push_without_the_object_store_leaves_no_records(
    named: Named, store: UnsteadyStorage, lock_id: uuid.UUID
) -> None:
    store.failing = True
    assert named.push(document(1)).status_code == 503
    assert_nothing_is_left()
    # The owner of a lock can repeat the push.
    named.lock(lock_id)
    assert named.push(document(1), f"?ID={lock_id}").status_code == 503
    store.failing = False
    assert named.push(document(1), f"?ID={lock_id}").status_code == 200


def test_unlock_after_a_force_unlock_leaves_no_records(named: Named, lock_id: uuid.UUID) -> None:
    """The owner's UNLOCK removes the records, although the lock is already released."""
    named.lock(lock_id)
    forced = named.client.send(
        "POST", f"/api/v1/states/{named.record.pk}:force-unlock", {"reason": "the laptop is lost"}
    )
    assert forced.status_code == 200
    assert named.unlock(lock_id).status_code == 200
    assert_nothing_is_left()


def test_unlock_after_a_crash_leaves_no_records(
    named: Named, lock_id: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first UNLOCK releases the lock, and the service stops before it removes the records."""

    def crash(*_: Any) -> None:
        raise SystemExit

    named.lock(lock_id)
    with monkeypatch.context() as patch:
        patch.setattr(locks, "unregister", crash)
        with pytest.raises(SystemExit):
            named.unlock(lock_id)
    assert named.record.lock_id is None
    assert named.unlock(lock_id).status_code == 200
    assert_nothing_is_left()


@pytest.mark.parametrize("model", [Component, Environment, Application])
def test_entries_in_a_binding_stay(
    named: Named, lock_id: uuid.UUID, client_with: ClientWith, model: Any
) -> None:
    """After a new registration, the entry would have another id, which the binding lacks."""
    named.lock(lock_id)
    kind, bound_id = model._meta.model_name, model._default_manager.get().pk
    binding = Binding(**{f"{kind}_ids": frozenset({bound_id})})
    bound = client_with(*ALL, **binding.columns())
    assert named.unlock(lock_id).status_code == 200
    assert not State.objects.exists()
    assert model._default_manager.get().pk == bound_id
    assert named.as_client(bound).push(document(1)).status_code == 200


def test_workspace_that_is_created_during_the_unlock_stays(
    named: Named, lock_id: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    named.lock(lock_id)
    real: Callable[..., Any] = removal.remove_empty

    def remove_empty(state: State, *args: Any, **details: Any) -> bool:
        target = StateTarget.of(state)
        workspaces.create(target=target, name="network-prod", tags={}, actor=Actor(name="test"))
        return bool(real(state, *args, **details))

    monkeypatch.setattr(removal, "remove_empty", remove_empty)
    assert named.unlock(lock_id).status_code == 200
    assert named.record.workspace is not None
