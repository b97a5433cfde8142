"""Expiry is part of a grant: nothing outlives the credential that made or changed it."""

import datetime as dt
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apikeys import actions
from apikeys.actions import access_tokens, api_keys
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, User
from apikeys.scopes import MANAGING
from apikeys.tokens import TokenKind
from tests.apikeys.conftest import NOW, KeyClient, KeyOwner, KeyWith, violations, wire
from tests.conftest import error_reason

SCOPES = ("apikey:read", "apikey:write", "state:read")
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


@pytest.fixture
def ending(key_with: KeyWith) -> KeyOwner:
    """A key that ends tomorrow."""
    return key_with(*SCOPES, name="ending", lifetime=DAY)


def minted(client: KeyClient, **fields: Any) -> KeyClient:
    scopes = client.get("/v1/whoami").json()["caller"]["scopes"]
    body = {"name": "minted", "scopes": scopes, **fields}
    answer = client.send("POST", "/v1/access-tokens", body)
    assert answer.status_code == 201, answer.content
    return KeyClient(answer.json()["secret"])


def create(client: KeyClient, **fields: Any) -> Any:
    return client.send("POST", "/v1/api-keys", {"name": "new", "scopes": ["state:read"], **fields})


def refused_for_its_end(answer: Any, latest: dt.datetime | None) -> bool:
    info = answer.json()["error"]["details"][0]
    return (answer.status_code, info["reason"], info["metadata"]) == (
        403, "GRANT_EXCEEDED", {"expires_at": wire(latest)},
    )  # fmt: skip


def test_default_expiry_is_the_expiry_of_the_maker(ending: KeyOwner, owner: KeyOwner) -> None:
    answer = create(ending)
    assert answer.status_code == 201
    assert answer.json()["api_key"]["expires_at"] == wire(ending.key.expires_at)
    assert create(owner).json()["api_key"]["expires_at"] is None
    short = minted(owner, ttl=60)
    end = AccessToken.objects.get(name="minted").expires_at
    assert create(short).json()["api_key"]["expires_at"] == wire(end)


@pytest.mark.parametrize("later", [None, "2999-01-01T00:00:00Z"])
def test_later_expiry_than_the_maker_is_rejected(
    ending: KeyOwner, owner: KeyOwner, later: str | None
) -> None:
    assert refused_for_its_end(create(ending, expires_at=later), ending.key.expires_at)
    short = minted(owner, ttl=60)
    end = AccessToken.objects.get(name="minted").expires_at
    assert refused_for_its_end(create(short, expires_at=later), end)
    assert not ApiKey.objects.filter(name="new").exists()


def test_equal_or_earlier_expiry_is_accepted(ending: KeyOwner) -> None:
    end = ending.key.expires_at
    assert end is not None
    for moment in (end, end - HOUR):
        answer = create(ending, expires_at=wire(moment))
        assert (answer.status_code, answer.json()["api_key"]["expires_at"]) == (201, wire(moment))


@pytest.mark.parametrize("later", [None, "2999-01-01T00:00:00Z"])
def test_caller_cannot_extend_a_key_beyond_its_own_expiry(
    ending: KeyOwner, key_with: KeyWith, later: str | None
) -> None:
    end = ending.key.expires_at
    target = key_with("state:read", lifetime=HOUR)
    for path in (ending.path, target.path):
        assert refused_for_its_end(ending.send("PATCH", path, {"expires_at": later}), end)
    answer = ending.send("PATCH", target.path, {"expires_at": wire(end)})
    assert answer.json()["api_key"]["expires_at"] == wire(end)


def test_caller_with_later_expiry_can_extend_a_key(owner: KeyOwner, ending: KeyOwner) -> None:
    answer = owner.send("PATCH", ending.path, {"expires_at": None})
    assert (answer.status_code, answer.json()["api_key"]["expires_at"]) == (200, None)


def test_caller_cannot_widen_or_rotate_a_key_with_later_expiry(
    ending: KeyOwner, key_with: KeyWith, owner: KeyOwner
) -> None:
    target = key_with("state:read")
    end = ending.key.expires_at
    wider = {"scopes": ["state:read", "apikey:read"]}
    assert refused_for_its_end(ending.send("PATCH", target.path, wider), end)
    assert refused_for_its_end(ending.send("POST", target.path + ":rotate"), end)
    # A token for an hour does not rotate its own key, which has no end.
    short = minted(owner)
    token_end = AccessToken.objects.get(name="minted").expires_at
    assert refused_for_its_end(short.send("POST", owner.path + ":rotate"), token_end)
    assert ending.send("PATCH", target.path, {"name": "renamed"}).status_code == 200
    assert ending.send("POST", ending.path + ":rotate").status_code == 200


def test_all_of_a_mask_clears_no_end(ending: KeyOwner) -> None:
    body = {"api_key": {"name": "x", "scopes": ["state:read"]}, "update_mask": "*"}
    assert refused_for_its_end(ending.send("PATCH", ending.path, body), ending.key.expires_at)


@pytest.fixture
def retired(owner: KeyOwner) -> KeyOwner:
    """The secret before the last rotation, in its grace."""
    assert owner.send("POST", owner.path + ":rotate", {"grace_period": 3600}).status_code == 200
    return owner


