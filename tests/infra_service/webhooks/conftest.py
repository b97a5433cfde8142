"""Fixtures of the webhook tests."""

from __future__ import annotations

import datetime as dt
import ipaddress
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from apikeys.models import User
from infra_service.webhooks.delivering import Deliverer
from infra_service.webhooks.models import Delivery, WebhookEndpoint
from infra_service.webhooks.queue import Attempt
from tests.conftest import ApiClient, ClientWith
from tests.infra_service.webhooks.receiver import Receiver, receiving
from tests.states.conftest import Backend
from tests.support import postgres
from tests.support.committed import db  # noqa: F401 - a fixture: only what is committed is told
from tests.support.installation import Installation

SCOPES = ("webhook:write", "state:read", "state:write", "state:admin", "cluster:read",
          "cluster:write", "apikey:read")  # fmt: skip
PATH = "/api/v1/webhooks"


@pytest.fixture(scope="session")
def committed_template(committed_template: Installation) -> Iterator[Installation]:
    """A copy on a PostgreSQL server without other transactions.

    All databases of a server share its transaction counter, so tests that run in parallel would
    delay the reader of the audit log.
    """
    if connection.vendor == "sqlite":
        yield committed_template
        return
    with postgres.running(survives_power_cuts=False) as server, tempfile.TemporaryDirectory() as at:
        with psycopg.connect(server.url, autocommit=True) as connected:
            connected.execute("CREATE DATABASE migrated")
        url = server.url.removesuffix("postgres") + "migrated"
        copy = Installation(Path(at), DATABASE_URL=url)
        copy.restore_database(committed_template)
        yield copy


@pytest.fixture(autouse=True)
def loopback_is_allowed(settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = [ipaddress.ip_network("127.0.0.0/8")]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def client(client_with: ClientWith) -> ApiClient:
    return client_with(*SCOPES)


@pytest.fixture
def backend(client: ApiClient) -> Backend:
    return Backend(client)


class Hook:
    """A webhook that was created over the API."""

    def __init__(self, client: ApiClient, answer: Any) -> None:
        self.client, self.secret = client, answer["secret"]
        self.id: str = answer["webhook"]["id"]

    @property
    def path(self) -> str:
        return f"{PATH}/{self.id}"

    @property
    def endpoint(self) -> WebhookEndpoint:
        endpoint: WebhookEndpoint = WebhookEndpoint.objects.get(pk=self.id)
        return endpoint

    def deliveries(self) -> list[Any]:
        """Return the deliveries from the API, the oldest first."""
        return self.client.items(f"{self.path}/deliveries", "deliveries")[::-1]


def hook_of(client: ApiClient, receiver: Receiver, *types: str, **fields: Any) -> Hook:
    """Create a webhook for these event types on behalf of the client."""
    body = {"name": "test", "url": receiver.url, "event_types": list(types), **fields}
    answer = client.send("POST", PATH, {"webhook": body})
    assert answer.status_code == 201, answer.content
    return Hook(client, answer.json())


def deliver(attempted: Callable[[Attempt], None] = lambda _: None) -> None:
    """Deliver everything that is due and call the function after each attempt."""
    Deliverer(threading.Event(), attempted).run(None)


def pass_time(**of: float) -> None:
    """Make waiting deliveries due, as if this much time had passed."""
    Delivery.objects.waiting().update(next_attempt_at=timezone.now() - dt.timedelta(**of))


def a_user(name: str) -> User:
    return User.objects.create(username=name)
