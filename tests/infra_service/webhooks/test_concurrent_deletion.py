"""A webhook is deleted while its deliveries are created."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from uuid_utils.compat import uuid7

from apikeys.actors import Actor
from apikeys.models import User
from infra_service.webhooks import actions
from infra_service.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent
from tests.infra_service.test_admin_webhooks import make_endpoint
from tests.support.committed import at_once, db  # noqa: F401 - commits, in place of pytest-django's

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has a single writer"
)


def test_a_new_delivery_does_not_prevent_the_deletion(db: None) -> None:  # noqa: F811
    endpoint = make_endpoint(User.objects.create(username="ada"))
    event = WebhookEvent.objects.create(
        id=uuid7(), type="state.push", occurred_at=timezone.now(), resource_id="x", data={}
    )

    def publish() -> None:
        with contextlib.suppress(OperationalError), transaction.atomic():
            connection.cursor().execute("SET LOCAL lock_timeout = '100ms'")
            Delivery.objects.create(endpoint=endpoint, event=event, resource_id="x")

    def publishing(execute: Any, sql: str, *arguments: Any) -> Any:
        if sql.startswith('DELETE FROM "webhooks_webhookendpoint"'):
            at_once([publish])
        return execute(sql, *arguments)

    with connection.execute_wrapper(publishing):
        actions.delete_endpoint(
            endpoints=WebhookEndpoint.objects.all(),
            endpoint_id=endpoint.pk,
            actor=Actor.of_command("test"),
        )

    assert not WebhookEndpoint.objects.exists()
    assert not Delivery.objects.exists()
