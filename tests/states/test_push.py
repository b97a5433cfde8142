"""POST on the state backend."""

import base64
import hashlib
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from apikeys.actors import Actor
from apikeys.models import AuditEvent
from states.actions.push import push
from states.document.uploads import Upload
from states.models import Application, Component, Environment, State, StateVersion
from states.targets import StateTarget
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import LINEAGE, Backend, document, lock_info


def test_a_first_push_registers_and_stores(backend: Backend) -> None:
    body = document()

    response = backend.push(body)

    assert (response.status_code, response.content) == (200, b"")
    assert backend.get().content == body
    state = backend.record
    assert (state.serial, state.lineage) == (1, LINEAGE)
    assert state.md5 == hashlib.md5(body).hexdigest()
    assert state.size_bytes == len(body)
    assert Component.objects.filter(pk=backend.component_id, application=None).exists()
    assert Environment.objects.filter(pk=backend.environment_id).exists()


def test_a_new_state_is_of_its_components_application(backend: Backend) -> None:
    application = Application.objects.create(name="shop")
    Component.objects.create(pk=backend.component_id, application=application)

    backend.push(document())

    assert backend.record.application_id == application.pk


def test_push_is_audited(backend: Backend) -> None:
    body = document()
    backend.push(body)
    state = backend.record

    create, push = AuditEvent.objects.filter(resource_id=str(state.pk)).order_by("id")

    assert create.action == "state.create"
    assert (push.action, push.actor_name) == ("state.push", "operator")
    assert push.token_id == backend.client.token.pk
    assert push.address == "127.0.0.1"
    assert push.request_id
    md5 = hashlib.md5(body).hexdigest()
    assert push.details == {"version": 1, "serial": 1, "md5": md5, "size_bytes": len(body)}


def test_every_push_makes_a_version(backend: Backend) -> None:
    for serial in (1, 2, 5):
        assert backend.push(document(serial)).status_code == 200

    versions = StateVersion.objects.order_by("number")
    assert [(v.number, v.serial, v.created_by) for v in versions] == [
        (1, 1, "operator"), (2, 2, "operator"), (3, 5, "operator"),
    ]  # fmt: skip
    assert backend.record.current_version_id == versions[2].pk


def test_push_changes_a_single_state(backend: Backend) -> None:
    other = Backend(backend.client)
    for one in (backend, other):
        one.push(document(1))

    backend.push(document(2))

    assert (backend.record.serial, other.record.serial) == (2, 1)


def test_the_same_again_makes_no_version(backend: Backend) -> None:
    for _ in range(3):
        assert backend.push(document(4)).status_code == 200

    assert StateVersion.objects.count() == 1


def test_the_same_again_under_the_lock_makes_no_version(
    backend: Backend, lock_id: uuid.UUID
) -> None:
    backend.lock(lock_id)
    for _ in range(3):
        assert backend.push(document(4), f"?ID={lock_id}").status_code == 200

    assert StateVersion.objects.count() == 1


def test_another_document_of_the_same_size_is_stored(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)
    one, other = (document(4, outputs={name: {}}) for name in "ab")
    backend.push(one, f"?ID={lock_id}")

    assert backend.push(other, f"?ID={lock_id}").status_code == 200

    assert backend.get().content == other


@pytest.mark.parametrize("serial", [1, 4])
def test_without_a_lock_the_serial_must_grow(backend: Backend, serial: int) -> None:
    backend.push(document(4))

    response = backend.push(document(serial, outputs={"changed": {}}))

    assert (response.status_code, error_reason(response)) == (409, "SERIAL_CONFLICT")
    assert response.json()["error"]["details"][0]["metadata"] == {
        "serial": str(serial), "current_serial": "4",
    }  # fmt: skip
    assert backend.record.serial == 4


def test_without_a_lock_the_lineage_must_stay(backend: Backend) -> None:
    backend.push(document(4))

    response = backend.push(document(5, lineage="another"))

    assert (response.status_code, error_reason(response)) == (409, "LINEAGE_MISMATCH")
    assert backend.record.lineage == LINEAGE


def test_force_replaces_a_newer_version(backend: Backend, admin: Backend) -> None:
    backend.push(document(4))

    response = admin.push(document(2, lineage="another"), "?force=true")

    assert response.status_code == 200
    assert (backend.record.serial, backend.record.lineage) == (2, "another")


