"""DELETE /api/v1/states/{id}."""

import uuid

from apikeys.models import AuditEvent
from states.models import StateVersion
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import Backend, document


def test_it_is_hidden_and_its_history_stays(admin: Backend) -> None:
    admin.push(document())

    response = admin.client.delete(admin.root)

    assert (response.status_code, response.content) == (204, b"")
    assert admin.get().status_code == 404
    assert StateVersion.objects.count() == 1
    event = AuditEvent.objects.get(action="state.delete")
    assert (event.resource_id, event.details) == (str(admin.record.pk), {"version": 1})


def test_locked_state_is_not_deleted(admin: Backend, lock_id: uuid.UUID) -> None:
    admin.push(document())
    admin.lock(lock_id)

    response = admin.client.delete(admin.root)

    assert (response.status_code, error_reason(response)) == (423, "STATE_LOCKED")
    assert response.json()["ID"] == str(lock_id)


def test_second_deletion_is_not_found(admin: Backend) -> None:
    admin.push(document())
    admin.client.delete(admin.root)

    response = admin.client.delete(admin.root)

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")


def test_needs_its_scope(backend: Backend) -> None:
    backend.push(document())

    response = backend.client.delete(backend.root)

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_state_outside_the_binding_returns_404(backend: Backend, client_with: ClientWith) -> None:
    backend.push(document())
    elsewhere = client_with("state:admin", bound_component_ids=[str(uuid.uuid4())])

    response = elsewhere.delete(backend.root)

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")
    assert backend.get().status_code == 200
