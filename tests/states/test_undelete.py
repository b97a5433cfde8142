"""POST /api/v1/states/{id}:undelete."""

import uuid
from typing import Any

import pytest

from apikeys.models import AuditEvent
from states.actions import history
from states.models import State
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import Backend, document


def test_it_is_back_as_it_was(admin: Backend) -> None:
    admin.push(document(3))
    before = admin.look().json()["state"]
    admin.delete()

    response = admin.call(":undelete")

    assert response.status_code == 200
    assert {**response.json()["state"], "updated_at": None} == {**before, "updated_at": None}
    assert admin.get().content == document(3)
    event = AuditEvent.objects.get(action="state.undelete")
    assert event.details == {"version": 1}


def test_undelete_changes_a_single_state(admin: Backend) -> None:
    other = Backend(admin.client)
    for one in (other, admin):
        one.push(document())
        one.delete()
    before = admin.record.updated_at

    assert admin.call(":undelete").status_code == 200

    assert (admin.record.deleted_at, other.get().status_code) == (None, 404)
    assert admin.record.updated_at != before


def test_undeleting_an_existing_state_is_a_no_op(admin: Backend) -> None:
    admin.push(document())
    before = admin.look().json()

    response = admin.call(":undelete")

    assert (response.status_code, response.json()) == (200, before)
    assert not AuditEvent.objects.filter(action="state.undelete").exists()


def test_locked_state_is_not_undeleted(admin: Backend, lock_id: uuid.UUID) -> None:
    admin.push(document())
    admin.delete()
    admin.lock(lock_id)

    response = admin.call(":undelete")

    assert (response.status_code, error_reason(response)) == (423, "STATE_LOCKED")

    forced = admin.call(":force-unlock", {"reason": "the laptop is lost"})
    assert (forced.status_code, "lock" in forced.json()["state"]) == (200, False)
    assert admin.call(":undelete").status_code == 200


@pytest.mark.parametrize("state_id", [uuid.UUID(int=1), "x"])
def test_unknown_state_is_not_found(admin: Backend, state_id: object) -> None:
    response = admin.client.post(f"/api/v1/states/{state_id}:undelete", "{}", "application/json")

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")


def test_state_removed_in_the_meantime_is_not_found(
    admin: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.push(document())
    root = admin.root
    real = history.undelete
    monkeypatch.setattr(
        history, "undelete", lambda **given: real(**{**given, "state_id": uuid.uuid4()})
    )

    response = admin.client.post(f"{root}:undelete", "{}", "application/json")

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")


def test_persistent_conflict_returns_503(admin: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    admin.push(document())
    admin.delete()
    monkeypatch.setattr(type(State.objects.all()), "as_seen", lambda *_: State.objects.none())

    response = admin.call(":undelete")

    assert (response.status_code, error_reason(response)) == (503, "WRITE_CONFLICT")


def test_it_has_no_options(admin: Backend) -> None:
    admin.push(document())

    response = admin.call(":undelete", {"force": True})

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")


def test_needs_its_scope(backend: Backend) -> None:
    backend.push(document())

    response = backend.call(":undelete")

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_state_outside_the_binding_returns_404(
    backend: Backend, admin: Backend, client_with: ClientWith
) -> None:
    admin.push(document())
    admin.delete()
    binding: dict[str, Any] = {"bound_component_ids": [str(uuid.uuid4())]}

    response = backend.as_client(client_with("state:admin", **binding)).call(":undelete/")

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")
