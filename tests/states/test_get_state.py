"""GET /api/v1/states/{id}."""

import uuid

import pytest

from tests.conftest import ClientWith, error_reason
from tests.states.conftest import LINEAGE, Backend, document, seen


def test_the_record(backend: Backend) -> None:
    backend.push(document(7))
    record = backend.record

    response = backend.look()

    assert response.status_code == 200
    assert response.json() == {
        "state": {
            "id": str(record.pk),
            "component_id": str(backend.component_id),
            "component_name": "",
            "component_slug": None,
            "application_slug": None,
            "environment_id": str(backend.environment_id),
            "environment_name": "",
            "environment_slug": None,
            "serial": 7,
            "md5": record.md5,
            "lineage": LINEAGE,
            "size_bytes": len(document(7)),
            "engine": None,
            "client_encrypted": False,
            "failing_checks": None,
            "created_at": seen(record.created_at),
            "updated_at": seen(record.updated_at),
        }
    }


def test_locked_state_before_its_first_push(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)

    state = backend.look().json()["state"]

    assert (state["serial"], state["md5"], state["size_bytes"]) == (None, None, None)
    assert state["lock"] == {
        "lock_id": str(lock_id),
        "operation": "OperationTypeApply",
        "who": "ada@laptop",
        "version": "1.11.4",
        "door": "http",
        "acquired_at": seen(backend.record.lock_acquired_at),  # type: ignore[arg-type]
    }


@pytest.mark.parametrize("state_id", [str(uuid.UUID(int=1)), "1", "none"])
def test_unknown_state_is_not_found(backend: Backend, state_id: str) -> None:
    response = backend.client.get(f"/api/v1/states/{state_id}")

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")


def test_deleted_state_returns_404(admin: Backend) -> None:
    admin.push(document())
    admin.delete()

    assert error_reason(admin.look()) == "STATE_NOT_FOUND"


#: Every path below a state that is read, for the rules that all of them share.
PATHS = [
    "",
    "/versions",
    "/versions/1",
    "/versions/1/document",
    "/versions/1/diff",
    "/outputs",
    "/resources",
]


@pytest.mark.parametrize("suffix", PATHS)
@pytest.mark.parametrize("bound", ["bound_component_ids", "bound_environment_ids"])
def test_state_outside_the_binding_returns_404(
    backend: Backend, client_with: ClientWith, suffix: str, bound: str
) -> None:
    backend.push(document())
    scopes = ("state:read", "state:secrets")
    elsewhere = backend.as_client(client_with(*scopes, **{bound: [str(uuid.uuid4())]}))

    response = elsewhere.look(suffix)

    assert (response.status_code, error_reason(response)) == (404, "STATE_NOT_FOUND")


@pytest.mark.parametrize("suffix", PATHS)
def test_state_inside_the_binding_is_accessible(
    backend: Backend, client_with: ClientWith, suffix: str
) -> None:
    backend.push(document())
    binding = {"bound_component_ids": [str(backend.component_id)]}
    inside = backend.as_client(client_with("state:read", "state:secrets", **binding))

    assert inside.look(suffix).status_code == 200


@pytest.mark.parametrize("suffix", PATHS)
def test_a_final_slash_is_the_same(seeing: Backend, backend: Backend, suffix: str) -> None:
    backend.push(document())

    with_slash, without = seeing.look(suffix + "/"), seeing.look(suffix)

    assert (with_slash.status_code, with_slash.content) == (200, without.content)


@pytest.mark.parametrize("suffix", PATHS)
def test_needs_its_scope(backend: Backend, client_with: ClientWith, suffix: str) -> None:
    backend.push(document())

    response = backend.as_client(client_with("state:write", "state:secrets")).look(suffix)

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


@pytest.mark.parametrize("suffix", PATHS)
def test_needs_a_token(backend: Backend, suffix: str) -> None:
    backend.push(document())

    response = backend.look(suffix, headers={"Authorization": ""})

    assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_MISSING")


@pytest.mark.parametrize("suffix", PATHS)
def test_other_method_is_rejected(backend: Backend, suffix: str) -> None:
    backend.push(document())

    response = backend.client.put(backend.root + suffix)

    assert (response.status_code, error_reason(response)) == (405, "METHOD_NOT_ALLOWED")