def test_force_replaces_a_damaged_document_by_an_identical_document(admin: Backend) -> None:
    admin.push(document(4))
    StateVersion.objects.update(document=b"damaged")
    assert admin.get().status_code == 500

    assert admin.push(document(4), "?force=true").status_code == 200

    assert admin.get().content == document(4)


def test_force_needs_its_scope(backend: Backend) -> None:
    backend.push(document(4))

    response = backend.push(document(2), "?force=true")

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
    assert 'scope="state:admin"' in response["WWW-Authenticate"]
    assert backend.record.serial == 4


def test_with_the_lock_any_serial_and_lineage_are_taken(
    backend: Backend, lock_id: uuid.UUID
) -> None:
    backend.push(document(9))
    backend.lock(lock_id)

    response = backend.push(document(3, lineage="another"), f"?ID={lock_id}")

    assert response.status_code == 200
    assert (backend.record.serial, backend.record.lineage) == (3, "another")


@pytest.mark.parametrize("other", ["", f"?ID={LINEAGE}"])
def test_push_without_the_lock_is_refused(backend: Backend, lock_id: uuid.UUID, other: str) -> None:
    backend.lock(lock_id)

    response = backend.push(document(), other)

    assert (response.status_code, error_reason(response)) == (423, "STATE_LOCKED")
    body = response.json()
    who = f"ada@laptop, token {backend.client.token.name} of operator"
    assert (body["ID"], body["Who"]) == (str(lock_id), who)
    assert StateVersion.objects.count() == 0


def test_force_does_not_break_a_lock(admin: Backend, lock_id: uuid.UUID) -> None:
    admin.lock(lock_id)

    assert admin.push(document(), "?force=true").status_code == 423


def test_a_broken_lock_must_not_write(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.push(document(1))
    backend.lock(lock_id)
    backend.unlock(lock_id)

    response = backend.push(document(2), f"?ID={lock_id}")

    assert (response.status_code, error_reason(response)) == (409, "LOCK_NOT_HELD")
    assert backend.record.serial == 1


def test_a_document_without_serial_gets_the_next(backend: Backend) -> None:
    backend.push(document(None))
    assert backend.record.serial == 1

    backend.push(document(7))
    backend.push(document(None, outputs={"new": {}}))

    assert backend.record.serial == 8


def test_document_without_serial_is_refused_after_the_largest_serial(backend: Backend) -> None:
    backend.push(document(2**63 - 1))

    response = backend.push(document(None, outputs={"new": {}}))

    assert (response.status_code, error_reason(response)) == (409, "SERIAL_CONFLICT")


@pytest.mark.parametrize("lineage", [None, ""])
def test_document_without_lineage_keeps_the_current_lineage(
    backend: Backend, lineage: str | None
) -> None:
    backend.push(document(1))

    assert backend.push(document(2, lineage=lineage)).status_code == 200

    assert backend.record.lineage == LINEAGE


def test_an_encrypted_opentofu_state_is_kept(backend: Backend) -> None:
    body = (
        b'{"serial":3,"lineage":"l","meta":{"key_provider.pbkdf2.a":"e30="},'
        b'"encrypted_data":"AAAA","encryption_version":"v0"}'
    )

    assert backend.push(body).status_code == 200

    assert backend.get().content == body
    assert (backend.record.serial, backend.record.lineage) == (3, "l")


def test_right_content_md5_is_accepted(backend: Backend) -> None:
    body = document()
    digest = base64.b64encode(hashlib.md5(body).digest()).decode()

    assert backend.push(body, headers={"Content-MD5": digest}).status_code == 200


@pytest.mark.parametrize(
    "digest", ["", "nonsense", base64.b64encode(b"0" * 16).decode(), "1B2M2Y8AsgTpgAmY7PhCfg="]
)
def test_wrong_content_md5_is_rejected(backend: Backend, digest: str) -> None:
    response = backend.push(document(), headers={"Content-MD5": digest})

    assert (response.status_code, error_reason(response)) == (400, "CONTENT_MD5_MISMATCH")
    assert StateVersion.objects.count() == 0


BAD_DOCUMENTS: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"state",
    "half": b'{"serial": 1',
    "array": b"[]",
    "null": b"null",
    "number": b"1",
    "nested": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "NaN": b'{"serial": 1, "a": NaN}',
    "Infinity": b'{"serial": 1, "a": -Infinity}',
    "invalid UTF-8": b'{"serial": 1, "a": "\xff"}',
    "cut UTF-8": b'{"serial": 1, "a": "\xe2\x82"}',
    "ends in UTF-8": b'{"serial": 1}\xe2\x82',
    "BOM": b'\xef\xbb\xbf{"serial": 1}',
    "trailing": b'{"serial": 1} x',
    "negative serial": b'{"serial": -1}',
    "huge serial": b'{"serial": 9223372036854775808}',
    "absurd serial": b'{"serial": 1' + b"0" * 5000 + b"}",
    "float serial": b'{"serial": 1.5}',
    "text serial": b'{"serial": "1"}',
    "true serial": b'{"serial": true}',
    "number lineage": b'{"serial": 1, "lineage": 5}',
    "long lineage": b'{"serial": 1, "lineage": "' + b"x" * 256 + b'"}',
    "NUL lineage": b'{"serial": 1, "lineage": "\\u0000"}',
    "lone surrogate": b'{"serial": 1, "a": "\\ud800"}',
    "surrogate lineage": b'{"serial": 1, "lineage": "\\ud800"}',
}


