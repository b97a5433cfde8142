"""The reason for which a credential does not work: authentication, API and admin agree."""

import datetime as dt
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, Issuer, TrustPolicy, User
from apikeys.usability import UnusableReason, status_word
from tests.apikeys.conftest import KeyWith
from tests.apikeys.exchanging import Pipeline
from tests.apikeys.test_metrics import bearer
from tests.conftest import ClientWith, error_reason
from tests.support.people import person

DAY = dt.timedelta(days=1)


def _past(model: Any) -> Callable[[], object]:
    now = timezone.now()
    return lambda: model.objects.update(created_at=now - 2 * DAY, expires_at=now - DAY)


def _now(model: Any, column: str) -> Callable[[], object]:
    return lambda: model.objects.update(**{column: timezone.now()})


#: Each fault, and the reason it gives for a key, a minted, an issued and a pipeline's token.
FAULTS: dict[
    str, tuple[Callable[[], object], tuple[str | None, str | None, str | None, str | None]]
]
FAULTS = {
    "none": (lambda: None, (None, None, None, None)),
    "revoked tokens": (_now(AccessToken, "revoked_at"), (None, *3 * ["REVOKED"])),
    "expired tokens": (_past(AccessToken), (None, *3 * ["EXPIRED"])),
    "revoked key": (_now(ApiKey, "revoked_at"), ("REVOKED", "API_KEY_REVOKED", None, None)),
    "expired key": (_past(ApiKey), ("EXPIRED", "API_KEY_EXPIRED", None, None)),
    "disabled policy": (
        _now(TrustPolicy, "disabled_at"),
        (None, None, None, "TRUST_POLICY_DISABLED"),
    ),
    "expired policy": (_past(TrustPolicy), (None, None, None, "TRUST_POLICY_EXPIRED")),
    "disabled issuer": (_now(Issuer, "disabled_at"), (None, None, None, "ISSUER_DISABLED")),
    "inactive owner": (
        lambda: User.objects.update(is_active=False),
        ("OWNER_INACTIVE",) * 4,
    ),
    "idle owner": (
        lambda: User.objects.update(is_staff=True, last_login=timezone.now() - 91 * DAY),
        ("OWNER_IDLE",) * 4,
    ),
}
FAULTS["revoked key of an inactive owner"] = (
    lambda: (FAULTS["revoked key"][0](), FAULTS["inactive owner"][0]()),
    ("REVOKED", "API_KEY_REVOKED", "OWNER_INACTIVE", "OWNER_INACTIVE"),
)
FAULTS["expired key of an idle owner"] = (
    lambda: (FAULTS["expired key"][0](), FAULTS["idle owner"][0]()),
    ("OWNER_IDLE",) * 4,
)


@pytest.fixture(autouse=True)
def ninety_days(settings: Any) -> None:
    settings.OWNER_IDLE_DAYS = 90


@pytest.mark.both
@pytest.mark.parametrize("fault", FAULTS)
def test_everything_agrees_with_authentication(
    fault: str,
    key_with: KeyWith,
    client_with: ClientWith,
    pipeline: Pipeline,
) -> None:
    key = key_with("apikey:write", "apikey:read", "state:read")
    wish = {"name": "minted", "scopes": ["state:read"]}
    minted = key.send("POST", "/v1/access-tokens", wish).json()["secret"]
    issued = client_with("state:read").secret
    exchanged = pipeline.exchange().json()["access_token"]
    secrets = [key.secret, minted, issued, exchanged]
    credentials = [
        ApiKey.objects.get(pk=key.key_id),
        AccessToken.objects.get(api_key=key.key_id),
        AccessToken.objects.get(api_key=None, trust_policy=None),
        AccessToken.objects.get(trust_policy__isnull=False),
    ]
    break_it, reasons = FAULTS[fault]
    break_it()

    out = io.StringIO()
    call_command("list_credentials", "--all", "--json", stdout=out)
    reason_by_id = {
        each["id"]: each["unusable_reason"] for each in json.loads(out.getvalue())["credentials"]
    }
    for credential, secret, reason in zip(credentials, secrets, reasons, strict=True):
        model = type(credential)
        answer = Client().get("/v1/whoami", headers=bearer(secret))
        if reason is None:
            assert answer.status_code == 200
        else:
            expired = reason.endswith("EXPIRED")
            wanted = "TOKEN_EXPIRED" if expired else "CREDENTIALS_INVALID"
            assert (answer.status_code, error_reason(answer)) == (401, wanted)
        assert model.objects.with_status().get(pk=credential.pk).unusable_reason == reason
        assert model.objects.usable().filter(pk=credential.pk).exists() == (reason is None)
        is_of_owner = reason in ("OWNER_INACTIVE", "OWNER_IDLE") and (
            model.objects.active().filter(pk=credential.pk).exists()
        )
        refused = model.objects.refused_for_owner().filter(pk=credential.pk)
        assert refused.exists() == is_of_owner
        assert reason_by_id[credential.pk] == reason


def test_every_reason_is_tried() -> None:
    tried = {reason for _break, reasons in FAULTS.values() for reason in reasons}

    assert tried == {None, *UnusableReason.values}


@pytest.mark.both
def test_the_admin_shows_an_inactive_owner(operator: User, key_with: KeyWith) -> None:
    other = User.objects.create(username="gone")
    key = key_with("state:read", user=other, name="left")
    key_with("state:read", name="stays")
    User.objects.filter(pk=other.pk).update(is_active=False)
    client = person("viewer")
    address = "/admin/apikeys/apikey/"

    assert b"left" not in client.get(address, {"status": "active"}).content
    listed = client.get(address, {"status": "owner"}).content.decode()
    assert "left" in listed
    assert "stays" not in listed
    assert "Inactive owner" in client.get(f"{address}{key.key_id}/change/").content.decode()
    csv = client.get(address, {"csv": "1"}).content.decode()
    (line,) = (line for line in csv.splitlines() if "left" in line)
    assert "Inactive owner" in line


def test_the_api_shows_why_a_key_does_not_work(key_with: KeyWith) -> None:
    owner = key_with("apikey:read", "apikey:write")
    other = key_with("state:read")
    actions.revoke_api_key(key=other.key, actor=Actor(name="test"))

    shown = {each["id"]: each for each in owner.get("/v1/api-keys").json()["api_keys"]}

    assert shown[owner.key_id]["unusable_reason"] is None
    assert shown[other.key_id]["unusable_reason"] == "REVOKED"
    assert shown[other.key_id]["status"] == "API_KEY_STATUS_REVOKED"


def test_each_reason_has_words() -> None:
    assert status_word(None) == "Active"
    assert len({status_word(reason) for reason in UnusableReason.values}) == len(UnusableReason)
