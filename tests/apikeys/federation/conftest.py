"""Fixtures of the tests of issuers and trust policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apikeys.models import Issuer, TrustPolicy
from tests.apikeys.conftest import KeyOwner, KeyWith

GITHUB_IDS = [
    {"claim": "repository_id", "equals": "651234"},
    {"claim": "repository_owner_id", "equals": "9919"},
]
GITHUB = [*GITHUB_IDS, {"claim": "environment", "equals": "production"}]
WRITER = ("federation:write", "apikey:read", "apikey:write", "state:read", "state:write")


@pytest.fixture
def writer(key_with: KeyWith) -> KeyOwner:
    """The operator, with a key that may write policies and hand on the reading and writing."""
    return key_with(*WRITER)


@pytest.fixture
def issuer(db: None) -> Issuer:
    """GitHub."""
    return Issuer.objects.create(
        kind="GITHUB",
        name="github",
        url="https://token.actions.githubusercontent.com",
        audience="https://infra.example.com",
        algorithms=["RS256"],
    )


PolicyOf = Callable[..., TrustPolicy]


@pytest.fixture
def policy_of(issuer: Issuer) -> PolicyOf:
    """``policy_of(writer)``: a policy that this key has made."""

    def make(client: KeyOwner, **fields: Any) -> TrustPolicy:
        given = {
            "name": "deploy",
            "issuer_id": issuer.pk,
            "conditions": GITHUB,
            "scopes": ["state:read", "state:write"],
            **fields,
        }
        answer = client.send("POST", "/v1/trust-policies", {"trust_policy": given})
        assert answer.status_code == 201, answer.content
        return TrustPolicy.objects.get(pk=answer.json()["trust_policy"]["id"])

    return make
