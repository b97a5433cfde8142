"""A webhook is deleted while its deliveries are created."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apikeys.actors import Actor
from apikeys.models import User
from infra_service.lib.uuids import uuid7
from infra_service.webhooks import actions, audit_reader
from infra_service.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent
from infra_service.webhooks.publishing import publish
from tests.infra_service.test_admin_webhooks import make_endpoint
from tests.support.committed import at_once, db  # noqa: F401 - commits, in place of pytest-django's
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has a single writer"
)


@pytest.fixture
def endpoint(db: None) -> WebhookEndpoint:  # noqa: F811
    return make_endpoint(User.objects.create(username="ada"))


def publish_event(endpoint: WebhookEndpoint) -> int:
    """Publish an event to the endpoint, as a publisher that has read it from the audit log."""
    event = WebhookEvent(
        id=uuid7(), type="state.push", occurred_at=timezone.now(), resource_id="x", data={}
    )
    with transaction.atomic():
        connection.cursor().execute("SET LOCAL lock_timeout = '5s'")
        return 0 if audit_reader.locked_position() is None else publish([event])


def delete(endpoint: WebhookEndpoint) -> None:
    actions.delete_endpoint(
        endpoints=WebhookEndpoint.objects.all(),
        endpoint_id=endpoint.pk,
        actor=Actor.of_command("test"),
    )


def is_waiting_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock')"
        )
        return bool(cursor.fetchone()[0])


def test_a_publisher_does_not_prevent_the_deletion(endpoint: WebhookEndpoint) -> None:
    published = []

    def publishing(execute: Any, sql: str, *arguments: Any) -> Any:
        if sql.startswith('DELETE FROM "webhooks_webhookendpoint"'):
            published.extend(at_once([lambda: publish_event(endpoint)]))
        return execute(sql, *arguments)

    with connection.execute_wrapper(publishing):
        delete(endpoint)

    assert published == [0]
    assert not WebhookEndpoint.objects.exists()
    assert not Delivery.objects.exists()


def test_a_deletion_does_not_prevent_the_publication(endpoint: WebhookEndpoint) -> None:
    """Deliveries of a deleted endpoint would fail the transaction with all other deliveries."""
    other = make_endpoint(User.objects.get(), name="other")
    deletions: list[Future[Any]] = []

    def deleting(execute: Any, sql: str, *arguments: Any) -> Any:
        if sql.startswith('INSERT INTO "webhooks_delivery"'):
            deletions.append(pool.submit(at_once, [lambda: delete(endpoint)]))
            wait_until(lambda: deletions[0].done() or is_waiting_for_a_lock())
        return execute(sql, *arguments)

    with ThreadPoolExecutor() as pool, connection.execute_wrapper(deleting):
        assert publish_event(endpoint) == 1

    assert len(deletions) == 1
    deletions[0].result()
    assert [delivery.endpoint for delivery in Delivery.objects.all()] == [other]
    assert [one.pk for one in WebhookEndpoint.objects.all()] == [other.pk]
