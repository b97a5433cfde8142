"""POST /v1/access-tokens."""

import datetime as dt
from typing import Any

import pytest

from apikeys.models import AccessToken, ApiKey, AuditEvent
from apikeys.tokens import TokenKind, kind_of
from tests.apikeys.conftest import NOW, KeyClient, KeyOwner, KeyWith, violations, wire
from tests.conftest import error_reason

PATH = "/v1/access-tokens"
GOOD: dict[str, Any] = {"name": "deploy", "scopes": ["state:read"]}


def test_a_token_is_minted(owner: KeyOwner) -> None:
    response = owner.send("POST", PATH, {"access_token": GOOD})

    token = AccessToken.objects.get()
    secret = response.json()["secret"]
    assert response.status_code == 201
    assert response["Cache-Control"] == "no-store"
    assert response.json() == {
        "access_token": {
            "id": token.pk,
            "name": "deploy",
            "kind": "PERSONAL",
            "scopes": ["state:read"],
            "status": "ACCESS_TOKEN_STATUS_ACTIVE",
            "unusable_reason": None,
"allowed_networks": None,
"last_used_address": None,
            "binding": None,
            "api_key_id": owner.key_id,
            "trust_policy_id": None,
            "run": None,
            "expires_at": wire(token.created_at + dt.timedelta(hours=1)),
            "last_used_at": None,
            "revoked_at": None,
            "created_by": {
                "id": str(owner.key.created_by_id), "display_name": "The operator", "email": "",
            },
            "created_at": wire(token.created_at),
        },
        "secret": secret,
    }  # fmt: skip
    assert kind_of(secret) is TokenKind.PERSONAL
    assert KeyClient(secret).get("/v1/whoami").json()["caller"]["scopes"] == ["state:read"]


def test_service_token_is_minted(owner: KeyOwner) -> None:
    response = owner.send("POST", PATH + "/", {**GOOD, "kind": "SERVICE"})

    assert response.json()["access_token"]["kind"] == "SERVICE"
    assert kind_of(response.json()["secret"]) is TokenKind.SERVICE


def test_it_is_written_to_the_trail(owner: KeyOwner) -> None:
    owner.send("POST", PATH, GOOD)

    event, token = AuditEvent.objects.latest("id"), AccessToken.objects.get()
    assert (event.action, event.resource_id) == ("access_token.mint", token.pk)
    assert event.details == {
        "name": "deploy",
        "scopes": ["state:read"],
        "expires_at": token.expires_at and token.expires_at.isoformat(),
        "binding": None,
        "kind": "PERSONAL",
        "api_key_id": owner.key_id,
    }


@pytest.mark.parametrize(("ttl", "seconds"), [("60s", 60), (60, 60), ("43200s", 43200)])
def test_requested_lifetime_is_applied(owner: KeyOwner, ttl: Any, seconds: int) -> None:
    owner.send("POST", PATH, {**GOOD, "ttl": ttl})

    token = AccessToken.objects.get()
    assert token.expires_at == token.created_at + dt.timedelta(seconds=seconds)


def test_its_end(owner: KeyOwner) -> None:
    end = wire(NOW() + dt.timedelta(hours=11))

    response = owner.send("POST", PATH, {**GOOD, "expires_at": end})

    assert response.json()["access_token"]["expires_at"] == end


def test_default_expiry_is_limited_by_the_key(key_with: KeyWith) -> None:
    short = key_with("apikey:write", "state:read", lifetime=dt.timedelta(minutes=5))

    response = short.send("POST", PATH, GOOD)

    assert response.json()["access_token"]["expires_at"] == wire(short.key.expires_at)


REFUSED: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "no name": ({"name": ""}, [("name", "BLANK")]),
    "no scopes": ({"scopes": []}, [("scopes", "EMPTY")]),
    "an unknown kind": ({"kind": "personal"}, [("kind", "UNKNOWN_VALUE")]),
    "a list for a kind": ({"kind": []}, [("kind", "UNKNOWN_VALUE")]),
    "two ends": ({"ttl": 60, "expires_at": "2999-01-01T00:00:00Z"}, [("ttl", "BOTH")]),
    "no time": ({"ttl": 0}, [("ttl", "RANGE")]),
    "too much time": ({"ttl": "43201s"}, [("ttl", "RANGE")]),
    "too late": ({"expires_at": "2999-01-01T00:00:00Z"}, [("expires_at", "LIFETIME_EXCEEDED")]),
}


@pytest.mark.parametrize(("more", "faults"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_body_is_rejected(
    owner: KeyOwner, more: dict[str, Any], faults: list[tuple[str, str]]
) -> None:
    response = owner.send("POST", PATH, {**GOOD, **more})

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    assert violations(response) == faults
    assert not AccessToken.objects.exists()


@pytest.mark.parametrize("field", ["ttl", "expires_at"])
def test_token_expires_no_later_than_its_key(key_with: KeyWith, field: str) -> None:
    short = key_with("apikey:write", "state:read", lifetime=dt.timedelta(minutes=5))
    value = 3600 if field == "ttl" else wire(NOW() + dt.timedelta(hours=1))

    response = short.send("POST", PATH, {**GOOD, field: value})

    assert response.status_code == 400
    assert violations(response) == [(field, "LIFETIME_EXCEEDED")]


def test_token_cannot_exceed_its_key(owner: KeyOwner) -> None:
    response = owner.send("POST", PATH, {**GOOD, "scopes": ["state:write"]})

    assert (response.status_code, error_reason(response)) == (403, "GRANT_EXCEEDED")


def test_token_is_narrowed_with_its_key(owner: KeyOwner) -> None:
    fields = {"name": "x", "scopes": ["state:read", "apikey:read"]}
    minted = KeyClient(owner.send("POST", PATH, fields).json()["secret"])
    sooner = NOW() + dt.timedelta(minutes=1)

    ApiKey.objects.update(scopes=["apikey:read"], expires_at=sooner)

    caller = minted.get("/v1/whoami").json()["caller"]
    assert (caller["scopes"], caller["expires_at"]) == (["apikey:read"], wire(sooner))


def test_only_a_key_mints(owner: KeyOwner) -> None:
    fields = {"name": "x", "scopes": ["apikey:write", "state:read"]}
    minted = KeyClient(owner.send("POST", PATH, fields).json()["secret"])

    response = minted.send("POST", PATH, GOOD)

    assert (response.status_code, error_reason(response)) == (403, "TOKEN_KIND_UNSUPPORTED")
    error = response.json()["error"]
    assert error["message"] == (
        "This endpoint accepts an API key, but you sent a personal access token. Send an API key "
        "(isk_…)."
    )
    assert error["details"][0]["metadata"] == {"accepted": "API_KEY"}


def test_it_needs_its_scope(key_with: KeyWith) -> None:
    response = key_with("apikey:read", "state:read").send("POST", PATH, GOOD)

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
