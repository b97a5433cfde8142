"""POST /v1/api-keys/{id}:rotate."""

import datetime as dt
from typing import Any

import pytest

from apikeys import actions, exposure
from apikeys.actors import Actor
from apikeys.api import views
from apikeys.models import ApiKey, AuditEvent
from apikeys.querysets import ApiKeyQuerySet
from apikeys.tokens import TokenKind, kind_of
from tests.apikeys.conftest import NOW, KeyClient, KeyOwner, KeyWith, expire, violations, wire
from tests.conftest import error_reason


def whoami(secret: str) -> int:
    status: int = KeyClient(secret).get("/v1/whoami").status_code
    return status


@pytest.mark.parametrize("body", [None, {}, {"grace_period": 0}, {"grace_period": None}])
def test_the_old_secret_ends_at_once(owner: KeyOwner, body: Any) -> None:
    before = owner.get(owner.path).json()["api_key"]

    response = owner.send("POST", owner.path + ":rotate", body)

    secret = response.json()["secret"]
    assert response.status_code == 200
    assert response["Cache-Control"] == "no-store"
    assert response.json() == {"api_key": before, "secret": secret}
    assert kind_of(secret) is TokenKind.API_KEY
    assert (whoami(owner.secret), whoami(secret)) == (401, 200)


def test_expired_secret_is_not_reported_with_the_current_secret(owner: KeyOwner) -> None:
    new = owner.send("POST", owner.path + ":rotate").json()["secret"]

    found = exposure.working([exposure.digest_of(each) for each in (owner.secret, new)])

    assert list(found) == [exposure.digest_of(new)]


@pytest.mark.parametrize("grace", ["3600s", 3600, "3600.5s"])
def test_both_work_in_the_grace_period(owner: KeyOwner, grace: Any) -> None:
    secret = owner.send("POST", owner.path + ":rotate/", {"grace_period": grace}).json()["secret"]

    assert (whoami(owner.secret), whoami(secret)) == (200, 200)
    end = owner.key.previous_digest_expires_at
    assert end is not None
    # Responses to the old secret contain its expiry; the new secret does not expire.
    answer = owner.get("/v1/whoami")
    assert answer.json()["caller"]["expires_at"] == wire(end)
    assert answer["Token-Expires-At"] == end.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert "Token-Expires-At" not in KeyClient(secret).get("/v1/whoami")

    ApiKey.objects.update(previous_digest_expires_at=NOW())
    assert (whoami(owner.secret), whoami(secret)) == (401, 200)


def test_it_is_written_to_the_trail(owner: KeyOwner) -> None:
    owner.send("POST", owner.path + ":rotate", {"grace_period": 60})

    event = AuditEvent.objects.latest("id")
    assert (event.action, event.resource_id) == ("api_key.rotate", owner.key_id)
    assert event.details == {"grace_period_seconds": 60}


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({"grace_period": 604801}, [("grace_period", "RANGE")]),
        ({"grace_period": -1}, [("grace_period", "RANGE")]),
        ({"grace_period": 10**30}, [("grace_period", "INVALID")]),
        ({"grace_period": "1h"}, [("grace_period", "INVALID")]),
        ({"grace_period": True}, [("grace_period", "INVALID")]),
        ({"grace": 1}, [("grace", "UNKNOWN_FIELD")]),
        ([], [("body", "INVALID")]),
    ],
)
def test_invalid_body_is_rejected(
    owner: KeyOwner, body: Any, faults: list[tuple[str, str]]
) -> None:
    response = owner.send("POST", owner.path + ":rotate", body)

    assert response.status_code == 400
    if "grace_period" in body and body["grace_period"] == 10**30:
        assert error_reason(response) in {"INVALID_JSON", "INVALID_FIELDS"}
    else:
        assert violations(response) == faults
    assert whoami(owner.secret) == 200


def test_key_with_more_scopes_cannot_be_rotated(owner: KeyOwner, key_with: KeyWith) -> None:
    wider = key_with("state:admin", "state:read")

    response = owner.send("POST", wider.path + ":rotate")

    assert (response.status_code, error_reason(response)) == (403, "GRANT_EXCEEDED")
    assert whoami(wider.secret) == 200


