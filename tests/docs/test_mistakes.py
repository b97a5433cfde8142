"""The table of mistakes in docs/reference/errors.md: each request gets the documented answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from django.test import Client

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import User
from tests.conftest import ClientWith, error_reason

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors.md"
_ROW = re.compile(
    r"^\| ([^|]+) \| (`[A-Z]+ /[^|]+) \| (\d{3}) `([A-Z_]+)` \| `(.*)` \|$", re.MULTILINE
)


class Mistake(NamedTuple):
    title: str
    request: str
    status: str
    reason: str
    message: str


MISTAKES = [Mistake(*row) for row in _ROW.findall(PAGE.read_text())]


@pytest.fixture
def key(operator: User) -> str:
    _, secret = actions.create_api_key(
        user_id=operator.pk,
        name="test",
        scopes=["apikey:read"],
        expires_at=None,
        actor=Actor(name="test"),
    )
    return secret


def test_they_are_found() -> None:
    _, _, section = PAGE.read_text().partition("## Mistakes")

    assert len(MISTAKES) == section.count("\n| ") - 1 > 20


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_error_message_states_the_fix(mistake: Mistake, client_with: ClientWith, key: str) -> None:
    token = client_with("state:read", "cluster:read", "cluster:write").secret
    first, *rest = re.findall("`([^`]+)`", mistake.request)
    method, path = first.split(" ")
    headers, body = {"Authorization": f"Bearer {token}"}, "{}"
    for part in rest:
        name, is_header, value = part.partition(": ")
        if part.startswith("{"):
            body = part
        elif is_header:
            headers[name] = value.replace("isp_…", token).replace("isk_…", key)
        else:
            del headers[name]  # "without `Authorization`"
    kind = headers.pop("Content-Type", "application/json")

    answer = Client(raise_request_exception=False).generic(
        method, path, body, kind, headers=headers
    )

    assert (str(answer.status_code), error_reason(answer)) == (mistake.status, mistake.reason)
    assert answer.json()["error"]["message"] == mistake.message
