"""GET …/outputs.tfstate, at each address of a state."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

import pytest
from django.test import Client

from apikeys.bindings import Binding
from apikeys.models import AuditEvent
from states.models import Component, Environment
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import LINEAGE, Backend, document
from tests.states.samples import AFTER, ENCRYPTED, PASSWORDS, instance, path, resource, state

END = "/outputs.tfstate"


@pytest.fixture
def reader(client_with: ClientWith) -> ApiClient:
    return client_with("state:outputs")


def addresses(backend: Backend) -> list[str]:
    Component.objects.filter(pk=backend.component_id).update(slug="network")
    Environment.objects.filter(pk=backend.environment_id).update(slug="prod")
    return [backend.root + END, backend.path + END, f"/api/v1/state/at/network/prod{END}"]


def test_sensitive_outputs_are_omitted(backend: Backend, reader: ApiClient) -> None:
    backend.push(AFTER)

    for address in addresses(backend):
        answer = reader.get(address)

        assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store"), address
        pushed = json.loads(AFTER)
        # "leak" is not marked, and contains a password.
        assert answer.json() == {
            "version": 4,
            "terraform_version": pushed["terraform_version"],
            "serial": pushed["serial"],
            "lineage": pushed["lineage"],
            "outputs": {name: pushed["outputs"][name] for name in ("regions", "size")},
            "resources": [],
            "check_results": None,
        }
        for password in PASSWORDS:
            assert password not in answer.content
        assert reader.head(address).status_code == 200
    events = AuditEvent.objects.filter(action="state.read")
    assert {json.dumps(e.details, sort_keys=True) for e in events} == {
        '{"part": "outputs.tfstate", "secrets": false, "version": 1}'
    }


def test_scope_for_secrets_returns_all_outputs(backend: Backend, client_with: ClientWith) -> None:
    backend.push(AFTER)
    client = client_with("state:outputs", "state:secrets")

    for address in addresses(backend):
        assert client.get(address).json()["outputs"] == json.loads(AFTER)["outputs"]


def test_other_scopes_are_rejected(backend: Backend, client_with: ClientWith) -> None:
    backend.push(document())
    client = client_with("state:read", "state:write", "state:secrets")
    for address in addresses(backend):
        answer = client.get(address)
        assert (answer.status_code, error_reason(answer)) == (403, "SCOPE_INSUFFICIENT")
        assert 'scope="state:outputs"' in answer["WWW-Authenticate"]
    outputs = client_with("state:outputs")
    for path_ in (backend.path, backend.root, f"{backend.root}/outputs", "/api/v1/states"):
        assert outputs.get(path_).status_code == 403
    for method in ("POST", "DELETE", "PUT", "LOCK"):
        assert outputs.send(method, backend.path + END).status_code == 405


def test_values_of_secrets_are_nowhere(backend: Backend, reader: ApiClient) -> None:
    secret = "correct-horse-battery"
    backend.push(
        state(
            resource("x", instance({"p": secret}, path("p"))),
            outputs={
                "plain": {"value": "public", "type": "string"},
                "equal": {"value": secret, "type": "string"},
                "within": {"value": {"a": [f"x{secret}"]}, "type": "dynamic"},
                "marked": {"value": "short", "type": "string", "sensitive": True},
                "same": {"value": ["short", "of a marked output"], "type": "dynamic"},
            },
        )
    )

    answer = reader.get(backend.root + END)

    assert answer.json()["outputs"] == {"plain": {"value": "public", "type": "string"}}


def test_numbers_keep_their_digits(backend: Backend, reader: ApiClient) -> None:
    body = state(outputs={"n": {"value": 0, "type": "number"}})
    backend.push(body.replace(b'"value": 0', b'"value": 0.1234567890123456789012345'))

    assert b'"value":0.1234567890123456789012345,' in reader.get(backend.root + END).content


def test_token_is_accepted_as_a_password(backend: Backend, reader: ApiClient) -> None:
    backend.push(document())
    credentials = base64.b64encode(f"token:{reader.secret}".encode()).decode()
    any_client = Client(headers={"Authorization": f"Basic {credentials}"})

    for address in addresses(backend):
        assert any_client.get(address).json()["lineage"] == LINEAGE
        assert "Basic" in Client().get(address)["WWW-Authenticate"]


def test_unknown_and_hidden_states_return_404(
    backend: Backend, admin: Backend, client_with: ClientWith
) -> None:
    backend.push(document())
    bindings = (
        Binding(component_ids=frozenset({uuid.uuid4()})),
        Binding(environment_ids=frozenset({uuid.uuid4()})),
        Binding(application_ids=frozenset({uuid.uuid4()})),
        Binding(cluster_id=uuid.uuid4()),
    )
    there = addresses(backend)
    for binding in bindings:
        client = client_with("state:outputs", **binding.columns())
        for address in there:
            answer = client.get(address)
            assert (answer.status_code, error_reason(answer)) == (404, "STATE_NOT_FOUND")
    reader = client_with("state:outputs")
    for address in (
        f"/api/v1/states/{uuid.uuid4()}{END}", f"/api/v1/state/at/network/none{END}",
        f"/api/v1/state/at/none/network/prod{END}",
    ):  # fmt: skip
        assert error_reason(reader.get(address)) == "STATE_NOT_FOUND"
    assert reader.get(f"/api/v1/state/x/env/y{END}").status_code == 400
    admin.delete()
    for address in there:
        assert error_reason(reader.get(address)) == "STATE_NOT_FOUND"


@pytest.mark.parametrize(
    ("body", "reason"),
    [(ENCRYPTED, "STATE_ENCRYPTED"), (b'{"version": 3}', "STATE_FORMAT_UNSUPPORTED")],
)
def test_unreadable_document_is_reported(
    backend: Backend, reader: ApiClient, body: bytes, reason: str
) -> None:
    backend.push(body)

    for address in addresses(backend):
        answer: Any = reader.get(address)
        assert (answer.status_code, error_reason(answer)) == (400, reason)
