"""POST /api/v1/states/{id}/versions/{number}:restore. With the real Terraform: tests/e2e."""

import hashlib
import json
import uuid
from typing import Any

import pytest

from apikeys.models import AuditEvent
from states.actions import history
from states.actions.push import append_version
from states.models import MAX_SERIAL, State, StateVersion
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import LINEAGE, Backend, document, seen
from tests.states.samples import ENCRYPTED


def test_restored_version_has_the_old_content_and_a_new_serial(backend: Backend) -> None:
    old = document(1, exact=0).replace(b'"exact": 0', b'"exact":  0.1234567890123456789012345')
    backend.push(old)
    backend.push(document(8))

    response = backend.call("/versions/1:restore")

    new = old.replace(b'"serial": 1,', b'"serial": 9,')
    version = StateVersion.objects.get(number=3)
    assert response.status_code == 200
    assert response.json() == {
        "version": {
            "number": 3,
            "serial": 9,
            "lineage": LINEAGE,
            "md5": hashlib.md5(new).hexdigest(),
            "size_bytes": len(new),
            "created_at": seen(version.created_at),
            "created_by": "operator",
            "token_id": backend.client.token.pk,
        }
    }
    assert backend.get().content == new


def test_restore_changes_a_single_state(backend: Backend) -> None:
    other = Backend(backend.client)
    other.push(document(5))
    backend.push(document(1))
    backend.push(document(2))

    assert backend.call("/versions/1:restore").status_code == 200

    assert (backend.record.serial, other.record.serial) == (3, 5)


def test_restore_is_audited(backend: Backend) -> None:
    backend.push(document(1))

    backend.call("/versions/1:restore", {"reason": "the last apply was wrong"})

    event = AuditEvent.objects.get(action="state.restore")
    version = StateVersion.objects.get(number=2)
    assert event.details == {
        "restored": 1,
        "reason": "the last apply was wrong",
        "version": 2,
        "serial": 2,
        "md5": version.md5,
        "size_bytes": version.size_bytes,
    }


def test_restored_lineage_becomes_current(admin: Backend) -> None:
    admin.push(document(5, lineage="first"))
    admin.push(document(1, lineage="second"), "?force=true")

    assert admin.call("/versions/1:restore/").status_code == 200

    assert admin.get().content == document(2, lineage="second")


def test_document_without_a_head_is_restored(backend: Backend) -> None:
    backend.push(b'{"version": 4}')
    backend.push(document(7))

    assert backend.call("/versions/1:restore").json()["version"]["serial"] == 8

    assert backend.get().content == b'{"version": 4}'


def test_foreign_documents_are_restored(backend: Backend) -> None:
    """The state backend takes any object, so any object comes back."""
    backend.push(b'{"serial": 1, "anything": [1.50]}')
    backend.push(b'{"serial": 2}')

    assert backend.call("/versions/1:restore").status_code == 200

    assert backend.get().content == b'{"serial": 3, "anything": [1.50]}'


def test_an_encrypted_state_cannot_get_another_serial(backend: Backend) -> None:
    backend.push(ENCRYPTED)

    response = backend.call("/versions/1:restore")

    assert (response.status_code, error_reason(response)) == (400, "STATE_ENCRYPTED")
    assert response.json()["error"]["status"] == "FAILED_PRECONDITION"


def test_repeated_member_name(backend: Backend) -> None:
    backend.push(b'{"serial": 1, "serial": 2}')

    response = backend.call("/versions/1:restore")

    assert (response.status_code, error_reason(response)) == (400, "STATE_FORMAT_UNSUPPORTED")


def test_there_is_no_greater_serial(backend: Backend) -> None:
    backend.push(document(MAX_SERIAL))

    response = backend.call("/versions/1:restore")

    assert (response.status_code, error_reason(response)) == (409, "SERIAL_CONFLICT")


