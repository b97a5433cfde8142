"""LOCK, UNLOCK and ``…/lock`` on the state backend."""

import json
import uuid
from typing import Any

import pytest
from django.db import connection

from apikeys.actors import Actor
from apikeys.models import AuditEvent
from states.errors import StateLocked
from states.lockinfo import LockInfo, terminal_text
from states.models import State
from states.targets import StateTarget
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import Backend, document, lock_info


def _actions() -> list[str]:
    return list(AuditEvent.objects.order_by("id").values_list("action", flat=True))


def test_the_first_lock_registers_the_state(backend: Backend, lock_id: uuid.UUID) -> None:
    response = backend.lock(lock_id)

    assert (response.status_code, response.json()) == (200, lock_info(lock_id))
    state = backend.record
    assert (state.lock_id, state.serial) == (lock_id, None)
    assert state.lock_info == lock_info(lock_id)
    assert state.lock_acquired_at is not None


def test_holder_may_repeat_its_lock_request(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)
    acquired_at = backend.record.lock_acquired_at

    response = backend.lock(lock_id, Created="2026-11-21T07:00:00Z")

    assert (response.status_code, response.json()) == (200, lock_info(lock_id))
    assert backend.record.lock_acquired_at == acquired_at
    assert _actions().count("state.lock") == 1


def test_other_client_is_rejected_with_the_lock_holder(
    backend: Backend, lock_id: uuid.UUID
) -> None:
    backend.lock(lock_id)

    response = backend.lock(uuid.uuid4(), Who="bob@desk")

    assert (response.status_code, error_reason(response)) == (423, "STATE_LOCKED")
    body = response.json()
    assert body.pop("error")["status"] == "FAILED_PRECONDITION"
    token = backend.client.token
    who = f"ada@laptop, token {token.name} of {token.created_by.username}"
    assert body == lock_info(lock_id, Who=who)
    assert backend.record.lock_id == lock_id


def test_lock_applies_to_a_single_state(backend: Backend, lock_id: uuid.UUID) -> None:
    other = Backend(backend.client)
    for state in (backend, other):
        state.push(document())
    backend.lock(lock_id)
    assert other.record.lock_id is None
    other.lock(lock_id)

    other.unlock(lock_id)

    assert (backend.record.lock_id, other.record.lock_id) == (lock_id, None)


def test_lock_is_audited_with_its_holder(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)

    assert AuditEvent.objects.get(action="state.lock").details == {
        "lock": {
            "who": "ada@laptop",
            "operation": "OperationTypeApply",
            "created": "2026-11-21T06:50:11.123456789Z",
        }
    }


def test_a_lock_survives_a_push(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)
    backend.push(document(), f"?ID={lock_id}")

    assert backend.record.lock_id == lock_id