@pytest.mark.parametrize("body", BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS.keys())
def test_non_document_is_rejected(backend: Backend, body: bytes) -> None:
    response = backend.push(body)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_DOCUMENT")
    assert StateVersion.objects.count() == 0


@pytest.mark.parametrize(
    "body",
    [
        b'{"serial":1,"n":0.1234567890123456789012345,"e":1E400,"z":-0}',
        b'{"serial":1,"serial":2}',
        b'{"serial":1,"a":"\\u0000\\ud83d\\ude00"}',
        b'\r\n {"serial":1,"\xc3\xa9":"\xf0\x9f\x98\x80"} \n',
        b"{}",
    ],
)
def test_documents_are_returned_byte_for_byte(backend: Backend, body: bytes) -> None:
    assert backend.push(body).status_code == 200

    assert backend.get().content == body


def test_size_limit_of_documents(backend: Backend, settings: Any) -> None:
    body = document()
    settings.STATE_MAX_BYTES = len(body)
    assert backend.push(body).status_code == 200

    response = backend.push(document(2) + b" ")

    assert (response.status_code, error_reason(response)) == (413, "REQUEST_TOO_LARGE")
    assert backend.record.serial == 1


@pytest.mark.parametrize("lock", ["x", "", "3b9b1c0e00004000800000000000000a"])
def test_lock_id_without_a_uuid_is_rejected(backend: Backend, lock: str) -> None:
    response = backend.push(document(), f"?ID={lock}")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    assert response.json()["error"]["details"][1]["field_violations"] == [
        {"field": "ID", "description": "not a UUID in the form 8-4-4-4-12",
         "reason": "INVALID_FORMAT"}
    ]  # fmt: skip


@pytest.mark.parametrize("query", ["force=1", "force=True", "force=", "force=true&force=true"])
def test_force_is_true_or_false(backend: Backend, query: str) -> None:
    response = backend.push(document(), f"?{query}")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    assert response.json()["error"]["details"][1]["field_violations"][0]["field"] == "force"


def test_duplicate_lock_id_is_rejected(backend: Backend) -> None:
    response = backend.push(document(), f"?ID={uuid.uuid4()}&ID={uuid.uuid4()}")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    assert response.json()["error"]["details"][1]["field_violations"] == [
        {"field": "ID", "description": "repeated parameter", "reason": "INVALID_FORMAT"}
    ]


@pytest.mark.parametrize("field", ["component_id", "environment_id"])
def test_path_without_a_uuid_is_not_found(backend: Backend, field: str) -> None:
    setattr(backend, field, "main")

    response = backend.push(document())

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    violations = response.json()["error"]["details"][1]["field_violations"]
    assert violations[0]["field"] == field


def test_upper_case_ids_are_the_same_state(backend: Backend) -> None:
    backend.push(document())
    path = backend.path.replace(str(backend.component_id), str(backend.component_id).upper())

    assert backend.client.get(path).content == document()


