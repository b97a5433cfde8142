"""Authentication, and the responses to rejected requests (RFC 6750)."""

import base64
import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apikeys import tokens
from apikeys.callers import find_caller
from apikeys.models import AccessToken, ApiKey, User
from apikeys.tokens import TokenKind
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith, expire
from tests.conftest import ApiClient, ClientWith, error_reason

WHOAMI = "/v1/whoami"
STATE = (
    "/api/v1/state/00000000-0000-4000-8000-000000000001/env/00000000-0000-4000-8000-000000000002"
)
REALM = 'realm="infra-service"'


def ask(authorization: str, path: str = WHOAMI) -> Any:
    return Client(raise_request_exception=False).get(path, headers={"Authorization": authorization})


def misspelt(secret: str) -> str:
    """Return the secret with a changed character, which its checksum detects."""
    return secret[:10] + ("a" if secret[10] != "a" else "b") + secret[11:]


def other_kind(secret: str) -> str:
    """Return the same random part as a service token, with the right checksum."""
    body = "iss_" + secret[4:-6]
    return body + tokens._checksum(body)


@pytest.mark.parametrize("kind", list(TokenKind))
def test_each_kind_is_let_in(client_with: ClientWith, owner: KeyOwner, kind: TokenKind) -> None:
    client = owner if kind is TokenKind.API_KEY else client_with("state:read", kind=kind)

    assert client.get(WHOAMI).json()["caller"]["token_kind"] == kind.name


def test_the_scheme_has_no_case(owner: KeyOwner) -> None:
    assert ask(f"bEARER  {owner.secret} ").status_code == 200


def test_invalid_credentials_get_identical_responses(
    owner: KeyOwner, client_with: ClientWith
) -> None:
    revoked = client_with("state:read")
    AccessToken.objects.revoke(revoked.token.pk)
    personal = client_with("state:read")
    sent = {
        "unknown": f"Bearer {tokens.generate(TokenKind.API_KEY)}",
        "misspelt": f"Bearer {misspelt(owner.secret)}",
        "malformed": "Bearer x",
        "not ASCII": "Bearer isk_é",
        "revoked": f"Bearer {revoked.secret}",
        "of another kind": f"Bearer {other_kind(personal.secret)}",
        "a digest": f"Bearer {tokens.digest(owner.secret).hex()}",
    }

    answers = {}
    for name, authorization in sent.items():
        response = ask(authorization)
        assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_INVALID")
        assert response["WWW-Authenticate"] == f'Bearer {REALM}, error="invalid_token"'
        body = response.json()
        body["error"]["details"].pop()  # the request's id
        answers[name] = body

    assert all(body == answers["unknown"] for body in answers.values())


@pytest.mark.parametrize("form", ["{0}", "Token {0}", "Basic {1}", "Bearer ", "Bearer"])
def test_header_without_a_token_is_rejected(owner: KeyOwner, form: str) -> None:
    """The rest of the header is ignored: even a valid secret changes nothing."""
    messages = set()
    for secret in (owner.secret, tokens.generate(TokenKind.API_KEY)):
        pair = base64.b64encode(f"x:{secret}".encode()).decode()
        response = ask(form.format(secret, pair))
        assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_INVALID")
        messages.add(response.json()["error"]["message"])

    (message,) = messages
    assert message == (
        "Send the token as 'Authorization: Bearer <token>', or, for the state backend only "
        "(/api/v1/state/…), as the password of HTTP Basic."
    )


def test_missing_credentials_are_rejected(anonymous: Client) -> None:
    response = anonymous.get(WHOAMI)

    assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_MISSING")
    assert response["WWW-Authenticate"] == f"Bearer {REALM}"


def queries_of(authorization: str) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        ask(authorization, STATE)
    return [q["sql"] for q in queries.captured_queries if q["sql"].startswith("SELECT")]


def test_a_bad_checksum_costs_no_query(client_with: ClientWith) -> None:
    client = client_with("state:read")

    assert queries_of(f"Bearer {misspelt(client.secret)}") == []
    assert queries_of("Bearer x") == []
    assert queries_of("") == []


@pytest.mark.parametrize("authorization", ["unknown", "revoked", "wrong scope"])
def test_authentication_is_a_single_query(client_with: ClientWith, authorization: str) -> None:
    client = client_with("cluster:read")
    secret = client.secret
    if authorization == "unknown":
        secret = tokens.generate(TokenKind.PERSONAL)
    elif authorization == "revoked":
        AccessToken.objects.revoke(client.token.pk)

    assert len(queries_of(f"Bearer {secret}")) == 1


