"""OWNER_IDLE_DAYS: owners without a recent login, and the effect on their keys."""

import datetime as dt
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from apikeys.models import AccessToken, User
from tests.apikeys.conftest import KeyWith
from tests.apikeys.exchanging import Pipeline, why
from tests.apikeys.test_metrics import INVALID, bearer
from tests.conftest import ClientWith, error_reason
from tests.support.people import person

DAY = dt.timedelta(days=1)
STAFF, MACHINE = {"is_staff": True}, {"is_staff": False}
#: The data of an owner, with days in place of times, and whether 90 days make the owner idle.
OWNERS: list[tuple[dict[str, Any], bool]] = [
    ({**MACHINE, "date_joined": 400}, False),
    ({**MACHINE, "date_joined": 400, "last_login": 91}, True),
    ({**MACHINE, "date_joined": 400, "last_login": 89}, False),
    ({**STAFF, "date_joined": 400, "last_login": 91}, True),
    ({**STAFF, "date_joined": 400, "last_login": 89}, False),
    ({**STAFF, "date_joined": 91}, True),
    ({**STAFF, "date_joined": 89}, False),
]


@pytest.fixture(autouse=True)
def ninety_days(settings: Any) -> None:
    settings.OWNER_IDLE_DAYS = 90


def become(values: dict[str, Any]) -> None:
    """Make each user such an owner."""
    moments = {
        name: timezone.now() - value * DAY
        for name, value in values.items()
        if name in {"date_joined", "last_login"}
    }
    User.objects.update(**{**values, **moments})


@pytest.mark.both
@pytest.mark.parametrize(("owner", "is_idle"), OWNERS)
def test_credentials_of_idle_owners_are_rejected(
    anonymous: Client,
    key_with: KeyWith,
    client_with: ClientWith,
    owner: dict[str, Any],
    is_idle: bool,
) -> None:
    key, token = key_with("apikey:write"), client_with("state:read")
    wish = {"name": "job", "kind": "PERSONAL", "scopes": ["apikey:write"]}
    minted = key.send("POST", "/v1/access-tokens", wish).json()["secret"]

    become(owner)

    for secret in (key.secret, token.secret, minted):
        answer = anonymous.get("/v1/whoami", headers=bearer(secret))
        assert answer.status_code == (401 if is_idle else 200)
        if is_idle:
            assert (401, error_reason(answer)) == INVALID


def test_owner_is_idle_after_exactly_90_days(operator: User) -> None:
    now = timezone.now()
    User.objects.update(is_staff=True, last_login=now - 90 * DAY)

    assert User.objects.idle(90, now).exists()
    assert not User.objects.idle(90, now - dt.timedelta(microseconds=1)).exists()


@pytest.mark.parametrize(("days", "status"), [(0, 200), (1, 401)])
def test_zero_days_are_no_limit(
    client_with: ClientWith, settings: Any, days: int, status: int
) -> None:
    settings.OWNER_IDLE_DAYS = days
    client = client_with("state:read")
    become({**STAFF, "date_joined": 4000})

    assert client.get("/v1/whoami").status_code == status


def test_their_keys_work_again_when_they_have_signed_on(client_with: ClientWith) -> None:
    client = client_with("state:read")
    become({**STAFF, "date_joined": 91})
    assert client.get("/v1/whoami").status_code == 401

    User.objects.update(last_login=timezone.now())

    assert client.get("/v1/whoami").status_code == 200


def test_pipelines_of_an_idle_owner_are_refused(pipeline: Pipeline) -> None:
    secret = pipeline.exchange().json()["access_token"]
    become({**STAFF, "date_joined": 91})

    assert pipeline.exchange().json()["error"] == "invalid_grant"
    assert why() == "owner_idle"
    assert pipeline.get("/v1/whoami", headers=bearer(secret)).status_code == 401


def listed(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    capsys.readouterr()
    call_command("list_credentials", "--json", *options)
    found = json.loads(capsys.readouterr().out)["credentials"]
    return [credential["owner"] for credential in found]


def test_their_keys_are_listed_before_they_are_refused(
    client_with: ClientWith, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.OWNER_IDLE_DAYS = 0
    client_with("state:read")
    (owner,) = listed(capsys)
    become({**STAFF, "date_joined": 91})

    assert listed(capsys, "--owners-idle-for", "90") == [owner]
    assert listed(capsys, "--owners-idle-for", "92") == []
    become({**MACHINE, "date_joined": 400})
    assert listed(capsys, "--owners-idle-for", "90") == []
    for days in ("-1", "36501", "9" * 20):
        with pytest.raises(CommandError, match="must be from 0 to 36500 days"):
            listed(capsys, "--owners-idle-for", days)


@pytest.mark.parametrize(("days", "period"), [(90, "90 days"), (1, "1 day")])
def test_admin_lists_idle_owners(
    client_with: ClientWith, settings: Any, days: int, period: str
) -> None:
    settings.OWNER_IDLE_DAYS = days
    client_with("state:read")
    owner = AccessToken.objects.get().created_by
    become({**STAFF, "date_joined": 91})
    admin = person("administrator")
    User.objects.filter(username="administrator-person").update(last_login=timezone.now())

    page = admin.get("/admin/")
    idle = {f.name: f for f in page.context["overview"]["findings"]}["idle"]

    assert idle.title == f"Owners of keys who have not signed on for {period}"
    assert [row.pk for row in idle.rows] == [owner.pk]
    assert "never signed on" in page.content.decode()
    ((_, url),) = idle.links
    assert [row.pk for row in admin.get(url).context["cl"].result_list] == [owner.pk]
