"""PATCH /v1/api-keys/{id}."""

import datetime as dt
from typing import Any

import pytest

from apikeys import actions, races
from apikeys.actors import Actor
from apikeys.models import ApiKey, AuditEvent
from apikeys.querysets import ApiKeyQuerySet
from tests.apikeys.conftest import NOW, KeyOwner, KeyWith, expire, violations, wire
from tests.conftest import error_reason

LATER = "2999-01-01T00:00:00.000000Z"


@pytest.fixture
def target(key_with: KeyWith) -> KeyOwner:
    """The key that is changed: two scopes, and an end."""
    return key_with("state:read", "apikey:read", name="old", lifetime=dt.timedelta(days=1))


def changed(client: KeyOwner, target: KeyOwner, body: Any, query: str = "") -> dict[str, Any]:
    """Return the fields that the PATCH changed, as the answer shows them."""
    before = client.get(target.path).json()["api_key"]
    response = client.send("PATCH", target.path + query, body)
    assert response.status_code == 200, response.json()
    assert list(response.json()) == ["api_key"]
    after: dict[str, Any] = response.json()["api_key"]
    assert client.get(target.path).json()["api_key"] == after
    return {name: value for name, value in after.items() if before[name] != value}


ALL = {"name": "new", "scopes": ["state:read"], "expires_at": None}
NEW = {"name": "new"}
MASKED: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "without a mask what is present": ({"api_key": NEW}, "", NEW),
    "without a mask null clears": ({"api_key": {"expires_at": None}}, "", {"expires_at": None}),
    "without the wrapper": (NEW, "", NEW),
    "nothing": ({}, "", {}),
    "an empty mask": ({"api_key": NEW, "update_mask": ""}, "", NEW),
    "an empty list": ({"api_key": NEW, "update_mask": []}, "", NEW),
    "a null mask": ({"api_key": NEW, "update_mask": None}, "", NEW),
    "a text": ({"api_key": ALL, "update_mask": "name"}, "", NEW),
    "two in a text": (
        {"api_key": ALL, "update_mask": "name, scopes"},
        "",
        {**NEW, "scopes": ["state:read"]},
    ),
    "a list": ({"api_key": ALL, "update_mask": ["name"]}, "", NEW),
    "in the query": ({"api_key": ALL}, "?update_mask=name", NEW),
    "camel case in the query": ({"api_key": ALL}, "?updateMask=expiresAt", {"expires_at": None}),
    "camel case": ({"api_key": ALL, "updateMask": "expiresAt"}, "", {"expires_at": None}),
    "beside the fields": ({**ALL, "update_mask": "name"}, "", NEW),
    "in the mask, not in the body": (
        {"api_key": {}, "update_mask": "expires_at"},
        "",
        {"expires_at": None},
    ),
    "in the body, not in the mask": (
        {"api_key": ALL, "update_mask": ["expires_at"]},
        "",
        {"expires_at": None},
    ),
    "all": ({"api_key": ALL, "update_mask": "*"}, "", ALL),
    "all, with what is not there": (
        {"api_key": {"name": "new", "scopes": ["state:read"]}, "update_mask": "*"},
        "",
        ALL,
    ),
    "put out only": (
        {"api_key": {**NEW, "status": "x", "id": 5, "created_at": None}},
        "",
        NEW,
    ),
    "put out only, in the mask": (
        {"api_key": NEW, "update_mask": "name,status,lastUsedAt"},
        "",
        NEW,
    ),
}


@pytest.mark.parametrize(("body", "query", "effect"), MASKED.values(), ids=MASKED.keys())
def test_patch_changes_the_sent_fields(
    owner: KeyOwner, target: KeyOwner, body: Any, query: str, effect: dict[str, Any]
) -> None:
    assert changed(owner, target, body, query) == effect


REFUSED: dict[str, tuple[Any, str, list[tuple[str, str]]]] = {
    "an unknown path": (
        {"api_key": NEW, "update_mask": "nam"},
        "",
        [("update_mask", "UNKNOWN_PATH")],
    ),
    "a path into a field": (
        {"api_key": NEW, "update_mask": "binding.cluster_id"},
        "",
        [("update_mask", "UNKNOWN_PATH")],
    ),
    "a mask twice": (
        {"api_key": NEW, "update_mask": "name"},
        "?update_mask=name",
        [("update_mask", "DUPLICATE")],
    ),
    "a misspelt mask": (
        {"api_key": ALL},
        "?updatemask=name",
        [("updatemask", "UNKNOWN_PARAMETER")],
    ),
    "a number for a mask": ({"api_key": NEW, "update_mask": 5}, "", [("update_mask", "INVALID")]),
    "numbers in a mask": ({"api_key": NEW, "update_mask": [5]}, "", [("update_mask", "INVALID")]),
    "all and more": ({"api_key": ALL, "update_mask": "*,name"}, "", [("update_mask", "INVALID")]),
    "an unknown field": ({"api_key": {"nam": "x"}}, "", [("api_key.nam", "UNKNOWN_FIELD")]),
    "an unknown field outside the mask": (
        {"api_key": {**NEW, "nam": "x"}, "update_mask": "name"},
        "",
        [("api_key.nam", "UNKNOWN_FIELD")],
    ),
    "unknown fields named like the parts of an error": (
        {"api_key": {"message": "x", "code": "y"}},
        "",
        [("api_key.message", "UNKNOWN_FIELD"), ("api_key.code", "UNKNOWN_FIELD")],
    ),
    "the name cleared": ({"name": None}, "", [("name", "NULL")]),
    "all without the name": (
        {"api_key": {"scopes": ["state:read"]}, "update_mask": "*"},
        "",
        [("api_key.name", "NULL")],
    ),
    "no scopes": ({"scopes": []}, "", [("scopes", "EMPTY")]),
    "an end in the past": ({"expires_at": "2020-01-01T00:00:00Z"}, "", [("expires_at", "PAST")]),
    "beside the wrapper": (
        {"api_key": NEW, "updatemask": "x"},
        "",
        [("updatemask", "UNKNOWN_FIELD")],
    ),
}


