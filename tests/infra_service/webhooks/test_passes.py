"""The queries of a worker's passes, and the allowed age of their results."""

from __future__ import annotations

import datetime as dt
import math
import threading
import uuid

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client import CollectorRegistry

from infra_service.webhooks import delivering, fair_share
from infra_service.webhooks.metrics import DeliveryCollector
from infra_service.webhooks.models import Delivery, TrailPosition, WebhookEndpoint, WebhookEvent
from infra_service.webhooks.queue import Attempt, claim
from infra_service.webhooks.subscriptions import reaches
from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import Hook, deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver
from tests.infra_service.webhooks.test_trail import event, on_postgresql
from tests.support.plans import plans_of

UNREAD = "infra_webhook_unread_trail_seconds"


def test_while_there_is_work_the_trail_is_looked_at_now_and_then(
    client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked whether there is more, read, and asked again: not with each piece that is sent."""
    monkeypatch.setattr(delivering, "_WAIT", 60.0)
    monkeypatch.setattr(fair_share, "_PER_FAST_RECEIVER", 1)
    hook_of(client, receiver, "cluster.create")
    for number in range(6):
        event(str(number)).save()

    with CaptureQueriesContext(connection) as queries:
        deliver()

    looks = [one for one in queries if "FROM apikeys_auditevent e" in one["sql"]]
    assert len(receiver.received) == 6
    assert len(looks) == 3


def test_rights_are_looked_at_while_messages_wait(
    client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions revoked after the first message prevent the remaining messages."""
    assert delivering._FRESH <= 1
    monkeypatch.setattr(delivering, "_FRESH", 0.0)
    monkeypatch.setattr(fair_share, "_PER_FAST_RECEIVER", 1)
    hook_of(client, receiver, "cluster.create")
    for number in range(4):
        event(str(number)).save()

    def narrow(_attempt: Attempt) -> None:
        WebhookEndpoint.objects.update(scopes=["webhook:write"])

    deliver(narrow)

    assert len(receiver.received) == 1
    given_up = Delivery.objects.filter(
        error="the endpoint is no longer allowed to receive this event"
    )
    assert given_up.count() == 3


def test_new_endpoint_is_not_mistaken_for_an_expired_endpoint(
    client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cached endpoints predate the new endpoint."""
    monkeypatch.setattr(delivering, "_FRESH", math.inf)
    monkeypatch.setattr(delivering, "_SWEEP_EVERY", 0.0)
    monkeypatch.setattr(delivering, "_WAIT", 0.0)
    hook_of(client, receiver, "cluster.create")
    event("before").save()

    def add(_attempt: Attempt) -> None:
        if WebhookEndpoint.objects.count() == 1:
            hook_of(client, receiver, "cluster.create", url=receiver.url + "/added")
            event("after").save()

    deliver(add)

    assert sorted((one.path, one.payload["data"]["name"]) for one in receiver.received) == [
        ("/hook", "after"), ("/hook", "before"), ("/hook/added", "after"),
    ]  # fmt: skip
    assert not Delivery.objects.exclude(status=Delivery.Status.DELIVERED).exists()


@on_postgresql
def test_claim_reads_a_bounded_number_of_rows(client: ApiClient, receiver: Receiver) -> None:
    """Also when the planner's figures are of a moment at which nothing waited, as in most."""
    hook = hook_of(client, receiver, "cluster.create")
    entered(hook, 1000)
    Delivery.objects.update(status=Delivery.Status.DELIVERED, next_attempt_at=None)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE webhooks_delivery")
    entered(hook, 300)

    with plans_of("webhooks_delivery", analyze=True) as plans:
        claimed = claim(dict.fromkeys(reaches(), 8), 8)

    (of_due,) = (plan for plan in plans if "LIMIT 64" in plan.sql)
    assert len(claimed) == 8
    assert of_due.rows_read <= 2 * 300


def entered(hook: Hook, number: int) -> None:
    """Enter so many events, each about something else, and their deliveries."""
    events = WebhookEvent.objects.bulk_create(
        WebhookEvent(
            id=uuid.uuid4(),
            type="cluster.create",
            occurred_at=timezone.now(),
            resource_id=str(uuid.uuid4()),
        )
        for _ in range(number)
    )
    Delivery.objects.bulk_create(
        Delivery(endpoint_id=uuid.UUID(hook.id), event=one, resource_id=one.resource_id)
        for one in events
    )


def unread_seconds() -> float:
    registry = CollectorRegistry()
    registry.register(DeliveryCollector())
    value = registry.get_sample_value(UNREAD)
    assert value is not None
    return value


def an_hour_ago(name: str) -> None:
    old = event(name)
    old.occurred_at = timezone.now() - dt.timedelta(hours=1)
    old.save()


def test_how_far_the_trail_is_read(client: ApiClient, receiver: Receiver) -> None:
    TrailPosition.objects.all().delete()
    an_hour_ago("for nobody")
    without_subscribers = unread_seconds()
    hook = hook_of(client, receiver, "cluster.create")
    deliver()
    all_read = unread_seconds()
    an_hour_ago("unread")
    late = unread_seconds()
    deliver()
    read = unread_seconds()
    an_hour_ago("unread")
    client.send("DELETE", hook.path)

    assert (without_subscribers, all_read, read, unread_seconds()) == (0, 0, 0, 0)
    assert 3600 <= late < 3660


@on_postgresql
def test_a_transaction_that_holds_messages_back_is_seen(
    client: ApiClient, receiver: Receiver
) -> None:
    hook_of(client, receiver, "cluster.create")
    deliver()
    written, may_end = threading.Event(), threading.Event()

    def older() -> None:
        try:
            with transaction.atomic():
                event("in").save()
                written.set()
                assert may_end.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=older)
    thread.start()
    assert written.wait(30)
    an_hour_ago("behind")
    deliver()
    held_back = unread_seconds()
    may_end.set()
    thread.join()
    deliver()

    assert held_back >= 3600
    assert unread_seconds() == 0
