"""Names cannot contain characters that make one name look like another."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from apikeys.models import User
from infra_service.lib.api.fields import NameField, StrictSerializer
from infra_service.lib.display_names import validate_display_name, visible
from states.models import Application
from tests.apikeys.conftest import KeyOwner, violations
from tests.infra_service.test_admin_stale_pages import opened, save
from tests.infra_service.test_admin_webhooks import make_endpoint
from tests.support.people import person, text_of
from workloads.models import Cluster

REVERSED = "prod\u202egnp.exe"

ACCEPTED = ["ci", "Größe", "\u0645\u06cc\u200c\u062e", "ක්\u200dෂ", "👩\u200d🚀", "❤\ufe0f", "a b"]
REFUSED = {
    "zero-width space": "prod\u200b",
    "override": REVERSED,
    "isolate": "\u2066prod\u2069",
    "soft hyphen": "pro\u00add",
    "joiner in ASCII": "pro\u200dd",
    "joiner at the start": "\u200cprod",
    "second joiner": "\u0645\u200c\u200c\u062e",
    "escape": "\x1b[31mprod",
    "newline": "prod\ndev",
    "C1": "prod\x9b",
    "private use": "\ue000prod",
    "line separator": "prod\u2028dev",
    "tag": "prod\U000e0041",
    "byte order mark": "pro\ufeffd",
    "blank letter": "\u3164",
    "blank symbol": "prod\u2800",
}


@pytest.fixture
def root(db: None) -> Client:
    return person(username="root", is_superuser=True)


@pytest.mark.parametrize("name", ACCEPTED)
def test_names_in_all_scripts_and_emoji_are_accepted(name: str) -> None:
    validate_display_name(name)
    assert visible(name) == name


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
def test_invisible_characters_are_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="Remove the invisible character U\\+"):
        validate_display_name(name)
    validate_display_name(visible(name))


def test_the_error_names_field_and_character(owner: KeyOwner) -> None:
    fields = {"name": REVERSED, "scopes": ["state:read"]}

    response = owner.send("POST", "/v1/api-keys", {"api_key": fields})

    assert violations(response) == [("api_key.name", "INVISIBLE_CHARACTER")]
    assert "U+202E (RIGHT-TO-LEFT OVERRIDE)" in response.json()["error"]["message"]


def test_each_serializer_with_a_writable_name_has_the_rule() -> None:
    found = [each for each in _subclasses(StrictSerializer) if "name" in each._declared_fields]

    assert {each.__name__ for each in found} > {
        "ApiKeySerializer", "AccessTokenSerializer", "IssuerSerializer", "TrustPolicySerializer",
        "WebhookSerializer", "ClusterSerializer", "ComponentSerializer", "ApplicationSerializer",
        "EnvironmentSerializer",
    }  # fmt: skip
    for each in found:
        field = each._declared_fields["name"]
        assert field.read_only or isinstance(field, NameField), each


@pytest.mark.parametrize("model", [Application, Cluster])
def test_the_admin_refuses_such_a_name(root: Client, model: Any) -> None:
    row = model.objects.create(name="prod")
    path, given = opened(root, row)

    page = root.post(path, {**given, "name": REVERSED})

    assert "Remove the invisible character U+202E (RIGHT-TO-LEFT OVERRIDE)." in text_of(page)
    row.refresh_from_db()
    assert row.name == "prod"


def test_the_admin_refuses_such_a_display_name(root: Client) -> None:
    path, given = opened(root, User.objects.get(username="root"))

    page = root.post(path, {**given, "display_name": "Ada\u200b"})

    assert "Remove the invisible character U+200B (ZERO WIDTH SPACE)." in text_of(page)


def test_other_fields_of_a_row_with_such_a_name_can_be_changed(root: Client) -> None:
    cluster = Cluster.objects.create(name=REVERSED)
    endpoint = make_endpoint(User.objects.get(username="root"), name=REVERSED)

    save(root, opened(root, cluster), report_interval_seconds="77")
    webhook = f"/admin/webhooks/webhookendpoint/{endpoint.pk}/"
    given = {"name": REVERSED, "initial-name": REVERSED, "format": "standard"}
    given |= {"initial-format": "standard", "filter": "field['cluster'] = 'a'"}
    events: Any = {"event_types": ["state.push"], "initial-event_types": ["state.push"]}
    answer = root.post(f"{webhook}edit/", {**given, **events, "initial-filter": ""})

    assert answer.status_code == 302, text_of(answer)
    cluster.refresh_from_db()
    endpoint.refresh_from_db()
    assert (cluster.name, cluster.report_interval_seconds) == (REVERSED, 77)
    assert (endpoint.name, endpoint.filter) == (REVERSED, "field['cluster'] = 'a'")


def _subclasses(serializer: Any) -> list[Any]:
    direct = serializer.__subclasses__()
    return [*direct, *(each for sub in direct for each in _subclasses(sub))]
