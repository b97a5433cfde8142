"""Fixtures of the tests of API keys and access tokens."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any, Protocol

import pytest
from django.test import Client
from django.utils import timezone

from apikeys import actions
from apikeys.actors import Actor
from apikeys.bindings import Binding
from apikeys.models import ApiKey, User
from tests.apikeys.exchanging import (  # noqa: F401 - fixtures
    issuer_on_loopback,
    pipeline,
    pipeline_of,
)

NOW = timezone.now


class KeyClient(Client):
    """A client that sends a secret. A 500 is an answer, as it is for users."""

    def __init__(self, secret: str) -> None:
        super().__init__(
            raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"}
        )
        self.secret = secret

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a body as JSON."""
        return self.generic(
            method, path, b"" if body is None else _encode(body), "application/json"
        )


def _encode(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


class KeyOwner(KeyClient):
    """A client that authenticates with an API key."""

    def __init__(self, key: ApiKey, secret: str) -> None:
        super().__init__(secret)
        self.key_id: str = key.pk

    @property
    def key(self) -> ApiKey:
        return ApiKey.objects.get(pk=self.key_id)

    @property
    def path(self) -> str:
        return f"/v1/api-keys/{self.key_id}"


class KeyWith(Protocol):
    """``key_with("apikey:read")``: a client whose API key has exactly these scopes."""

    def __call__(
        self,
        *scopes: str,
        user: User | None = None,
        name: str = "test",
        binding: Binding | None = None,
        lifetime: dt.timedelta | None = None,
    ) -> KeyOwner: ...


@pytest.fixture
def key_with(operator: User) -> KeyWith:
    def make(
        *scopes: str,
        user: User | None = None,
        name: str = "test",
        binding: Binding | None = None,
        lifetime: dt.timedelta | None = None,
    ) -> KeyOwner:
        key, secret = actions.create_api_key(
            user_id=(user or operator).pk,
            name=name,
            scopes=scopes,
            expires_at=None if lifetime is None else NOW() + lifetime,
            actor=Actor(name="test"),
            binding=binding,
        )
        return KeyOwner(key, secret)

    return make


@pytest.fixture
def owner(key_with: KeyWith) -> KeyOwner:
    """The operator, with a key that may do all that keys are for, and read states."""
    return key_with("apikey:read", "apikey:write", "state:read")


@pytest.fixture
def outsider(key_with: KeyWith, db: None) -> KeyOwner:
    """An unrelated user."""
    return key_with("apikey:read", "apikey:write", user=User.objects.create(username="stranger"))


def expire(key: ApiKey) -> None:
    """Let the key expire a minute ago."""
    now = NOW()
    ApiKey.objects.filter(pk=key.pk).update(
        created_at=now - dt.timedelta(days=1), expires_at=now - dt.timedelta(minutes=1)
    )


def wire(moment: dt.datetime | None) -> str | None:
    """Return the moment as answers write it."""
    if moment is None:
        return None
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def violations(response: Any) -> list[tuple[str, str]]:
    """Return the field and reason of each violation in a 400 response."""
    for detail in response.json()["error"]["details"]:
        if detail["@type"].endswith("BadRequest"):
            return [(v["field"], v["reason"]) for v in detail["field_violations"]]
    return []