def test_lock_is_released(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.push(document())
    backend.lock(lock_id)

    response = backend.unlock(lock_id)

    assert (response.status_code, response.content) == (200, b"")
    state = backend.record
    assert (state.lock_id, state.lock_info, state.lock_acquired_at) == (None, None, None)
    assert backend.lock(uuid.uuid4()).status_code == 200


def test_unlock_with_another_id_is_refused(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)

    response = backend.unlock(uuid.uuid4())

    assert (response.status_code, error_reason(response)) == (409, "LOCK_NOT_HELD")
    assert backend.record.lock_id == lock_id


def test_unlocking_an_unlocked_state_has_no_effect(backend: Backend, lock_id: uuid.UUID) -> None:
    assert backend.unlock(lock_id).status_code == 200
    backend.push(document())
    assert backend.unlock(lock_id).status_code == 200
    assert "state.unlock" not in _actions()


def test_unlock_needs_the_id_alone(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)

    assert backend.send("UNLOCK", json.dumps({"ID": str(lock_id)})).status_code == 200


def test_force_unlock(admin: Backend, lock_id: uuid.UUID) -> None:
    admin.push(document())
    admin.lock(lock_id)

    response = admin.unlock(None)

    assert (response.status_code, response.content) == (200, b"")
    assert admin.record.lock_id is None
    event = AuditEvent.objects.get(action="state.force_unlock")
    assert event.details == {
        "lock": {
            "who": "ada@laptop",
            "operation": "OperationTypeApply",
            "created": "2026-11-21T06:50:11.123456789Z",
            "taken_by": {"name": event.actor_name, "token_id": event.token_id},
        },
        "reason": "terraform force-unlock",
    }


def test_holder_of_an_earlier_lock_is_not_reported(admin: Backend, lock_id: uuid.UUID) -> None:
    """The release before leaves the column as it is, while both run."""
    admin.lock(lock_id)
    of_another = {"lock_id": str(uuid.uuid4()), "name": "other", "token_id": "tok-other"}
    State.objects.update(lock_taken_by=of_another)

    admin.unlock(None)

    assert "taken_by" not in AuditEvent.objects.get(action="state.force_unlock").details["lock"]


def test_force_unlocking_an_unlocked_state_has_no_effect(admin: Backend) -> None:
    assert admin.unlock(None).status_code == 200
    admin.push(document())
    assert admin.unlock(None).status_code == 200
    assert "state.force_unlock" not in _actions()


def test_force_unlock_needs_its_scope(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)

    response = backend.unlock(None)

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
    assert backend.record.lock_id == lock_id


@pytest.mark.parametrize("suffix", ["/lock", "/lock/"])
def test_post_and_delete_lock_and_unlock(backend: Backend, lock_id: uuid.UUID, suffix: str) -> None:
    backend.push(document())
    body = json.dumps(lock_info(lock_id))

    response = backend.send("POST", body, suffix)
    assert (response.status_code, response.json()) == (200, lock_info(lock_id))

    other = json.dumps(lock_info(OTHER))
    assert backend.send("POST", other, suffix).status_code == 423
    assert backend.send("DELETE", other, suffix).status_code == 409
    assert backend.send("DELETE", body, suffix).status_code == 200
    assert backend.record.lock_id is None


def test_force_unlock_with_the_usual_method(
    backend: Backend, admin: Backend, lock_id: uuid.UUID
) -> None:
    backend.push(document())
    backend.lock(lock_id)

    assert backend.send("DELETE", "", "/lock").status_code == 403
    assert admin.send("DELETE", "", "/lock").status_code == 200
    assert backend.record.lock_id is None


OTHER = uuid.UUID(int=2)

BAD_LOCK_INFO: dict[str, str | bytes] = {
    "no JSON": "x",
    "half": '{"ID": "',
    "array": "[]",
    "no ID": "{}",
    "number ID": '{"ID": 1}',
    "null": '{"ID": null}',
    "no UUID": json.dumps(lock_info("main")),
    "bare UUID": json.dumps(lock_info(OTHER.hex)),
    "number who": json.dumps({**lock_info(OTHER), "Who": 5}),
    "NUL": json.dumps(lock_info(OTHER, Who="a\0b")),
    "no time": json.dumps(lock_info(OTHER, Created="yesterday")),
    "no such day": json.dumps(lock_info(OTHER, Created="2026-02-30T06:50:11Z")),
    "no such hour": json.dumps(lock_info(OTHER, Created="2026-02-28T25:50:11Z")),
    "no offset": json.dumps(lock_info(OTHER, Created="2026-11-21T06:50:11")),
    "nested": '{"ID":' + "[" * 30_000,
    "lone surrogate": json.dumps(lock_info(OTHER, Who="\ud800")),
    "invalid UTF-8": b'{"ID": "\xff"}',
    "ID twice": f'{{"ID": "{OTHER}", "ID": "{OTHER}"}}',
}


@pytest.mark.both
@pytest.mark.parametrize("method", ["LOCK", "UNLOCK"])
@pytest.mark.parametrize("body", BAD_LOCK_INFO.values(), ids=BAD_LOCK_INFO.keys())
def test_no_lock_info(backend: Backend, method: str, body: str | bytes) -> None:
    response = backend.send(method, body)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_LOCK_INFO")
    assert not State.objects.exists()


def test_a_long_duplicate_member_is_shortened(backend: Backend) -> None:
    name = "x" * 65
    message = backend.send("LOCK", f'{{"{name}": 1, "{name}": 2, "ID": "{OTHER}"}}').json()["error"]
    assert f" '{name[:64]}' " in message["message"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x" * 1000, "x" * 1000),
        ("x" * 1001, "x" * 999 + "…"),
        ("two\r\n \x1b lines\u202e", "two lines"),
    ],
)
def test_text_for_a_terminal(text: str, line: str) -> None:
    assert terminal_text(text) == line


def test_a_lock_needs_a_body(backend: Backend) -> None:
    response = backend.send("LOCK")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_LOCK_INFO")


def test_lock_info_has_a_limit(backend: Backend, lock_id: uuid.UUID) -> None:
    info = json.dumps(lock_info(lock_id))
    response = backend.send("LOCK", f"{info:65537}")
    assert (response.status_code, error_reason(response)) == (413, "REQUEST_TOO_LARGE")

    assert backend.send("LOCK", f"{info:65536}").status_code == 200


def test_a_missing_time_is_filled_in(backend: Backend, lock_id: uuid.UUID) -> None:
    response = backend.lock(lock_id, Created="")

    assert response.status_code == 200
    assert LockInfo(**response.json()).Created.endswith("Z")


def test_the_lock_id_is_in_no_audit_event(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)
    backend.push(document(), f"?ID={lock_id}")
    backend.unlock(lock_id)

    events = AuditEvent.objects.values_list("details", flat=True)
    assert str(lock_id) not in json.dumps(list(events))


@pytest.mark.parametrize("method", ["LOCK", "UNLOCK"])
def test_needs_the_scope(
    backend: Backend, client_with: ClientWith, lock_id: uuid.UUID, method: str
) -> None:
    reader = backend.as_client(client_with("state:read"))

    response = reader.send(method, json.dumps(lock_info(lock_id)))

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_lock_that_loses_the_race_is_rejected(
    backend: Backend, lock_id: uuid.UUID, monkeypatch: Any
) -> None:
    """The lock is acquired elsewhere after the check: the UPDATE decides."""
    backend.push(document())
    state = backend.record
    before = StateTarget.of(state).find(Actor(name="test"))
    assert before is not None
    backend.lock(lock_id)
    real, reads = StateTarget.find, iter([before])
    monkeypatch.setattr(StateTarget, "find", lambda *given: next(reads, None) or real(*given))

    response = backend.lock(uuid.uuid4())

    assert response.status_code == StateLocked.status_code
    assert backend.record.lock_id == lock_id


def test_number_of_queries_is_constant(
    backend: Backend, lock_id: uuid.UUID, django_assert_num_queries: Any
) -> None:
    backend.push(document())

    # Token and state; update and audit event, on SQLite between begin and commit.
    with django_assert_num_queries(2 if connection.vendor == "postgresql" else 5):
        backend.lock(lock_id)
    # A refusal writes nothing, and reads the name of the holder's token.
    with django_assert_num_queries(2):
        backend.lock(uuid.uuid4())
    with django_assert_num_queries(2 if connection.vendor == "postgresql" else 5):
        backend.unlock(lock_id)
