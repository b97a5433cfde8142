"""What the tests of the admin's pages of keys, tokens, people and the trail share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apikeys import actions
from apikeys.audit import Actor
from apikeys.models import AccessToken, ApiKey, User
from apikeys.scopes import Scope
from apikeys.tokens import TokenKind

KEYS = "/admin/apikeys/apikey/"
TOKENS = "/admin/apikeys/accesstoken/"
TRAIL = "/admin/apikeys/auditevent/"
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


@pytest.fixture
def key(operator: User) -> ApiKey:
    return make_key(operator)


@pytest.fixture
def token(operator: User) -> AccessToken:
    return make_token(operator)


@contextmanager
def queries() -> Iterator[list[str]]:
    """Collect the statements of the block."""
    found: list[str] = []
    with CaptureQueriesContext(
        connection,
    ) as captured:
        yield found
    found += [query["sql"] for query in captured.captured_queries]


def shown(answer: Any, pattern: str = r'class="field-name"[^>]*><a[^>]*>([^<]*)<') -> list[str]:
    """Return the names that a list shows."""
    return re.findall(pattern, answer.content.decode())


def text(answer: Any) -> str:
    """Return what a page says, without its mark-up."""
    bare = re.sub(
        r"<(script|style|svg).*?</\1>|<[^>]+>", " ", answer.content.decode(), flags=re.DOTALL
    )
    return re.sub(r"\s+", " ", bare)


Make = Callable[..., Any]