def test_authentication_of_a_minted_token_is_a_single_query(owner: KeyOwner) -> None:
    body = {"name": "x", "scopes": ["state:read"]}
    secret = owner.send("POST", "/v1/access-tokens", body).json()["secret"]
    ApiKey.objects.update(scopes=["apikey:read"])

    assert len(queries_of(f"Bearer {secret}")) == 1


def test_expired_key_is_rejected(owner: KeyOwner) -> None:
    expire(owner.key)

    response = owner.get(WHOAMI)

    assert (response.status_code, error_reason(response)) == (401, "TOKEN_EXPIRED")
    assert response["WWW-Authenticate"] == f'Bearer {REALM}, error="invalid_token"'


def test_a_minted_token_expires_with_its_key(owner: KeyOwner) -> None:
    body = {"name": "x", "scopes": ["state:read"]}
    minted = KeyClient(owner.send("POST", "/v1/access-tokens", body).json()["secret"])
    expire(owner.key)

    assert error_reason(minted.get(WHOAMI)) == "TOKEN_EXPIRED"


def test_inactive_user_is_refused(owner: KeyOwner) -> None:
    User.objects.update(is_active=False)

    assert error_reason(owner.get(WHOAMI)) == "CREDENTIALS_INVALID"


@pytest.mark.parametrize("path", ["/v1/api-keys", "/v1/access-tokens"])
def test_key_endpoints_take_no_issued_token(client_with: ClientWith, path: str) -> None:
    response = client_with("apikey:read").get(path)

    assert (response.status_code, error_reason(response)) == (403, "TOKEN_KIND_UNSUPPORTED")
    error = response.json()["error"]
    assert error["message"] == (
        "This endpoint accepts an API key or a token minted from it, but your token was issued "
        "without an API key. "
        "Send an API key (isk_…), or a token that POST /v1/access-tokens mints from it."
    )
    assert error["details"][0]["metadata"] == {"accepted": "API_KEY"}
    assert "WWW-Authenticate" not in response


@pytest.mark.parametrize("path", ["/v1/api-keys", "/v1/access-tokens"])
def test_key_endpoints_take_a_minted_token(owner: KeyOwner, path: str) -> None:
    body = {"name": "x", "scopes": ["apikey:read"]}
    minted = KeyClient(owner.send("POST", "/v1/access-tokens", body).json()["secret"])

    assert minted.get(path).status_code == 200


def test_state_endpoints_take_no_api_key(owner: KeyOwner) -> None:
    response = owner.get(STATE)

    assert (response.status_code, error_reason(response)) == (403, "TOKEN_KIND_UNSUPPORTED")
    error = response.json()["error"]
    assert error["message"] == (
        "This endpoint accepts a personal access token or a service access token, but you sent "
        "an API key. Mint a token from it: POST /v1/access-tokens."
    )
    assert error["details"][0]["metadata"] == {"accepted": "PERSONAL,SERVICE"}


def basic(password: str) -> str:
    return f"Basic {base64.b64encode(password.encode()).decode()}"


def test_state_backend_accepts_basic_authentication(client_with: ClientWith) -> None:
    client = client_with("state:read")

    right = basic(f"anything:{client.secret}")
    assert ask(right, STATE).status_code == 404
    damaged = f"{right[:12]}%{right[12:]}"
    for refused in (basic(client.secret), basic("a:b"), "Basic %%%", "Basic /w==", damaged):
        response = ask(refused, STATE)
        assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_INVALID")
        assert response["WWW-Authenticate"] == (
            f'Bearer {REALM}, error="invalid_token", Basic {REALM}'
        )


@pytest.mark.parametrize(
    ("lifetime", "is_announced"),
    [(None, False), (dt.timedelta(days=8), False), (dt.timedelta(days=6), True)],
)
def test_header_announces_expiry_in_the_last_week(
    key_with: KeyWith, lifetime: dt.timedelta | None, is_announced: bool
) -> None:
    client = key_with("apikey:read", lifetime=lifetime)

    for response in (client.get(WHOAMI), client.get("/v1/api-keys/key-1"), client.put(WHOAMI)):
        assert ("Token-Expires-At" in response) is is_announced
        if is_announced:
            end = client.key.expires_at
            assert end is not None
            assert response["Token-Expires-At"] == end.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_scopes_are_looked_at_on_each_request(client_with: ClientWith) -> None:
    client: ApiClient = client_with("state:read")
    assert client.get(STATE).status_code == 404

    AccessToken.objects.update(scopes=["cluster:read"])

    assert error_reason(client.get(STATE)) == "SCOPE_INSUFFICIENT"


def test_a_caller_does_not_show_its_digest(owner: KeyOwner) -> None:
    caller = find_caller(owner.secret)

    assert "digest" not in repr(caller)
    assert caller.expires_at is None
