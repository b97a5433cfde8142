"""Fixtures for the admin pages of keys, tokens, users and the audit log."""

from __future__ import annotations

import re
from typing import Any

import pytest

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, User
from apikeys.scopes import Scope
from apikeys.tokens import TokenKind
from infra_service import urls  # noqa: F401 - with the admin's pages, as in a worker
from infra_service.console import groups

KEYS = "/admin/apikeys/apikey/"
TOKENS = "/admin/apikeys/accesstoken/"
AUDIT_LOG = "/admin/apikeys/auditevent/"
USERS = "/admin/apikeys/user/"
GROUPS = "/admin/auth/group/"


def make_key(owner: User, name: str = "a key", **fields: Any) -> ApiKey:
    given = {"scopes": [Scope.STATE_READ], "expires_at": None, "actor": Actor(name="test")}
    return actions.create_api_key(user_id=owner.pk, name=name, **{**given, **fields})[0]


def make_token(owner: User, name: str = "a token", **fields: Any) -> AccessToken:
    given = {
        "kind": TokenKind.PERSONAL,
        "scopes": [Scope.STATE_READ],
        "expires_at": None,
        "actor": Actor(name="test"),
    }
    return actions.issue_access_token(user=owner, name=name, **{**given, **fields})[0]


@pytest.fixture(autouse=True)
def groups_are_there(db: None) -> None:
    groups.set_up(Actor(name="test"))


@pytest.fixture
def key(operator: User) -> ApiKey:
    return make_key(operator)


@pytest.fixture
def token(operator: User) -> AccessToken:
    return make_token(operator)


def shown(answer: Any, pattern: str = r'class="field-name"[^>]*><a[^>]*>([^<]*)<') -> list[str]:
    """Return the names that a list shows."""
    return re.findall(pattern, answer.content.decode())