def test_final_slash_is_accepted(backend: Backend) -> None:
    response = backend.client.post(backend.path + "/", document(), "application/json")

    assert response.status_code == 200
    assert backend.client.get(backend.path + "/").content == document()


def test_needs_a_token(backend: Backend, anonymous: Client) -> None:
    response = anonymous.post(backend.path, document(), "application/json")

    assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_MISSING")


def test_needs_the_scope(backend: Backend, client_with: ClientWith) -> None:
    response = backend.as_client(client_with("state:read")).push(document())

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
    assert 'scope="state:write"' in response["WWW-Authenticate"]


def test_state_outside_the_binding_returns_404(backend: Backend, client_with: ClientWith) -> None:
    elsewhere = client_with("state:write", bound_component_ids=[str(uuid.uuid4())])

    response = backend.as_client(elsewhere).push(document())

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")
    assert not Component.objects.exists()


def test_state_inside_the_binding_is_accessible(backend: Backend, client_with: ClientWith) -> None:
    bound = client_with(
        "state:write",
        bound_component_ids=[str(backend.component_id)],
        bound_environment_ids=[str(backend.environment_id)],
    )

    assert backend.as_client(bound).push(document()).status_code == 200


def test_a_cluster_token_reaches_no_state(backend: Backend, client_with: ClientWith) -> None:
    bound = client_with("state:write", bound_cluster_id=uuid.uuid4())

    assert backend.as_client(bound).push(document()).status_code == 404


def test_number_of_queries_is_constant(backend: Backend, django_assert_num_queries: Any) -> None:
    backend.push(document(1))

    # Token and state; swap, version and audit event, on SQLite between begin and commit.
    with django_assert_num_queries(2 if connection.vendor == "postgresql" else 6):
        backend.push(document(2))


def pushed() -> Any:
    event = AuditEvent.objects.filter(action="state.push").latest("id")
    return {k: v for k, v in event.details.items() if k in {"lock", "force"}}


def test_audit_event_contains_the_lock_of_the_push(backend: Backend) -> None:
    lock_id = str(uuid.uuid4())
    backend.push(document(1))
    assert pushed() == {}
    backend.lock(lock_id)

    assert backend.push(document(2), f"?ID={lock_id}").status_code == 200

    info = lock_info(lock_id)
    lock = {name.lower(): info[name] for name in ("Who", "Operation", "Created")}
    token_id = AuditEvent.objects.get(action="state.lock").token_id
    taken_by = {"name": "operator", "token_id": token_id}
    assert pushed() == {"lock": {**lock, "taken_by": taken_by}}
    assert lock_id not in str(list(AuditEvent.objects.values_list()))


def test_the_action_returns_the_state(db: None) -> None:
    target = StateTarget(component_id=uuid.uuid4(), environment_id=uuid.uuid4())
    pushed = push(
        target=target,
        upload=Upload.of(document()),
        lock_id=None,
        force=False,
        actor=Actor(name="test"),
    )
    assert pushed == State.objects.get()


def test_forced_push_is_audited(client_with: ClientWith) -> None:
    backend = Backend(client_with("state:read", "state:write", "state:admin"))
    backend.push(document(5))

    assert backend.push(document(1), "?force=true").status_code == 200

    assert pushed() == {"force": True}


def test_use_and_release_of_another_clients_lock_are_audited(client_with: ClientWith) -> None:
    """The response for a locked state contains the ID of the lock."""
    holder = Backend(client_with("state:read", "state:write"))
    other = holder.as_client(client_with("state:read", "state:write", "state:admin"))
    holder.push(document(1))
    holder.lock(uuid.uuid4())
    found = other.push(document(2)).json()["ID"]

    assert other.push(document(2), f"?ID={found}&force=true").status_code == 200
    assert other.unlock(found).status_code == 200

    locked, pushed, unlocked = (
        AuditEvent.objects.filter(action=f"state.{operation}").latest("id")
        for operation in ("lock", "push", "unlock")
    )
    assert pushed.details["force"] is True
    assert pushed.token_id == unlocked.token_id != locked.token_id
    for event in (pushed, unlocked):
        assert event.details["lock"]["taken_by"]["token_id"] == locked.token_id
    assert holder.record.lock_taken_by is None
