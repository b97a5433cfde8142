"""GET /v1/access-tokens and GET /v1/access-tokens/{id}."""

import datetime as dt
from typing import Any

import pytest

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey
from tests.apikeys.conftest import NOW, KeyOwner, expire
from tests.conftest import ClientWith, error_reason

PATH = "/v1/access-tokens"


def mint(owner: KeyOwner, name: str, **fields: Any) -> str:
    body = {"name": name, "scopes": ["state:read"], **fields}
    token_id: str = owner.send("POST", PATH, body).json()["access_token"]["id"]
    return token_id


@pytest.fixture
def four(owner: KeyOwner, client_with: ClientWith) -> None:
    """Tokens: minted, expired, revoked, and issued by an operator."""
    mint(owner, "minted", kind="SERVICE")
    expired = AccessToken.objects.filter(pk=mint(owner, "expired"))
    now = NOW()
    expired.update(created_at=now - dt.timedelta(days=1), expires_at=now)
    AccessToken.objects.revoke(mint(owner, "revoked"))
    client_with("state:read")


def names(owner: KeyOwner, expression: str = "") -> list[str]:
    answer = owner.get(PATH, {"filter": expression}).json()
    assert answer["next_page_token"] == ""
    return [token["name"] for token in answer["access_tokens"]]


def test_list_contains_all_tokens_of_the_caller(
    owner: KeyOwner, four: None, outsider: KeyOwner
) -> None:
    assert names(owner) == ["minted", "expired", "revoked", "test"]
    assert names(outsider) == []


@pytest.mark.both
@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("field['status'] = 'ACCESS_TOKEN_STATUS_ACTIVE'", ["minted", "test"]),
        ("field['status'] = 'EXPIRED'", ["expired"]),
        ("field['status'] = 'REVOKED'", ["revoked"]),
        ("field['kind'] = 'SERVICE'", ["minted"]),
        ("field['name'] = 'test'", ["test"]),
        ("field['api_key_id'] STARTS_WITH 'key-'", ["minted", "expired", "revoked"]),
        ("field['expires_at'] < '2999-01-01T00:00:00Z'", ["minted", "expired", "revoked"]),
        ("field['created_at'] > '2999-01-01T00:00:00Z'", []),
    ],
)
def test_filters_select_matching_items(
    owner: KeyOwner, four: None, expression: str, found: list[str]
) -> None:
    assert names(owner, expression) == found


def test_a_token_ends_with_its_key(owner: KeyOwner, key_with: Any) -> None:
    other = key_with("apikey:write", "state:read")
    path = f"{PATH}/{mint(other, 'x')}"
    assert owner.get(path).json()["access_token"]["status"] == "ACCESS_TOKEN_STATUS_ACTIVE"

    expire(other.key)
    assert owner.get(path + "/").json()["access_token"]["status"] == "ACCESS_TOKEN_STATUS_EXPIRED"

    actions.revoke_api_key(key=other.key, actor=Actor(name="test"))
    assert owner.get(path).json()["access_token"]["status"] == "ACCESS_TOKEN_STATUS_REVOKED"


def test_token_is_shown_as_in_the_list(owner: KeyOwner) -> None:
    path = f"{PATH}/{mint(owner, 'x')}"

    (listed,) = owner.get(PATH + "/").json()["access_tokens"]

    assert owner.get(path).json() == {"access_token": listed}


def test_token_of_another_owner_is_not_found(owner: KeyOwner, outsider: KeyOwner) -> None:
    for token_id in (mint(owner, "x"), "tok-1"):
        response = outsider.get(f"{PATH}/{token_id}")

        assert (response.status_code, error_reason(response)) == (404, "ACCESS_TOKEN_NOT_FOUND")


def test_a_token_cannot_be_changed(owner: KeyOwner) -> None:
    assert owner.send("PATCH", f"{PATH}/{mint(owner, 'x')}", {"name": "y"}).status_code == 405


def test_it_needs_its_scope(key_with: Any) -> None:
    client = key_with("apikey:write")
    for path in (PATH, f"{PATH}/tok-1"):
        response = client.get(path)
        assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
    assert ApiKey.objects.count() == 1
