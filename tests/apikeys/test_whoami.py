"""GET /v1/whoami."""

import uuid

import pytest
from django.test import Client

from apikeys.bindings import Binding
from apikeys.tokens import TokenKind
from tests.apikeys.conftest import KeyOwner, KeyWith
from tests.conftest import ClientWith, error_reason


def test_api_key_is_described(owner: KeyOwner) -> None:
    response = owner.get("/v1/whoami")

    assert response.status_code == 200
    assert response.json() == {
        "caller": {
            "token_id": owner.key_id,
            "token_kind": "API_KEY",
            "api_key_id": owner.key_id,
            "trust_policy_id": None,
            "scopes": ["apikey:read", "apikey:write", "state:read"],
            "binding": None,
            "expires_at": None,
        },
        "user": {
            "id": str(owner.key.created_by_id), "display_name": "The operator", "email": "",
        },
    }  # fmt: skip
    assert "Token-Expires-At" not in response


@pytest.mark.parametrize("kind", [TokenKind.PERSONAL, TokenKind.SERVICE])
def test_issued_token_is_accepted(client_with: ClientWith, kind: TokenKind) -> None:
    client = client_with("state:read", kind=kind)

    caller = client.get("/v1/whoami/").json()["caller"]

    assert (caller["token_id"], caller["token_kind"]) == (client.token.pk, kind.name)
    assert caller["api_key_id"] is None


def test_binding_of_a_key_is_described(key_with: KeyWith) -> None:
    one, two = sorted((uuid.uuid4(), uuid.uuid4()), key=str)
    bound = key_with("state:read", binding=Binding(component_ids=frozenset({two, one})))

    assert bound.get("/v1/whoami").json()["caller"]["binding"] == {
        "cluster_id": None, "component_ids": [str(one), str(two)], "environment_ids": None,
        "application_ids": None,
    }  # fmt: skip


def test_missing_credentials_get_401(anonymous: Client) -> None:
    response = anonymous.get("/v1/whoami")

    assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_MISSING")
