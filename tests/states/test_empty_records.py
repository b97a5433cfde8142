"""Removal of states without versions, and of catalogue entries without states."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db.models import F

from apikeys.actors import Actor
from apikeys.models import AuditEvent
from states.actions import catalogue, claims, removal
from states.models import Application, Component, Environment, SlugClaim, State
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import Backend, document
from tests.states.test_catalogue import KINDS, path
from tests.states.test_named import Named

every_kind = pytest.mark.parametrize("kind", KINDS)
ACTOR = Actor(name="test")


@pytest.fixture
def client(client_with: ClientWith) -> ApiClient:
    return client_with("state:read", "state:write", "state:admin")


def counts() -> list[int]:
    kept = (State, Application, Component, Environment, SlugClaim)
    return [model._default_manager.count() for model in kept]


@pytest.mark.parametrize("names", ["network/prod", "shop/network/prod", None])
@pytest.mark.parametrize("forced", [False, True])
def test_lock_and_unlock_leave_no_records(
    client: ApiClient, names: str | None, lock_id: uuid.UUID, *, forced: bool
) -> None:
    backend = Backend(client) if names is None else Named(client, names)
    assert backend.lock(lock_id).status_code == 200
    state_id = backend.record.pk

    assert backend.unlock(None if forced else lock_id).status_code == 200

    assert counts() == [0] * 5
    actions = AuditEvent.objects.filter(resource_id=str(state_id)).order_by("pk")
    unlock = "state.force_unlock" if forced else "state.unlock"
    assert [event.action for event in actions] == [
        "state.create",
        "state.lock",
        unlock,
        "state.delete",
    ]
    assert AuditEvent.objects.get(action="state.delete").details == {"version": 0}
    assert backend.unlock(lock_id).status_code == 200
    assert backend.push(document()).status_code == 200


def test_entries_that_existed_before_stay(client: ApiClient, lock_id: uuid.UUID) -> None:
    Component.objects.create(name="network", slug="network")
    Named(client, "network/prod").push(document())
    typing_error = Named(client, "netwrok/prod")
    typing_error.lock(lock_id)

    typing_error.unlock(lock_id)

    assert Component.objects.get().slug == "network"
    assert Environment.objects.get().slug == "prod"


def test_an_entry_that_another_state_uses_stays(client: ApiClient, lock_id: uuid.UUID) -> None:
    first = Named(client, "network/prod")
    first.lock(lock_id)
    Named(client, "network/staging").push(document())

    first.unlock(lock_id)

    assert Component.objects.get().slug == "network"
    assert Environment.objects.get().slug == "staging"


def test_an_entry_that_was_changed_since_stays(client: ApiClient, lock_id: uuid.UUID) -> None:
    backend = Named(client, "network/prod")
    backend.lock(lock_id)
    Environment.objects.update(updated_at=F("updated_at") + dt.timedelta(seconds=2))

    backend.unlock(lock_id)

    assert counts() == [0, 0, 0, 1, 1]


def test_a_pushed_state_stays(client: ApiClient, lock_id: uuid.UUID) -> None:
    backend = Named(client, "network/prod")
    backend.lock(lock_id)
    backend.push(document(), f"?ID={lock_id}")

    backend.unlock(lock_id)

    assert backend.get().status_code == 200


def test_state_without_versions_is_deleted(client: ApiClient, lock_id: uuid.UUID) -> None:
    backend = Named(client, "network/prod")
    backend.lock(lock_id)
    root = backend.root
    assert error_reason(client.delete(root)) == "STATE_LOCKED"
    assert backend.look().status_code == 200
    assert client.send("POST", f"{root}:force-unlock", {"reason": "a test"}).status_code == 200

    assert client.delete(root).status_code == 204

    assert State.objects.count() == 0
    assert client.delete(root).status_code == 404
    assert AuditEvent.objects.get(action="state.delete").details == {"version": 0}


@every_kind
def test_unused_entry_is_deleted(client: ApiClient, kind: str) -> None:
    entry: Any = catalogue.create(model=KINDS[kind], fields={"name": "old"}, actor=ACTOR)
    catalogue.change(model=KINDS[kind], entry_id=entry.pk, changes={"slug": "newer"}, actor=ACTOR)

    assert client.delete(path(kind, entry)).status_code == 204

    assert not KINDS[kind]._default_manager.exists()
    assert not SlugClaim.objects.exists()
    event = AuditEvent.objects.get(action=f"{kind}.delete")
    assert (event.resource_id, event.details) == (str(entry.pk), {"name": "old", "slug": "newer"})
    assert client.delete(path(kind, entry)).status_code == 404


@every_kind
@pytest.mark.parametrize("deleted", [False, True])
def test_a_used_entry_stays(client: ApiClient, kind: str, *, deleted: bool) -> None:
    backend = Named(client, "shop/network/prod")
    backend.push(document())
    if deleted:
        backend.delete()
    entry = KINDS[kind]._default_manager.get()

    response = client.delete(path(kind, entry))

    assert (response.status_code, error_reason(response)) == (409, "ENTRY_IN_USE")
    assert KINDS[kind]._default_manager.exists()


def test_an_application_with_a_component_stays(client: ApiClient) -> None:
    shop = Application.objects.create(name="shop", slug="shop")
    Component.objects.create(name="web", slug="web", application=shop)

    response = client.delete(path("application", shop))

    assert error_reason(response) == "ENTRY_IN_USE"
    assert 'The application "shop" still has components.' in response.json()["error"]["message"]


def test_a_bound_token_deletes_only_its_own_entries(client_with: ClientWith) -> None:
    component = Component.objects.create(name="web", slug="web")
    environment = Environment.objects.create(name="prod", slug="prod")
    bound = client_with(
        "state:read", "state:admin",
        bound_component_ids=[str(component.pk)], bound_environment_ids=[str(environment.pk)],
    )  # fmt: skip

    for kind, entry in (("component", component), ("environment", environment)):
        assert error_reason(bound.delete(path(kind, entry))) == "BINDING_INSUFFICIENT"


@every_kind
def test_entry_deleted_during_a_registration_is_created_again(
    client: ApiClient, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registration starts again. Here it also takes back the deletion, which is within it."""
    entry: Any = catalogue.create(
        model=KINDS[kind],
        fields={"name": {"application": "shop", "component": "web", "environment": "prod"}[kind]},
        actor=ACTOR,
    )
    real, deletions = claims.claim_if_free, []

    def claim_if_free(named: Any) -> uuid.UUID | None:
        found = real(named)
        if found == entry.pk and not deletions:
            deletions.append(found)
            removal._delete(KINDS[kind]._default_manager.get(pk=found))
        return found

    monkeypatch.setattr(claims, "claim_if_free", claim_if_free)

    names = "shop/api/prod" if kind == "application" else "web/prod"
    assert Named(client, names).push(document()).status_code == 200

    assert deletions == [entry.pk]
    assert State.objects.get().version_number == 1
