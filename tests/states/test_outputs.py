"""GET /api/v1/states/{id}/outputs."""

import pytest

from apikeys.models import AuditEvent
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import Backend, document
from tests.states.samples import AFTER, ENCRYPTED, PASSWORDS, state


def test_outputs_hide_secrets(backend: Backend) -> None:
    backend.push(AFTER)

    response = backend.look("/outputs")

    assert (response.status_code, response["Cache-Control"]) == (200, "no-store")
    assert response.json() == {
        "outputs": [
            {
                "name": "leak",
                "value": "(sensitive value)",
                "type": "string",
                "sensitive": False,
                "hidden": {
                    "reason": "CONTAINS_SENSITIVE_VALUE",
                    "output": "password",
                    "attribute": None,
                },
            },
            {
                "name": "password",
                "value": "(sensitive value)",
                "type": "(sensitive value)",
                "sensitive": True,
                "hidden": {"reason": "MARKED_SENSITIVE", "output": None, "attribute": None},
            },
            {
                "name": "regions",
                "value": {"ap": "https://ap.example", "eu": "https://eu.example"},
                "type": ["object", {"ap": "string", "eu": "string"}],
                "sensitive": False,
                "hidden": None,
            },
            {"name": "size", "value": 2, "type": "number", "sensitive": False, "hidden": None},
        ],
        "version_number": 1,
        "next_page_token": "",
    }


def test_scope_discloses_secrets(backend: Backend, seeing: Backend) -> None:
    backend.push(AFTER)

    outputs = seeing.look("/outputs").json()["outputs"]

    assert outputs[1]["value"] == {"port": 5432, "primary": PASSWORDS[1].decode()}
    event = AuditEvent.objects.get(action="state.read")
    assert event.details == {"version": 1, "part": "outputs", "secrets": True}


def test_numbers_keep_their_digits(backend: Backend) -> None:
    body = state(outputs={"n": {"value": 0, "type": "number"}})
    backend.push(body.replace(b'"value": 0', b'"value": 0.1234567890123456789012345'))

    assert b'"value":0.1234567890123456789012345,' in backend.look("/outputs").content


def test_pages_stay_in_the_version_of_the_first_page(backend: Backend) -> None:
    names = [f"o{number}" for number in range(5)]
    backend.push(state(outputs={name: {"value": name} for name in names}))

    first = backend.look("/outputs?page_size=2").json()
    backend.push(document(2, lineage="l"))
    second = backend.look(f"/outputs?page_token={first['next_page_token']}").json()

    assert [o["name"] for o in first["outputs"] + second["outputs"]] == names
    assert (second["version_number"], second["next_page_token"]) == (1, "")
    assert backend.look("/outputs").json()["version_number"] == 2


@pytest.mark.parametrize("part", ["/outputs", "/resources", "/outputs.tfstate"])
def test_before_the_first_push(client_with: ClientWith, lock_id: object, part: str) -> None:
    backend = Backend(client_with("state:write", "state:read", "state:outputs"))
    backend.lock(str(lock_id))

    response = backend.look(part)

    assert (response.status_code, error_reason(response)) == (404, "VERSION_NOT_FOUND")
    assert response.json()["error"]["message"].startswith("The state has no version yet.")


def test_encrypted_state_is_rejected(backend: Backend) -> None:
    backend.push(ENCRYPTED)

    response = backend.look("/outputs")

    assert (response.status_code, error_reason(response)) == (400, "STATE_ENCRYPTED")


def test_unknown_parameters_are_rejected(backend: Backend) -> None:
    backend.push(document())

    response = backend.look("/outputs?filter=x")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
