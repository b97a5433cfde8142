"""Presets of the forms that issue keys and tokens."""

from __future__ import annotations

import re
from typing import Any

import pytest

from apikeys.models import AccessToken, ApiKey, User
from states.models import Environment
from tests.apikeys.admin.conftest import KEYS, TOKENS
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
