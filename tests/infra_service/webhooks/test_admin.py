"""Webhooks in the admin: create, change, test and rotate, with the rules of the API."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest

from apikeys.models import AccessToken, AuditEvent, User
from infra_service.webhooks.models import Delivery, WebhookEndpoint
from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver
from tests.support.people import confirm, person, text_of

LIST = "/admin/webhooks/webhookendpoint/"
URL = "https://example.com/hooks/T0P-SECRET"


def given(**fields: Any) -> dict[str, Any]:
    wanted = {"owner": "administrator-person", "name": "chat", "url": URL, "format": "standard"}
    return {**wanted, "event_types": ["state.frozen", "state.push"], **fields}


def page(tool: str = "change") -> str:
    return f"{LIST}{WebhookEndpoint.objects.get().pk}/{tool}/"


def test_create_shows_the_secret_once(db: None) -> None:
    administrator = person("administrator")
    form = administrator.get(f"{LIST}add/")
    assert 'value="administrator-person"' in form.content.decode()

    shown = administrator.post(f"{LIST}add/", given(filter="field['cluster'] = 'a'"), follow=True)

    text = text_of(shown)
    assert re.search(r"whsec_[A-Za-z0-9+/]{43}=", text)
    assert "of administrator-person has a new secret" in text
    assert "no-store" in shown["Cache-Control"]
    again = administrator.get(shown.request["PATH_INFO"], follow=True)
    assert "whsec_" not in text_of(again)
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.url, endpoint.scopes) == (URL, ["state:read"])
    assert endpoint.maker is None
    event = AuditEvent.objects.get(action="webhook.create")
    assert (event.actor_name, event.details["url"]) == (
        "administrator-person",
        "https://example.com",
    )


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"url": ""}, "This field is required."),
        ({"url": "https://10.0.0.1/x"}, "This URL cannot receive messages"),
        ({"url": "ftp://example.com/x"}, "This URL cannot receive messages"),
        ({"event_types": []}, "This field is required."),
        ({"event_types": ["state.nothing"]}, "not one of the available choices"),
        ({"filter": "field['nothing'] = 1"}, "nothing"),
        ({"format": "ocsf"}, "The format ocsf supports only the event audit.event."),
        ({"owner": "somebody"}, "There is no active user with this name."),
        ({"expires_at": "2020-01-01T00:00"}, "Choose a time in the future."),
    ],
)
def test_invalid_fields_are_rejected(db: None, fields: dict[str, Any], fault: str) -> None:
    answer = person("administrator").post(f"{LIST}add/", given(**fields))

    assert answer.status_code == 200
    assert fault in text_of(answer)
    assert not WebhookEndpoint.objects.exists()


def test_edit_keeps_the_url_unless_another_is_given(db: None) -> None:
    administrator = person("administrator")
    administrator.post(f"{LIST}add/", given())

    form = administrator.get(page("edit")).content.decode()
    assert "T0P-SECRET" not in form + administrator.get(page()).content.decode()
    assert 'value="chat"' in form
    assert re.search(r'value="state.push"[^>]*checked', form)

    done = administrator.post(page("edit"), given(url="", name="pager", event_types=["state.lock"]))
    assert done.status_code == 302
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.name, endpoint.url, endpoint.event_types) == ("pager", URL, ["state.lock"])

    refused = administrator.post(page("edit"), given(url="https://10.0.0.1/"))
    assert refused.status_code == 200
    other = "https://example.org/other"
    administrator.post(page("edit"), given(url=other))
    assert WebhookEndpoint.objects.get().url == other
    (_, changed) = AuditEvent.objects.filter(action="webhook.update").order_by("id")
    assert changed.details["url"] == {"from": "https://example.com", "to": "https://example.org"}


def test_edit_keeps_the_seconds_of_an_unchanged_expiry(db: None) -> None:
    administrator = person("administrator")
    administrator.post(f"{LIST}add/", given())
    expiry = dt.datetime(2100, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC)
    WebhookEndpoint.objects.update(expires_at=expiry)

    administrator.post(page("edit"), given(name="pager", expires_at="2100-01-02T03:04"))
    kept = WebhookEndpoint.objects.get()
    administrator.post(page("edit"), given(expires_at="2100-01-02T03:05"))

    assert (kept.name, kept.expires_at) == ("pager", expiry)
    assert WebhookEndpoint.objects.get().expires_at == expiry.replace(
        minute=5, second=0, microsecond=0
    )


def test_test_and_rotate(db: None, receiver: Receiver) -> None:
    administrator = person("administrator")
    shown = administrator.post(f"{LIST}add/", given(url=receiver.url), follow=True)
    before = re.search(r"whsec_\S+=", text_of(shown))

    administrator.post(page("send-test"))
    deliver()
    assert receiver.types() == ["webhook.test"]
    assert Delivery.objects.get().status == Delivery.Status.DELIVERED

    shown = {"displayed": administrator.get(page("rotate-secret")).context["displayed"]}
    rotated = administrator.post(page("rotate-secret"), shown, follow=True)
    after = re.search(r"whsec_\S+=", text_of(rotated))
    assert before
    assert after
    assert before[0] != after[0]

    again = administrator.post(page("rotate-secret"), shown)
    assert "The secret was rotated after this page was opened." in text_of(again)
    assert confirm(administrator, page("rotate-secret"), {}).status_code == 302


@pytest.mark.parametrize("group", ["viewer", "operator"])
def test_operators_can_only_disable_and_enable(db: None, group: str) -> None:
    person("administrator").post(f"{LIST}add/", given())
    client = person(group)

    assert client.post(f"{LIST}add/", given()).status_code == 403
    for tool in ("edit", "rotate-secret"):
        assert client.post(page(tool), given()).status_code == 403
    assert (client.post(page("send-test")).status_code == 302) == (group == "operator")
    assert User.objects.get(username=f"{group}-person").webhooks.count() == 0
    assert WebhookEndpoint.objects.get().name == "chat"


def test_webhook_of_a_revoked_token_has_ended(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, "cluster.create")
    administrator = person("administrator")
    assert "Enabled" in text_of(administrator.get(page()))

    AccessToken.objects.revoke(client.token.pk)

    assert "Ended because" in text_of(administrator.get(page()))
    assert "Ended because" in text_of(administrator.get(LIST))
