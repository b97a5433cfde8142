"""Time-based events: published once each by any worker, within a limited period."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.utils import timezone

from apikeys.actions import create_api_key
from apikeys.actors import Actor
from apikeys.models import ApiKey
from infra_service.webhooks.models import WebhookEndpoint, WebhookEvent
from infra_service.webhooks.scheduled_events import publish_timed
from states.models import State
from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver
from tests.states.conftest import Backend
from workloads.models import Cluster

MINUTE = dt.timedelta(minutes=1)
DAY = dt.timedelta(days=1)


@pytest.fixture
def key_of_owner(client: ApiClient) -> ApiKey:
    """An API key of the user that creates the webhooks."""
    key, _ = create_api_key(
        user_id=client.token.created_by_id, name="deploy", scopes=["state:read"],
        expires_at=None, actor=Actor(name="test"),
    )  # fmt: skip
    return key


def long_ago() -> None:
    """Let the webhooks be a year old."""
    WebhookEndpoint.objects.update(created_at=timezone.now() - 365 * DAY)


def published(receiver: Receiver) -> list[Any]:
    return [one.payload for one in receiver.received]


def hold(backend: Backend, age: dt.timedelta) -> dt.datetime:
    """Take a lock, so long ago."""
    backend.lock(uuid.uuid4(), Who="ada@laptop", Operation="OperationTypeApply")
    since = timezone.now() - age
    State.objects.update(lock_acquired_at=since)
    return since


def test_long_held_lock_is_published_once(
    client: ApiClient, backend: Backend, receiver: Receiver, settings: Any
) -> None:
    settings.WEBHOOK_LOCK_HELD_MINUTES = 30
    hook_of(client, receiver, "state.lock_held")
    long_ago()
    since = hold(backend, 29 * MINUTE)
    deliver()
    assert published(receiver) == []

    since -= 2 * MINUTE
    State.objects.update(lock_acquired_at=since)
    for _ in range(3):
        deliver()

    (one,) = published(receiver)
    assert one["type"] == "state.lock_held"
    moment = dt.datetime.fromisoformat(one["timestamp"])
    assert moment == since + 30 * MINUTE
    assert one["data"]["lock"] == {
        "who": "ada@laptop", "operation": "OperationTypeApply",
        "created": one["data"]["lock"]["created"],
    }  # fmt: skip
    assert one["data"]["component_id"] == str(backend.component_id)
    lock_id = State.objects.get().lock_id
    assert str(lock_id) not in receiver.received[0].body.decode()


def test_the_next_lock_is_another(client: ApiClient, backend: Backend, receiver: Receiver) -> None:
    hook_of(client, receiver, "state.lock_held")
    long_ago()
    hold(backend, DAY)
    deliver()
    State.objects.update(lock_acquired_at=timezone.now() - 2 * DAY)
    deliver()

    assert len(published(receiver)) == 2


@pytest.mark.parametrize(("age", "number"), [(7 * DAY, 1), (30 * DAY, 0)])
def test_events_are_found_after_a_pause(
    client: ApiClient, backend: Backend, receiver: Receiver, age: dt.timedelta, number: int
) -> None:
    """A week-old event is published; older events are not, because they may be duplicates."""
    hook_of(client, receiver, "state.lock_held")
    long_ago()
    hold(backend, age)
    deliver()

    assert len(published(receiver)) == number


def test_locks_before_the_webhook_are_not_published(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hold(backend, DAY)
    hook_of(client, receiver, "state.lock_held")
    deliver()

    assert published(receiver) == []


#: Days until a key of 60 days expires, and the notices that are due then.
ENDS = [(31, []), (29, [30]), (8, [30]), (6, [7]), (2, [7]), (0.5, [1])]


@pytest.mark.parametrize(("days", "notices"), ENDS)
def test_expiring_key_is_reported(
    client: ApiClient, receiver: Receiver, key_of_owner: ApiKey, days: float, notices: list[int]
) -> None:
    hook_of(client, receiver, "api_key.expiring")
    long_ago()
    now = timezone.now()
    # Notices that were due more than two weeks ago are dropped.
    ApiKey.objects.filter(pk=key_of_owner.pk).update(
        created_at=now - 60 * DAY, expires_at=now + days * DAY
    )
    for _ in range(2):
        deliver()

    assert [one["data"]["days"] for one in published(receiver)] == [
        notice for notice in notices if notice - days <= 14
    ]


def test_short_lived_key_is_reported_once(
    client: ApiClient, receiver: Receiver, key_of_owner: ApiKey
) -> None:
    hook_of(client, receiver, "api_key.expiring")
    long_ago()
    now = timezone.now()
    ApiKey.objects.filter(pk=key_of_owner.pk).update(
        created_at=now - DAY / 2, expires_at=now + DAY / 3
    )
    deliver()

    assert published(receiver) == []


def test_unreachable_cluster_is_reported(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, "cluster.unreachable")
    long_ago()
    last_contact = timezone.now() - 10 * MINUTE
    Cluster.objects.create(name="quiet", last_received_at=last_contact, last_report_at=last_contact)
    now = timezone.now()
    Cluster.objects.create(name="well", last_received_at=now, last_report_at=now)
    Cluster.objects.create(name="new")
    for _ in range(2):
        deliver()

    (one,) = published(receiver)
    assert one["data"]["name"] == "quiet"
    assert dt.datetime.fromisoformat(one["timestamp"]) == last_contact + 3 * MINUTE

    Cluster.objects.filter(name="quiet").update(last_received_at=last_contact + MINUTE)
    deliver()
    assert len(published(receiver)) == 2


def test_locks_are_not_published_without_a_subscription(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook_of(client, receiver, "state.push")
    long_ago()
    hold(backend, DAY)

    assert publish_timed() == 0
    assert not WebhookEvent.objects.exists()


def test_changed_setting_does_not_publish_again(
    client: ApiClient, backend: Backend, receiver: Receiver, settings: Any
) -> None:
    """A lock and a silent cluster are each published once, whatever their limits become."""
    hook_of(client, receiver, "state.lock_held", "cluster.unreachable")
    long_ago()
    hold(backend, DAY)
    last_contact = timezone.now() - 2 * 60 * MINUTE
    cluster = Cluster.objects.create(
        name="quiet", last_received_at=last_contact, last_report_at=last_contact
    )
    deliver()
    for minutes, seconds in ((30, 5), (90, 600), (120, 60)):
        settings.WEBHOOK_LOCK_HELD_MINUTES = minutes
        changed = {"cluster": {"report_interval_seconds": seconds}}
        client.send("PATCH", f"/api/v1/clusters/{cluster.pk}", changed)
        deliver()

    assert sorted(receiver.types()) == ["cluster.unreachable", "state.lock_held"]
