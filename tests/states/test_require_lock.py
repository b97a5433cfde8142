"""An environment that demands a lock for every push."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from apikeys.models import AuditEvent
from states.models import Component, Environment, StateVersion
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import Backend, document
from tests.states.test_named import Named

ENVIRONMENTS = "/api/v1/environments"


@pytest.fixture
def client(client_with: ClientWith) -> ApiClient:
    return client_with("state:read", "state:write", "state:admin")


@pytest.fixture(params=["by-ids", "network/prod", "shop/network/prod"])
def strict(request: pytest.FixtureRequest, client: ApiClient) -> Backend:
    """The address of a state in an environment that demands a lock; nothing is stored there."""
    environment = Environment.objects.create(name="prod", slug="prod", require_lock=True)
    if request.param != "by-ids":
        return Named(client, request.param)
    backend = Backend(client)
    backend.environment_id = environment.pk
    return backend


def refused(answer: Any) -> str:
    """Return the message of the refusal."""
    assert (answer.status_code, error_reason(answer)) == (409, "LOCK_REQUIRED")
    return str(answer.json()["error"]["message"])


@pytest.mark.parametrize("query", ["", "?force=true"])
def test_a_push_without_a_lock_is_refused(strict: Backend, lock_id: uuid.UUID, query: str) -> None:
    """Also the first push, a forced push, and a push of the current document."""
    assert "lock_address" in refused(strict.push(document(1), query))
    strict.lock(lock_id)
    assert strict.push(document(1), query).status_code == 423
    assert strict.push(document(1), f"?ID={lock_id}").status_code == 200
    assert strict.unlock(lock_id).status_code == 200

    for serial in (1, 2):
        refused(strict.push(document(serial), query))
    assert strict.push(document(2), f"?ID={lock_id}").json()["error"]["message"]
    assert strict.get().content == document(1)
    assert StateVersion.objects.count() == 1
    assert AuditEvent.objects.filter(action="state.push").count() == 1


def test_force_unlocked_lock_does_not_allow_a_push(strict: Backend, lock_id: uuid.UUID) -> None:
    strict.lock(lock_id)
    assert strict.unlock(None).status_code == 200  # terraform force-unlock

    broken = strict.push(document(1), f"?ID={lock_id}")
    assert (broken.status_code, error_reason(broken)) == (409, "LOCK_NOT_HELD")
    refused(strict.push(document(1)))


def test_restore_and_deletion_need_no_lock(strict: Backend, lock_id: uuid.UUID) -> None:
    """A restore and a deletion are single writes, and are refused while the state is locked."""
    strict.lock(lock_id)
    for serial in (1, 2):
        strict.push(document(serial, outputs={str(serial): {}}), f"?ID={lock_id}")
    assert strict.call("/versions/1:restore").status_code == 423
    strict.unlock(lock_id)

    assert strict.call("/versions/1:restore").status_code == 200
    assert strict.record.serial == 3
    assert strict.delete().status_code == 200
    assert strict.call(":undelete").status_code == 200
    assert strict.get().status_code == 200


def test_from_the_next_push_on(backend: Backend, client: ApiClient) -> None:
    assert backend.push(document(1)).status_code == 200
    path = f"{ENVIRONMENTS}/{backend.environment_id}"
    for demanded in (True, False):
        body = {"environment": {"require_lock": demanded}, "update_mask": "require_lock"}
        shown = client.send("PATCH", path, body).json()["environment"]
        assert shown["require_lock"] is demanded
        answer = backend.push(document(2))
        assert answer.status_code == (409 if demanded else 200)

    events = AuditEvent.objects.filter(action="environment.update").order_by("id")
    assert [event.details for event in events] == [
        {"require_lock": {"from": before, "to": not before}} for before in (False, True)
    ]


def test_other_environments_do_not_demand_it(strict: Backend) -> None:
    component = Component.objects.create(name="network", slug="network")
    other = Backend(strict.client)
    other.component_id = component.pk

    assert other.push(document(1)).status_code == 200


def test_create_and_list(client: ApiClient) -> None:
    created = {}
    for name, given in {"prod": {"require_lock": True}, "dev": {}}.items():
        fields = {"name": name, **given}
        answer = client.send("POST", ENVIRONMENTS, {"environment": fields})
        assert answer.status_code == 201
        created[name] = answer.json()["environment"]["require_lock"]
    assert created == {"prod": True, "dev": False}

    for demanded, name in ((True, "prod"), (False, "dev")):
        text = f"field['require_lock'] = '{str(demanded).lower()}'"
        items = client.items(ENVIRONMENTS, "environments", filter=text)
        assert [item["name"] for item in items] == [name]
    event = AuditEvent.objects.filter(action="environment.create").order_by("id")[0]
    assert event.details == {"name": "prod", "slug": "prod", "require_lock": True}


@pytest.mark.parametrize("odd", ["true", 1, None, []])
def test_it_is_true_or_false(client: ApiClient, odd: Any) -> None:
    for body in ({"name": "a", "require_lock": odd}, {"name": "a", "require_lock": False}):
        answer = client.send("POST", ENVIRONMENTS, {"environment": body})
        assert answer.status_code == (201 if body["require_lock"] is False else 400)