def test_somebody_elses_lock(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.push(document())
    backend.lock(lock_id)

    for body in ({}, {"lock_id": None}, {"lock_id": str(uuid.uuid4())}):
        response = backend.call("/versions/1:restore", body)

        assert (response.status_code, error_reason(response)) == (423, "STATE_LOCKED")
        assert response.json()["ID"] == str(lock_id)
    assert backend.record.version_number == 1


def test_the_callers_own_lock(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.push(document())
    backend.lock(lock_id)

    response = backend.call("/versions/1:restore", {"lock_id": str(lock_id)})

    assert response.status_code == 200
    assert backend.record.lock_id == lock_id


def test_released_lock_id_is_refused(backend: Backend) -> None:
    backend.push(document())

    response = backend.call("/versions/1:restore", {"lock_id": str(uuid.uuid4())})

    assert (response.status_code, error_reason(response)) == (409, "LOCK_NOT_HELD")


@pytest.mark.parametrize("number", ["2", "x"])
def test_there_is_no_such_version(backend: Backend, number: str) -> None:
    backend.push(document())

    response = backend.call(f"/versions/{number}:restore")

    assert (response.status_code, error_reason(response)) == (404, "VERSION_NOT_FOUND")


def test_event_of_a_deleted_state_is_matched(admin: Backend) -> None:
    admin.push(document())
    admin.delete()

    response = admin.call("/versions/1:restore")

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")


@pytest.mark.parametrize("body", [{"serial": 5}, {"reason": ""}, {"lock_id": "x"}])
def test_invalid_bodies_are_rejected(backend: Backend, body: Any) -> None:
    backend.push(document())

    response = backend.call("/versions/1:restore", body)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")


def test_needs_its_scope(backend: Backend, client_with: ClientWith) -> None:
    backend.push(document())

    response = backend.as_client(client_with("state:read")).call("/versions/1:restore")

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_state_outside_the_binding_returns_404(backend: Backend, client_with: ClientWith) -> None:
    backend.push(document())
    elsewhere = client_with("state:write", bound_component_ids=[str(uuid.uuid4())])

    response = backend.as_client(elsewhere).call("/versions/1:restore")

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run something right before the new version is first appended."""
    real = append_version

    def arrange(event: Any) -> None:
        pending = [event]

        def append(*given: Any, **details: Any) -> Any:
            if pending:
                pending.pop()()
            return real(*given, **details)

        monkeypatch.setattr(history, "append_version", append)

    return arrange


def test_a_push_in_between_is_not_overtaken(backend: Backend, meanwhile: Any) -> None:
    backend.push(document(1))
    meanwhile(lambda: backend.push(document(5)))

    assert backend.call("/versions/1:restore").json()["version"]["serial"] == 6

    assert [v.serial for v in StateVersion.objects.order_by("number")] == [1, 5, 6]


def test_a_lock_in_between_is_respected(
    backend: Backend, meanwhile: Any, lock_id: uuid.UUID
) -> None:
    backend.push(document(1))
    meanwhile(lambda: backend.lock(lock_id))

    assert backend.call("/versions/1:restore").status_code == 423


def test_deletion_in_between_is_detected(admin: Backend, meanwhile: Any) -> None:
    admin.push(document(1))
    meanwhile(admin.delete)

    assert admin.call("/versions/1:restore").status_code == 404


def test_concurrently_pruned_version_is_not_found(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.push(document(1))
    backend.push(document(2))
    monkeypatch.setattr("states.keeping.reading.find_version", lambda **_: (None, b""))

    response = backend.call("/versions/1:restore")

    assert (response.status_code, error_reason(response)) == (404, "VERSION_NOT_FOUND")


def test_persistent_conflict_returns_503(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    backend.push(document(1))
    real = append_version

    def append(*given: Any, **details: Any) -> Any:
        State.objects.all().change()
        return real(*given, **details)

    monkeypatch.setattr(history, "append_version", append)

    response = backend.call("/versions/1:restore")

    assert (response.status_code, error_reason(response)) == (503, "WRITE_CONFLICT")
    assert json.loads(backend.get().content)["serial"] == 1
