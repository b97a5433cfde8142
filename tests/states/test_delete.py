"""DELETE on the state backend, and the state's life after it."""

import uuid
from typing import Any

from apikeys.actors import Actor
from apikeys.models import AuditEvent
from states.models import StateVersion
from states.targets import StateTarget
from tests.conftest import error_reason
from tests.states.conftest import Backend, document


def test_delete_hides_the_state_and_keeps_its_history(admin: Backend) -> None:
    admin.push(document())

    response = admin.delete()

    assert (response.status_code, response.content) == (200, b"")
    assert admin.get().status_code == 404
    assert admin.record.deleted_at is not None
    assert StateVersion.objects.count() == 1
    event = AuditEvent.objects.get(action="state.delete")
    assert event.details == {"version": 1}


def test_a_push_revives_it(admin: Backend) -> None:
    admin.push(document(7))
    admin.delete()

    assert admin.push(document(1, lineage="another")).status_code == 200

    state = admin.record
    assert (state.deleted_at, state.serial, state.version_number) == (None, 1, 2)
    assert admin.get().content == document(1, lineage="another")


def test_push_of_the_same_document_restores_the_state(admin: Backend) -> None:
    admin.push(document(7))
    admin.delete()

    assert admin.push(document(7)).status_code == 200

    assert admin.get().content == document(7)


def test_a_deleted_state_can_be_locked_first(admin: Backend, lock_id: uuid.UUID) -> None:
    admin.push(document(7))
    admin.delete()

    assert admin.lock(lock_id).status_code == 200
    assert admin.get().status_code == 404
    assert admin.push(document(1), f"?ID={lock_id}").status_code == 200
    assert admin.get().content == document(1)


def test_unknown_state_returns_404(admin: Backend) -> None:
    response = admin.delete()

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")


def test_second_deletion_is_not_found(admin: Backend) -> None:
    admin.push(document())
    admin.delete()

    assert admin.delete().status_code == 404


def test_a_locked_state_stays(admin: Backend, lock_id: uuid.UUID) -> None:
    admin.push(document())
    admin.lock(lock_id)

    response = admin.delete()

    assert (response.status_code, error_reason(response)) == (423, "STATE_LOCKED")
    assert response.json()["ID"] == str(lock_id)
    assert admin.get().status_code == 200


def test_needs_its_scope(backend: Backend) -> None:
    backend.push(document())

    response = backend.delete()

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_delete_checks_again_after_losing_a_race(
    admin: Backend, lock_id: uuid.UUID, monkeypatch: Any
) -> None:
    """A lock acquired after the deletion's check makes its compare-and-swap fail."""
    admin.push(document())
    state = admin.record
    before = StateTarget.of(state).find(Actor(name="test"))
    assert before is not None
    admin.lock(lock_id)
    real, reads = StateTarget.find, iter([before])
    monkeypatch.setattr(StateTarget, "find", lambda *given: next(reads, None) or real(*given))

    assert admin.delete().status_code == 423
