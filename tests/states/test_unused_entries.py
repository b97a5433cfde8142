"""Removal of catalogue entries that no state uses, after a time."""

from __future__ import annotations

import datetime as dt
import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from apikeys.actions import issue_access_token
from apikeys.actors import Actor
from apikeys.bindings import Binding
from apikeys.models import AccessToken, AuditEvent, User
from apikeys.tokens import TokenKind
from infra_service.operations.housekeeping import PARTS
from infra_service.webhooks.actions import create_endpoint
from infra_service.webhooks.models import WebhookEndpoint
from states.actions import removal
from states.models import Application, Component, Environment, SlugClaim, State
from tests.conftest import ClientWith
from tests.states.conftest import Backend, document

pytestmark = pytest.mark.both
MODELS = (Component, Application, Environment)
YEAR = timezone.now() - dt.timedelta(days=365)


def grow_old() -> None:
    for model in MODELS:
        model.objects.update(created_at=YEAR, updated_at=YEAR)


@pytest.fixture
def catalogue(client_with: ClientWith) -> None:
    """A used and an unused entry of each kind; an application with an unused component only."""
    client = client_with("state:write", "state:admin")

    def create(kind: str, name: str, **fields: Any) -> str:
        answer = client.send("POST", f"/api/v1/{kind}s", {kind: {"name": name, **fields}})
        assert answer.status_code == 201, answer.content
        return str(answer.json()[kind]["id"])

    shop, bank = (create("application", name) for name in ("shop", "bank"))
    component = create("component", "network", application_id=shop)
    create("component", "netwrok", application_id=bank)
    environment = create("environment", "production")
    create("environment", "prodution")
    State.objects.create(component_id=component, environment_id=environment, application_id=shop)
    grow_old()


def names() -> set[str]:
    return {entry.name for model in MODELS for entry in model.objects.all()}


def prune(*options: str) -> list[tuple[str, str]]:
    out = StringIO()
    call_command("prune_catalogue", "--json", *options, stdout=out)
    return [(entry["kind"], entry["name"]) for entry in json.loads(out.getvalue())["entries"]]


UNUSED = [("component", "netwrok"), ("application", "bank"), ("environment", "prodution")]
USED = {"shop", "network", "production"}


def test_a_dry_run_lists_the_entries_that_a_run_deletes(catalogue: None) -> None:
    before = names()
    assert prune("--days", "180", "--dry-run") == UNUSED
    assert names() == before
    assert prune("--days", "180") == UNUSED
    assert names() == USED
    assert prune("--days", "180") == []


def test_each_removal_is_recorded_and_frees_the_slug(
    catalogue: None, client_with: ClientWith
) -> None:
    ids = {entry.pk for model in MODELS for entry in model.objects.exclude(name__in=USED)}

    prune("--days", "180")

    events = AuditEvent.objects.filter(action__endswith=".delete").order_by("pk")
    assert [(e.action, e.details["name"]) for e in events] == [
        (f"{kind}.delete", name) for kind, name in UNUSED
    ]
    assert {event.actor_name for event in events} == {"command prune_catalogue"}
    assert not SlugClaim.objects.filter(entry_id__in=ids).exists()
    body = {"environment": {"name": "prodution"}}
    answer = client_with("state:write").send("POST", "/api/v1/environments", body)
    assert answer.status_code == 201


def test_young_and_changed_entries_stay(catalogue: None) -> None:
    Component.objects.filter(name="netwrok").update(created_at=timezone.now())
    Environment.objects.filter(name="prodution").update(updated_at=timezone.now())

    assert prune("--days", "180") == []
    assert prune("--days", "366") == []


def test_entries_of_deleted_states_stay(backend: Backend, admin: Backend) -> None:
    backend.push(document(1))
    admin.delete()
    grow_old()

    assert prune("--days", "1") == []


@pytest.mark.parametrize("expires", [dt.timedelta(hours=1), dt.timedelta(hours=-1)])
def test_entries_in_a_binding_stay_until_it_expires(
    catalogue: None, operator: User, expires: dt.timedelta
) -> None:
    bound = Component.objects.get(name="netwrok")
    token, _ = issue_access_token(
        user=operator, name="prepared", kind=TokenKind.SERVICE, scopes=["state:read"],
        binding=Binding(component_ids=frozenset({bound.pk})), expires_at=None,
        actor=Actor(name="test"),
    )  # fmt: skip
    AccessToken.objects.filter(pk=token.pk).update(
        created_at=YEAR, expires_at=timezone.now() + expires
    )

    found = prune("--days", "180")

    assert found == (UNUSED if expires < dt.timedelta(0) else UNUSED[2:])


def test_entries_in_the_binding_of_a_webhook_stay(catalogue: None, operator: User) -> None:
    """A webhook lasts longer than the bound token that created it."""
    bound = Component.objects.get(name="netwrok")
    fields = {"name": "chat", "url": "https://hooks.example.com/x", "event_types": ["state.push"]}
    endpoint, _ = create_endpoint(
        owner_id=operator.pk, fields=fields, expires_at=None, actor=Actor(name="test")
    )
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(bound_component_ids=[str(bound.pk)])

    assert prune("--days", "180") == UNUSED[2:]


def test_housekeeping_does_it_only_if_it_is_set(catalogue: None, settings: Any) -> None:
    assert sum(PARTS["catalogue"]()) == 0

    settings.CATALOGUE_UNUSED_DAYS = 180
    assert sum(PARTS["catalogue"]()) == len(UNUSED)
    assert names() == USED


@pytest.mark.parametrize("options", [(), ("--days", "0"), ("--days", "700001")])
def test_without_an_age_it_is_refused(db: None, options: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="Specify --days N of at least 1"):
        call_command("prune_catalogue", *options)


def test_entries_are_read_in_batches(catalogue: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_BATCH", 1)

    assert prune("--days", "180") == UNUSED