@pytest.mark.both
@pytest.mark.parametrize(("body", "query", "faults"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_fields_are_rejected(
    owner: KeyOwner, target: KeyOwner, body: Any, query: str, faults: list[tuple[str, str]]
) -> None:
    response = owner.send("PATCH", target.path + query, body)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    assert violations(response) == faults
    assert target.key.name == "old"


def test_it_is_written_to_the_trail(owner: KeyOwner, target: KeyOwner) -> None:
    owner.send("PATCH", target.path, {"name": "new", "scopes": ["state:read"]})
    owner.send("PATCH", target.path, {"name": "new"})  # no change, no event

    (event,) = AuditEvent.objects.filter(action="api_key.update")
    assert event.resource_id == target.key_id
    assert event.details == {
        "name": {"from": "old", "to": "new"},
        "scopes": {"from": ["apikey:read", "state:read"], "to": ["state:read"]},
    }


def test_scopes_beyond_the_caller_are_rejected(owner: KeyOwner, target: KeyOwner) -> None:
    response = owner.send("PATCH", target.path, {"scopes": ["state:read", "state:write"]})

    assert (response.status_code, error_reason(response)) == (403, "GRANT_EXCEEDED")
    assert target.key.scopes == ["apikey:read", "state:read"]


def test_scopes_of_the_caller_can_be_added(owner: KeyOwner, target: KeyOwner) -> None:
    body = {"scopes": ["apikey:write", "state:read"]}

    assert changed(owner, target, body) == body


def test_a_wider_key_may_be_narrowed_and_renamed(key_with: KeyWith, target: KeyOwner) -> None:
    narrow = key_with("apikey:read", "apikey:write")

    assert changed(narrow, target, {"name": "new", "scopes": ["state:read"]}) == {
        "name": "new", "scopes": ["state:read"],
    }  # fmt: skip


@pytest.mark.parametrize("expires_at", [None, LATER])
def test_key_with_more_scopes_cannot_be_extended(
    key_with: KeyWith, target: KeyOwner, expires_at: str | None
) -> None:
    response = key_with("apikey:write").send("PATCH", target.path, {"expires_at": expires_at})

    assert (response.status_code, error_reason(response)) == (403, "GRANT_EXCEEDED")


def test_an_end_may_be_brought_forward(key_with: KeyWith, target: KeyOwner) -> None:
    sooner = wire(NOW() + dt.timedelta(hours=1))

    response = key_with("apikey:write").send("PATCH", target.path, {"expires_at": sooner})

    assert response.json()["api_key"]["expires_at"] == sooner


def test_a_revoked_key_cannot_be_changed(owner: KeyOwner, target: KeyOwner) -> None:
    actions.revoke_api_key(key=target.key, actor=Actor(name="test"))

    response = owner.send("PATCH", target.path, {"expires_at": None})

    assert (response.status_code, error_reason(response)) == (400, "API_KEY_REVOKED")
    assert response.json()["error"]["status"] == "FAILED_PRECONDITION"


def test_an_expired_key_cannot_be_changed(owner: KeyOwner, target: KeyOwner) -> None:
    expire(target.key)

    response = owner.send("PATCH", target.path, {"name": "new"})

    assert (response.status_code, error_reason(response)) == (400, "API_KEY_EXPIRED")
    assert response.json()["error"]["status"] == "FAILED_PRECONDITION"


def test_an_expired_key_may_be_extended_by_another(owner: KeyOwner, target: KeyOwner) -> None:
    expire(target.key)

    assert changed(owner, target, {"expires_at": LATER}) == {
        "expires_at": LATER, "status": "API_KEY_STATUS_ACTIVE", "unusable_reason": None,
    }  # fmt: skip
    assert target.get("/v1/whoami").status_code == 200


def test_key_of_another_owner_is_not_found(owner: KeyOwner, outsider: KeyOwner) -> None:
    response = owner.send("PATCH", outsider.path, {"name": "x"})

    assert (response.status_code, error_reason(response)) == (404, "API_KEY_NOT_FOUND")


def test_concurrent_revocation_is_checked_again(
    owner: KeyOwner, target: KeyOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_seen = ApiKeyQuerySet.as_seen

    def after_a_revocation(self: Any, key: ApiKey) -> Any:
        ApiKey.objects.revoke(key.pk)
        return as_seen(self, key)

    monkeypatch.setattr(ApiKeyQuerySet, "as_seen", after_a_revocation)
    response = owner.send("PATCH", target.path, {"name": "new"})

    assert (response.status_code, error_reason(response)) == (400, "API_KEY_REVOKED")
    assert target.key.name == "old"


def test_repeated_conflict_gets_409(
    owner: KeyOwner, target: KeyOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(races, "ATTEMPTS", 2)
    monkeypatch.setattr(ApiKeyQuerySet, "as_seen", lambda self, _key: self.none())

    for response in (
        owner.send("PATCH", target.path, {"name": "new"}),
        owner.send("POST", owner.path + ":rotate"),
    ):
        assert (response.status_code, error_reason(response)) == (409, "CONCURRENT_CHANGE")


def test_it_needs_its_scope(key_with: KeyWith, target: KeyOwner) -> None:
    response = key_with("apikey:read").send("PATCH", target.path, {"name": "new"})

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
