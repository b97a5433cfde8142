"""POST /v1/api-keys."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.utils import timezone

from apikeys import tokens
from apikeys.actions import rules
from apikeys.errors import ExpiryPast
from apikeys.models import ApiKey, AuditEvent, User
from tests.apikeys.conftest import KeyOwner, KeyWith, violations, wire
from tests.conftest import error_reason

PATH = "/v1/api-keys"


@pytest.mark.parametrize("path", [PATH, f"{PATH}/"])
def test_a_key_is_created_for_the_caller(owner: KeyOwner, operator: User, path: str) -> None:
    expires_at = timezone.now() + dt.timedelta(days=30)
    fields = {"name": "ci", "scopes": ["state:read"], "expires_at": wire(expires_at)}

    response = owner.send("POST", path, {"api_key": fields})

    key = ApiKey.objects.latest("id")
    secret = response.json()["secret"]
    assert response.status_code == 201
    assert response["Cache-Control"] == "no-store"
    assert response.json() == {
        "api_key": {
            "id": key.pk,
            "name": "ci",
            "scopes": ["state:read"],
            "status": "API_KEY_STATUS_ACTIVE",
            "binding": None,
            "expires_at": wire(expires_at),
            "last_used_at": None,
            "revoked_at": None,
            "created_by": {
                "id": str(operator.pk), "display_name": "The operator", "email": "",
            },
            "created_at": wire(key.created_at),
            "made_by": owner.key_id,
            "unusable_reason": None,
"allowed_networks": None,
"last_used_address": None,
            "old_secret_expires_at": None,
        },
        "secret": secret,
    }  # fmt: skip
    assert tokens.kind_of(secret) is tokens.TokenKind.API_KEY
    assert bytes(key.digest) == tokens.digest(secret)


def test_the_wrapper_may_be_left_out(owner: KeyOwner) -> None:
    response = owner.send("POST", PATH, {"name": " ci ", "scopes": ["state:read", "state:read"]})

    assert response.status_code == 201
    shown = response.json()["api_key"]
    assert (shown["name"], shown["scopes"], shown["expires_at"]) == ("ci", ["state:read"], None)


def test_it_is_written_to_the_trail(owner: KeyOwner) -> None:
    response = owner.send("POST", PATH, {"name": "ci", "scopes": ["state:read"]})

    event = AuditEvent.objects.latest("id")
    assert (event.action, event.resource_id) == ("api_key.create", response.json()["api_key"]["id"])
    assert (event.actor_name, event.token_id) == ("operator", owner.key_id)
    assert event.request_id == response["X-Request-ID"]
    assert event.details == {
        "name": "ci", "scopes": ["state:read"], "expires_at": None, "binding": None,
    }  # fmt: skip


def test_output_only_fields_are_ignored(owner: KeyOwner) -> None:
    more = {"id": "key-1", "status": "API_KEY_STATUS_REVOKED", "revoked_at": "x", "created_by": 5}

    response = owner.send("POST", PATH, {"name": "ci", "scopes": ["state:read"], **more})

    assert response.status_code == 201
    assert response.json()["api_key"]["status"] == "API_KEY_STATUS_ACTIVE"


GOOD: dict[str, Any] = {"name": "ci", "scopes": ["state:read"]}
REFUSED: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "nothing": ({}, [("api_key.name", "REQUIRED"), ("api_key.scopes", "REQUIRED")]),
    "null": (None, [("body", "INVALID")]),
    "a list": ([], [("body", "INVALID")]),
    "no object in the wrapper": ({"api_key": []}, [("api_key", "INVALID")]),
    "beside the wrapper": ({"api_key": GOOD, "secret": "x"}, [("secret", "UNKNOWN_FIELD")]),
    "a mask": ({"api_key": GOOD, "update_mask": "*"}, [("update_mask", "UNKNOWN_FIELD")]),
    "an unknown field": ({**GOOD, "scope": "x"}, [("scope", "UNKNOWN_FIELD")]),
    "an unknown field beside a wrong one": (
        {"api_key": {**GOOD, "name": "", "x": 1}},
        [("api_key.name", "BLANK"), ("api_key.x", "UNKNOWN_FIELD")],
    ),
    "an empty name": ({**GOOD, "name": "  "}, [("name", "BLANK")]),
    "a null name": ({**GOOD, "name": None}, [("name", "NULL")]),
    "a number for a name": ({**GOOD, "name": 5}, [("name", "INVALID")]),
    "a long name": ({**GOOD, "name": "x" * 201}, [("name", "MAX_LENGTH")]),
    "no scopes": ({**GOOD, "scopes": []}, [("scopes", "EMPTY")]),
    "a text for scopes": ({**GOOD, "scopes": "state:read"}, [("scopes", "NOT_A_LIST")]),
    "an object for scopes": ({**GOOD, "scopes": {}}, [("scopes", "NOT_A_LIST")]),
    "an unknown scope": (
        {"api_key": {**GOOD, "scopes": ["state:read", "state:raed"]}},
        [("api_key.scopes.1", "UNKNOWN_SCOPE")],
    ),
    "a number for a scope": ({**GOOD, "scopes": [7]}, [("scopes.0", "UNKNOWN_SCOPE")]),
    "very many scopes": ({**GOOD, "scopes": ["x"] * 1000}, [("scopes", "MAX_LENGTH")]),
    "an end without an offset": (
        {**GOOD, "expires_at": "2999-01-01T00:00:00"},
        [("expires_at", "INVALID")],
    ),
    "an end in the past": (
        {**GOOD, "expires_at": "2020-01-01T00:00:00Z"},
        [("expires_at", "PAST")],
    ),
    "a day that is none": (
        {**GOOD, "expires_at": "2999-02-30T00:00:00Z"},
        [("expires_at", "INVALID")],
    ),
    "an end after all years": (
        {**GOOD, "expires_at": "9999-12-31T23:59:59-05:00"},
        [("expires_at", "INVALID")],
    ),
    "a number for an end": ({**GOOD, "expires_at": 4102444800}, [("expires_at", "INVALID")]),
    "a text for a binding": ({**GOOD, "binding": "x"}, [("binding", "INVALID")]),
    "a cluster that is none": (
        {**GOOD, "binding": {"cluster_id": "x"}},
        [("binding.cluster_id", "INVALID")],
    ),
    "a cluster without hyphens": (
        {**GOOD, "binding": {"cluster_id": "0" * 32}},
        [("binding.cluster_id", "INVALID")],
    ),
    "numbers for components": (
        {**GOOD, "binding": {"component_ids": [0, False]}},
        [("binding.component_ids.0", "INVALID"), ("binding.component_ids.1", "INVALID")],
    ),
    "bound both ways": (
        {
            **GOOD,
            "binding": {
                "cluster_id": str(uuid.UUID(int=0)),
                "component_ids": [str(uuid.UUID(int=1))],
            },
        },
        [("binding.cluster_id", "BOTH")],
    ),
    "bound to no component": (
        {**GOOD, "binding": {"component_ids": []}},
        [("binding.component_ids", "EMPTY")],
    ),
}


@pytest.mark.both
@pytest.mark.parametrize(("body", "faults"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_body_is_rejected(
    owner: KeyOwner, body: Any, faults: list[tuple[str, str]]
) -> None:
    response = owner.send("POST", PATH, b"null" if body is None else body)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    assert violations(response) == faults
    assert ApiKey.objects.count() == 1


def test_a_misspelt_word_is_guessed(owner: KeyOwner) -> None:
    body = {"nam": "ci", "scopes": ["state:raed"]}

    message = owner.send("POST", PATH, body).json()["error"]["message"]

    assert "did you mean 'name'?" in message
    assert "did you mean 'state:read'?" in message


def test_chunked_body_gets_411(owner: KeyOwner) -> None:
    response = owner.generic(
        "POST", PATH, b"", "application/json", headers={"Transfer-Encoding": "chunked"}
    )

    assert (response.status_code, error_reason(response)) == (411, "LENGTH_REQUIRED")


def test_a_form_is_not_json(owner: KeyOwner) -> None:
    response = owner.post(PATH, {"name": "ci"})

    assert (response.status_code, error_reason(response)) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_scopes_beyond_the_caller_are_rejected(owner: KeyOwner) -> None:
    response = owner.send("POST", PATH, {**GOOD, "scopes": ["state:admin", "state:read"]})

    assert (response.status_code, error_reason(response)) == (403, "GRANT_EXCEEDED")
    assert response.json()["error"]["details"][0]["metadata"] == {"scopes": "state:admin"}
    assert response["WWW-Authenticate"] == (
        'Bearer error="insufficient_scope", scope="state:admin"'
    )
    assert ApiKey.objects.count() == 1


def test_it_needs_its_scope(key_with: KeyWith) -> None:
    response = key_with("apikey:read", "state:read").send("POST", PATH, GOOD)

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
    assert response["WWW-Authenticate"] == (
        'Bearer error="insufficient_scope", scope="apikey:write"'
    )


def test_an_expiry_of_this_moment_is_past(monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)

    with pytest.raises(ExpiryPast):
        rules.refuse_expired(ApiKey(expires_at=now))
    rules.refuse_expired(ApiKey(expires_at=now + dt.timedelta(microseconds=1)))
