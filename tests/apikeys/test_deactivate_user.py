"""manage.py deactivate_user: departing users with keys, tokens and trust policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.test import Client

from apikeys.models import AccessToken, ApiKey, AuditEvent, TrustPolicy, User
from tests.apikeys.federation.test_trust_command import ISSUER, POLICY
from tests.apikeys.test_commands import run

pytestmark = pytest.mark.django_db
USER = "/v1/whoami"


@pytest.fixture
def ada(tmp_path: Path) -> dict[str, str]:
    """A user with a key, an issued token, a minted token and a policy."""
    user = User.objects.create_user("ada", password="p", is_staff=True)
    options = ("--user", "ada", "--name", "n", "--scopes", "apikey:write,state:read", "--json")
    (key,) = json.loads(run("seed_apikeys", *options))["api_keys"]
    token = json.loads(run("issue_token", *options))
    body = {"name": "minted", "scopes": ["state:read"]}
    minted = Client().post(
        "/v1/access-tokens",
        json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Bearer {key['secret']}"},
    )
    file = tmp_path / "trust.toml"
    file.write_text(ISSUER + POLICY.replace('"operator"', '"ada"'))
    run("trust", "--file", str(file))
    assert user.trust_policies.count() == 1
    return {"key": key["secret"], "token": token["secret"], "minted": minted.json()["secret"]}


def statuses(secrets: dict[str, str]) -> set[int]:
    return {
        Client().get(USER, headers={"Authorization": f"Bearer {secret}"}).status_code
        for secret in secrets.values()
    }


def deactivate(*options: str) -> Any:
    return json.loads(run("deactivate_user", "ada", "--json", *options))


def test_keys_and_tokens_stop_at_once(ada: dict[str, str]) -> None:
    person = Client()
    assert person.login(username="ada", password="p")
    assert statuses(ada) == {200}

    outcome = deactivate()

    assert outcome == {
        "user": "ada", "changed": True, "revoked": False, "dry_run": False,
        "api_keys": 1, "access_tokens": 1, "trust_policies": 1, "webhooks": 0,
    }  # fmt: skip
    assert statuses(ada) == {401}
    assert person.get("/admin/").status_code == 302
    (event,) = AuditEvent.objects.filter(actor_name="command deactivate_user")
    assert event.action == "user.change"
    assert event.details == {"name": "ada", "is_active": False}
    assert event.resource_id == str(User.objects.get(username="ada").pk)


def test_dry_run_makes_no_changes(ada: dict[str, str]) -> None:
    events = AuditEvent.objects.count()

    assert deactivate("--revoke", "--dry-run")["api_keys"] == 1

    assert statuses(ada) == {200}
    assert AuditEvent.objects.count() == events


def test_revoked_credentials_stay_revoked_after_reactivation(ada: dict[str, str]) -> None:
    deactivate("--revoke")
    User.objects.filter(username="ada").update(is_active=True)

    assert statuses(ada) == {401}
    assert not ApiKey.objects.active().exists()
    assert not AccessToken.objects.issued().active().exists()
    assert TrustPolicy.objects.get().disabled_at is not None
    actions = AuditEvent.objects.filter(actor_name="command deactivate_user")
    assert sorted(actions.values_list("action", flat=True)) == [
        "access_token.revoke", "api_key.revoke", "trust_policy.disable", "user.change",
    ]  # fmt: skip


def test_it_is_idempotent(ada: dict[str, str]) -> None:
    deactivate()
    events = AuditEvent.objects.count()

    assert deactivate()["changed"] is False

    assert AuditEvent.objects.count() == events
    assert deactivate("--revoke")["revoked"] is True
    assert deactivate("--revoke")["api_keys"] == 0


def test_unknown_user_is_rejected() -> None:
    with pytest.raises(CommandError, match="there is no user 'bob'"):
        run("deactivate_user", "bob")


def test_the_last_active_superuser_is_refused() -> None:
    first, second = (User.objects.create_superuser(name) for name in ("first", "second"))
    run("deactivate_user", "first")

    with pytest.raises(CommandError, match="second is the last active superuser"):
        run("deactivate_user", "second", "--revoke")

    second.refresh_from_db()
    assert second.is_active
    # An inactive one stays idempotent.
    run("deactivate_user", first.username)
