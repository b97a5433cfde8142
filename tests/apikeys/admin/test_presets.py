"""Presets of the forms that issue keys and tokens."""

from __future__ import annotations

import re
from typing import Any

import pytest

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, User
from states.models import Environment
from tests.apikeys.admin.conftest import KEYS, TOKENS
from tests.apikeys.admin.test_federation import POLICIES
from tests.infra_service.test_admin_webhooks import HOOKS
from tests.support.people import person, text_of


def checked(page: Any) -> set[str]:
    return set(re.findall(r'value="(\w+:\w+)"[^>]* checked', page.content.decode()))


@pytest.mark.parametrize(
    ("path", "preset", "scopes"),
    [
        (TOKENS, "", set()),
        (TOKENS, "nothing", set()),
        (TOKENS, "read-only", {"state:read", "cluster:read"}),
        (TOKENS, "pipeline", {"state:read", "state:write"}),
        (TOKENS, "agent", {"cluster:report"}),
        (KEYS, "read-only", {"state:read", "cluster:read", "apikey:write"}),
        (KEYS, "pipeline", {"state:read", "state:write", "apikey:write"}),
    ],
)
def test_scopes_match(operator: User, path: str, preset: str, scopes: set[str]) -> None:
    page = person("administrator").get(f"{path}add/", {"preset": preset})

    assert checked(page) == scopes
    text = text_of(page)
    assert "Start with: Read only Pipeline for one environment" in text
    assert ("Agent of a cluster" in text) == (path == TOKENS)


def test_a_pipeline_needs_its_environment(operator: User) -> None:
    live = Environment.objects.create(name="live", slug="live")
    client = person("administrator")
    given = {"owner": "operator", "name": "ci", "scopes": ["state:read", "state:write"]}
    token = {**given, "kind": AccessToken.Kind.SERVICE}

    for path, fields in ((TOKENS, token), (KEYS, given)):
        refused = client.post(f"{path}add/?preset=pipeline", fields)
        assert "This field is required." in text_of(refused)
        assert not AccessToken.objects.exists()
        assert not ApiKey.objects.exists()
    client.post(f"{TOKENS}add/?preset=pipeline", {**token, "environment_ids": "live"})

    assert AccessToken.objects.get().binding.environment_ids == frozenset({live.pk})


def test_an_agent_needs_its_cluster(operator: User) -> None:
    given = {"owner": "operator", "name": "a", "scopes": ["cluster:report"], "kind": "SERVICE"}

    refused = person("administrator").post(f"{TOKENS}add/?preset=agent", given)

    assert "This field is required." in text_of(refused)


@pytest.mark.parametrize("path", [KEYS, TOKENS, POLICIES, HOOKS])
def test_a_link_fills_in_no_other_fields(operator: User, path: str) -> None:
    """A link could otherwise make an administrator add a webhook of an attacker."""
    fields = {"kind": "GITHUB", "name": "github", "audience": "https://infra.example.com"}
    issuer = actions.create_issuer(fields=fields, actor=Actor(name="test"))
    form = person("administrator").get(f"{path}add/").context["form"]
    link = {"issuer": issuer.pk, **dict.fromkeys(form.fields.keys() - {"issuer"}, "attacker")}

    page = person("administrator").get(f"{path}add/", link)

    assert form.fields.keys() == page.context["form"].fields.keys()
    assert "attacker" not in page.content.decode()