def test_a_narrower_key_may_be_rotated(owner: KeyOwner, key_with: KeyWith) -> None:
    narrow = key_with("state:read")

    secret = owner.send("POST", narrow.path + ":rotate").json()["secret"]

    assert (whoami(narrow.secret), whoami(secret)) == (401, 200)


def test_revoked_key_cannot_be_rotated(owner: KeyOwner, key_with: KeyWith) -> None:
    other = key_with("state:read")
    actions.revoke_api_key(key=other.key, actor=Actor(name="test"))

    response = owner.send("POST", other.path + ":rotate")

    assert (response.status_code, error_reason(response)) == (400, "API_KEY_REVOKED")


def test_expired_key_is_rejected(owner: KeyOwner, key_with: KeyWith) -> None:
    other = key_with("state:read")
    expire(other.key)

    response = owner.send("POST", other.path + ":rotate")

    assert (response.status_code, error_reason(response)) == (400, "API_KEY_EXPIRED")


def test_key_of_another_owner_is_not_found(owner: KeyOwner, outsider: KeyOwner) -> None:
    response = owner.send("POST", outsider.path + ":rotate")

    assert (response.status_code, error_reason(response)) == (404, "API_KEY_NOT_FOUND")


def rotated_meanwhile(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Let a competing request change the key between its read and its write."""
    as_seen = ApiKeyQuerySet.as_seen
    done = []

    def after_another(self: Any, key: ApiKey) -> Any:
        if not done:
            done.append(ApiKey.objects.filter(pk=key.pk).change(**changes))
        return as_seen(self, key)

    monkeypatch.setattr(ApiKeyQuerySet, "as_seen", after_another)


def test_another_rotation_was_faster(
    owner: KeyOwner, key_with: KeyWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = key_with("state:read")
    rotated_meanwhile(monkeypatch, digest=b"1" * 32)

    response = owner.send("POST", target.path + ":rotate")

    assert (response.status_code, error_reason(response)) == (409, "CONCURRENT_CHANGE")
    assert response.json()["error"]["status"] == "ABORTED"
    assert bytes(target.key.digest) == b"1" * 32


def test_concurrently_rotated_secret_is_rejected(
    owner: KeyOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    rotated_meanwhile(monkeypatch, digest=b"1" * 32)

    response = owner.send("POST", owner.path + ":rotate")

    assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_INVALID")
    assert bytes(owner.key.digest) == b"1" * 32


def test_another_change_was_faster(owner: KeyOwner, monkeypatch: pytest.MonkeyPatch) -> None:
    rotated_meanwhile(monkeypatch, name="new")

    response = owner.send("POST", owner.path + ":rotate")

    assert response.status_code == 200
    assert response.json()["api_key"]["name"] == "new"
    assert whoami(response.json()["secret"]) == 200


@pytest.mark.both
@pytest.mark.parametrize(
    ("previous", "grace", "refusal"),
    [
        (None, None, (401, "CREDENTIALS_INVALID")),
        (b"2" * 32, 60, (401, "CREDENTIALS_INVALID")),
        ("own", 60, (503, "CALLER_CHANGED")),  # and when it comes again, 403 SECRET_RETIRED
        ("own", -60, (401, "CREDENTIALS_INVALID")),
    ],
)
def test_a_secret_that_ended_after_it_was_let_in_does_not_rotate(
    owner: KeyOwner,
    previous: Any,
    grace: int | None,
    refusal: tuple[int, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    get_object = views.ApiKeyViewSet.get_object
    own = bytes(owner.key.digest)

    def after_another_rotation(self: Any) -> Any:
        ApiKey.objects.filter(pk=owner.key_id, digest=own).change(
            digest=b"1" * 32,
            previous_digest=own if previous == "own" else previous,
            previous_digest_expires_at=grace and NOW() + dt.timedelta(seconds=grace),
        )
        return get_object(self)

    monkeypatch.setattr(views.ApiKeyViewSet, "get_object", after_another_rotation)

    answer = owner.send("POST", owner.path + ":rotate")
    assert (answer.status_code, error_reason(answer)) == refusal
    assert bytes(owner.key.digest) == b"1" * 32
