"""Authentication metrics count by outcome, with more detail than the client receives."""

import base64
import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apikeys import tokens
from apikeys.models import AccessToken, ApiKey, User
from apikeys.tokens import TokenKind
from tests.apikeys.conftest import KeyWith
from tests.conftest import LONG_AGO, ApiClient, ClientWith, error_reason
from tests.support.figures import Since

NAME = "infra_authentications_total"
INVALID = (401, "CREDENTIALS_INVALID")


def event(capfd: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capfd.readouterr().err.splitlines()[-1])


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_successful_authentication_is_counted(client_with: ClientWith) -> None:
    client, counted = client_with("state:read"), Since()

    assert client.get("/v1/whoami").status_code == 200

    assert counted(NAME, result="ok") == 1


def test_refused_address_is_counted(client_with: ClientWith) -> None:
    client, counted = client_with("state:read", allowed_networks=["192.0.2.0/24"]), Since()

    answer = client.get("/v1/whoami")

    assert (answer.status_code, error_reason(answer)) == (403, "ADDRESS_NOT_ALLOWED")
    assert (counted(NAME, result="address"), counted(NAME, result="ok")) == (1, 0)


@pytest.mark.parametrize(
    ("header", "result"),
    [
        ("", "missing"),
        ("Bearer isp_short", "malformed"),
        ("Digest x", "malformed"),
        ("Basic %%%", "malformed"),
        (f"Bearer {tokens.generate(TokenKind.PERSONAL)}", "unknown"),
    ],
    ids=["missing", "short", "scheme", "basic", "unknown"],
)
def test_missing_and_invalid_credentials_are_counted(
    anonymous: Client, capfd: pytest.CaptureFixture[str], header: str, result: str
) -> None:
    counted = Since()

    answer = anonymous.get(
        "/api/v1/state/x/env/y", headers={"Authorization": header} if header else {}
    )

    assert answer.status_code == 401
    assert counted(NAME, result=result) == 1
    assert counted(NAME, result="ok") == 0
    assert event(capfd)["authentication"] == result


def revoke(client: ApiClient) -> None:
    AccessToken.objects.revoke(client.token.pk)


def deactivate(client: ApiClient) -> None:
    User.objects.update(is_active=False)


def expire(client: ApiClient) -> None:
    AccessToken.objects.update(created_at=LONG_AGO, expires_at=LONG_AGO + dt.timedelta(1))


@pytest.mark.parametrize(
    ("end", "result", "expected"),
    [
        (revoke, "revoked", INVALID),
        (deactivate, "inactive", INVALID),
        (expire, "expired", (401, "TOKEN_EXPIRED")),
    ],
)
def test_expired_valid_credentials_are_counted(
    client_with: ClientWith,
    capfd: pytest.CaptureFixture[str],
    end: Callable[[ApiClient], None],
    result: str,
    expected: tuple[int, str],
) -> None:
    client, counted = client_with("state:read"), Since()
    end(client)

    answer = client.get("/v1/whoami")

    assert (answer.status_code, error_reason(answer)) == expected
    assert counted(NAME, result=result) == 1
    assert event(capfd)["authentication"] == result


def test_token_of_a_revoked_key_is_counted_as_revoked(key_with: KeyWith, anonymous: Client) -> None:
    key = key_with("apikey:write")
    wish = {"name": "job", "scopes": ["apikey:write"]}
    minted = key.send("POST", "/v1/access-tokens", {"access_token": wish}).json()["secret"]
    ApiKey.objects.revoke(key.key_id)
    counted = Since()

    answer = anonymous.get("/v1/whoami", headers=bearer(minted))

    assert (answer.status_code, error_reason(answer)) == INVALID
    assert counted(NAME, result="revoked") == 1


def test_basic_is_counted_as_bearer_is(client_with: ClientWith, anonymous: Client) -> None:
    secret, counted = client_with("state:read").secret, Since()
    password = base64.b64encode(f"token:{secret}".encode()).decode()

    anonymous.get("/api/v1/state/x/env/y", headers={"Authorization": f"Basic {password}"})

    assert counted(NAME, result="ok") == 1
