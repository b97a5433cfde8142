"""POST /api/v1/states/{id}:force-unlock."""

import uuid
from typing import Any

import pytest

from apikeys.models import AuditEvent
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import Backend, document


def test_force_unlock_releases_the_lock_and_audits_its_holder(
    admin: Backend, lock_id: uuid.UUID
) -> None:
    admin.push(document())
    admin.lock(lock_id)

    response = admin.call(":force-unlock", {"reason": " the laptop is lost "})

    assert response.status_code == 200
    assert response.json() == admin.look().json()
    assert "lock" not in response.json()["state"]
    event = AuditEvent.objects.get(action="state.force_unlock")
    assert event.details == {
        "reason": "the laptop is lost",
        "lock": {
            "who": "ada@laptop",
            "operation": "OperationTypeApply",
            "created": "2026-11-21T06:50:11.123456789Z",
            "taken_by": {"name": event.actor_name, "token_id": event.token_id},
        },
    }
    assert str(lock_id) not in str(event.details)


def test_expected_lock_is_released(admin: Backend, lock_id: uuid.UUID) -> None:
    admin.lock(lock_id)

    response = admin.call(":force-unlock", {"reason": "x", "lock_id": str(lock_id)})

    assert response.status_code == 200
    assert admin.record.lock_id is None


def test_another_lock_is_not_broken(admin: Backend, lock_id: uuid.UUID) -> None:
    admin.lock(lock_id)

    response = admin.call(":force-unlock", {"reason": "x", "lock_id": str(uuid.uuid4())})

    assert (response.status_code, error_reason(response)) == (409, "LOCK_NOT_HELD")
    assert admin.record.lock_id == lock_id


def test_unlocked_state_is_unchanged(admin: Backend) -> None:
    admin.push(document())

    response = admin.call(":force-unlock/", {"reason": "x"})

    assert response.status_code == 200
    assert not AuditEvent.objects.filter(action="state.force_unlock").exists()


@pytest.mark.parametrize(
    ("body", "field", "reason"),
    [
        ({}, "reason", "REQUIRED"),
        ({"reason": ""}, "reason", "BLANK"),
        ({"reason": "  "}, "reason", "BLANK"),
        ({"reason": None}, "reason", "NULL"),
        ({"reason": 5}, "reason", "INVALID"),
        ({"reason": "x" * 1001}, "reason", "MAX_LENGTH"),
        ({"reason": "x", "lock_id": "y"}, "lock_id", "INVALID"),
        ({"reason": "x", "lock_id": False}, "lock_id", "INVALID"),
        ({"reason": "x", "lock_id": 0}, "lock_id", "INVALID"),
        ({"reason": "x", "force": True}, "force", "UNKNOWN_FIELD"),
    ],
)
def test_invalid_bodies_are_rejected(
    admin: Backend, lock_id: uuid.UUID, body: Any, field: str, reason: str
) -> None:
    admin.lock(lock_id)

    response = admin.call(":force-unlock", body)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    (violation,) = response.json()["error"]["details"][1]["field_violations"]
    assert (violation["field"], violation["reason"]) == (field, reason)
    assert admin.record.lock_id == lock_id


def test_needs_its_scope(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)

    response = backend.call(":force-unlock", {"reason": "x"})

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_state_outside_the_binding_returns_404(
    backend: Backend, client_with: ClientWith, lock_id: uuid.UUID
) -> None:
    backend.lock(lock_id)
    elsewhere = client_with("state:admin", bound_environment_ids=[str(uuid.uuid4())])

    response = backend.as_client(elsewhere).call(":force-unlock", {"reason": "x"})

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")
    assert backend.record.lock_id == lock_id