def test_retired_secret_cannot_create_or_change(retired: KeyOwner, key_with: KeyWith) -> None:
    other = key_with("state:read", name="other")
    token, _ = actions.issue_access_token(
        kind=TokenKind.PERSONAL, user=other.key.created_by, name="x", scopes=["state:read"],
        expires_at=None, actor=Actor(name="test"),
    )  # fmt: skip
    for method, path, body in [
        ("POST", "/v1/api-keys", {"name": "new", "scopes": ["state:read"]}),
        ("PATCH", other.path, {"name": "new"}),
        ("PATCH", retired.path, {"name": "new"}),
        ("POST", other.path + ":rotate", None),
        ("POST", retired.path + ":rotate", None),
        ("POST", other.path + ":revoke", None),
        ("POST", retired.path + ":revoke", None),
        ("POST", f"/v1/access-tokens/{token.pk}:revoke", None),
    ]:
        answer = retired.send(method, path, body)
        assert (answer.status_code, error_reason(answer)) == (403, "SECRET_RETIRED"), path
    assert ApiKey.objects.filter(revoked_at=None, name__in=["test", "other"]).count() == 2


def test_token_from_before_the_rotation_cannot_manage_keys(owner: KeyOwner) -> None:
    before = minted(owner)
    new = KeyClient(owner.send("POST", owner.path + ":rotate").json()["secret"])
    for client, status in ((before, 403), (minted(new), 200)):
        answer = client.send("PATCH", owner.path, {"name": "taken"})
        assert (answer.status_code, create(client).status_code // 100) == (status, status // 100)
    answer = before.send("POST", owner.path + ":revoke")
    assert (answer.status_code, error_reason(answer)) == (403, "SECRET_RETIRED")
    # Other operations still work.
    assert before.get("/v1/api-keys").status_code == 200
    assert before.get("/api/v1/states").status_code == 200


def test_a_retired_secret_reads_and_mints_until_its_grace_ends(retired: KeyOwner) -> None:
    assert retired.get("/v1/api-keys").status_code == 200
    end = retired.key.previous_digest_expires_at
    assert end is not None
    body = {"name": "minted", "scopes": ["state:read"]}
    answer = retired.send("POST", "/v1/access-tokens", {**body, "expires_at": wire(end)})
    assert answer.status_code == 201
    answer = retired.send("POST", "/v1/access-tokens", {**body, "ttl": 3700})
    assert violations(answer) == [("ttl", "LIFETIME_EXCEEDED")]


@pytest.mark.parametrize("scope", sorted(MANAGING))
def test_a_retired_secret_mints_no_token_that_can_manage(scope: str, key_with: KeyWith) -> None:
    """Otherwise the token could redirect a webhook, for example, beyond the grace period."""
    key = key_with("apikey:write", scope)
    body = {"name": "minted", "scopes": [scope]}
    assert key.send("POST", "/v1/access-tokens", body).status_code == 201
    assert key.send("POST", key.path + ":rotate", {"grace_period": 3600}).status_code == 200

    answer = key.send("POST", "/v1/access-tokens", body)

    assert (answer.status_code, error_reason(answer)) == (403, "GRANT_EXCEEDED")


@pytest.mark.parametrize("path", ["/v1/api-keys", "/v1/access-tokens"])
def test_expiry_before_the_creation_of_the_key_is_rejected(
    owner: KeyOwner, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end was in the future when it was validated, and is not when the row is made."""
    module = api_keys if path == "/v1/api-keys" else access_tokens
    real = module.refuse_expired
    soon = NOW() + dt.timedelta(milliseconds=300)

    def later(credential: Any) -> None:
        credential.expires_at = credential.created_at
        real(credential)

    monkeypatch.setattr(module, "refuse_expired", later)
    answer = owner.send("POST", path, {"name": "x", "scopes": ["state:read"],
                                       "expires_at": wire(soon)})  # fmt: skip

    assert (answer.status_code, violations(answer)) == (400, [("expires_at", "PAST")])


@pytest.mark.parametrize("microseconds", [200, 500, 1000, 2000, 4000, 8000])
@pytest.mark.parametrize("path", ["/v1/api-keys", "/v1/access-tokens"])
def test_near_expiry_is_accepted(owner: KeyOwner, path: str, microseconds: int) -> None:
    body = {"name": "x", "scopes": ["state:read"]}
    for _ in range(10):
        end = NOW() + dt.timedelta(microseconds=microseconds)
        answer = owner.send("POST", path, {**body, "expires_at": wire(end)})
        if answer.status_code != 201:
            assert violations(answer)[0][1] == "PAST"


def test_past_expiry_is_rejected_by_the_command(
    operator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = access_tokens.refuse_expired

    def later(credential: Any) -> None:
        credential.expires_at = credential.created_at
        real(credential)

    monkeypatch.setattr(access_tokens, "refuse_expired", later)
    with pytest.raises(CommandError, match="expires_at: Choose a time in the future"):
        call_command(
            "issue_token", "--user", operator.username, "--name", "x", "--scopes", "state:read",
            "--expires-at", wire(NOW() + HOUR),
        )  # fmt: skip


def test_past_expiry_is_rejected_by_the_admin(
    monkeypatch: pytest.MonkeyPatch, client: Any, db: None
) -> None:
    real = api_keys.refuse_expired

    def later(credential: Any) -> None:
        credential.expires_at = credential.created_at
        real(credential)

    monkeypatch.setattr(api_keys, "refuse_expired", later)
    client.force_login(User.objects.create_superuser("root"))
    end = (NOW() + HOUR).strftime("%Y-%m-%dT%H:%M")
    fields = {"owner": "root", "name": "x", "scopes": ["state:read"], "expires_at": end}
    page = client.post("/admin/apikeys/apikey/add/", fields)

    assert page.status_code == 200
    assert "Choose a time in the future." in page.content.decode()
    assert not ApiKey.objects.exists()
