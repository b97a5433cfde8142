"""Changes while a message waits: elapsed days, revoked permissions, a deleted endpoint."""

from __future__ import annotations

import datetime as dt
import uuid
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, Issuer, TrustPolicy, User
from infra_service.webhooks import queue
from infra_service.webhooks.models import Delivery, WebhookEvent
from infra_service.webhooks.publishing import publish_next
from infra_service.webhooks.queue import PAUSES
from infra_service.webhooks.subscriptions import reaches
from tests.conftest import ApiClient, ClientWith
from tests.infra_service.webhooks.conftest import SCOPES, deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver, answers
from tests.infra_service.webhooks.test_trail import event
from tests.states.conftest import Backend, document
from workloads.models import Cluster


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def pass_time_until_the_next_attempt() -> dt.timedelta:
    """Let the time until the next attempt pass, and return its length."""
    due_at: Any = Delivery.objects.waiting().earliest("pk").next_attempt_at
    passed = max(due_at - timezone.now(), dt.timedelta())
    of_all = {
        "next_attempt_at": F("next_attempt_at") - passed,
        "created_at": F("created_at") - passed,
    }
    Delivery.objects.waiting().update(**of_all)
    return passed


def test_delivery_fails_after_three_days(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    """After its return at the last attempt it gets all messages in order with their first IDs."""
    hook = hook_of(client, receiver, "state.create", "state.push")
    receiver.answer = hang_up
    backend.push(document(1))
    deliver()
    passed = dt.timedelta()
    for _ in PAUSES[:-1]:
        passed += pass_time_until_the_next_attempt()
        deliver()
    backend.push(document(2))
    passed += pass_time_until_the_next_attempt()
    receiver.answer = answers(200)
    deliver()

    assert dt.timedelta(days=2.8) < passed < dt.timedelta(days=3.5)
    tried = [one.message_id for one in receiver.received[: len(PAUSES) + 1]]
    assert len(set(tried)) == 1
    assert receiver.types()[len(PAUSES) :] == ["state.create", "state.push", "state.push"]
    assert [(one["status"], one["attempts"]) for one in hook.deliveries()] == [
        ("DELIVERED", len(PAUSES) + 1), ("DELIVERED", 1), ("DELIVERED", 1),
    ]  # fmt: skip


def test_clock_that_was_set_back_delays_no_delivery(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    """The first message was created, but not sent, while the clock was a year ahead."""
    hook = hook_of(client, receiver, "state.push")
    backend.push(document(1))
    publish_next()
    a_year_ahead = timezone.now() + dt.timedelta(days=365)
    Delivery.objects.update(created_at=a_year_ahead, next_attempt_at=a_year_ahead)
    backend.push(document(2))

    deliver()

    assert receiver.types() == ["state.push", "state.push"]
    assert [one["status"] for one in hook.deliveries()] == ["DELIVERED", "DELIVERED"]


def test_endpoint_receives_events_from_its_creation(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, "cluster.create")
    (reach,) = reaches().values()
    made_at = reach.endpoint.created_at

    def is_reported(occurred_at: dt.datetime) -> bool:
        event = WebhookEvent(type="cluster.create", occurred_at=occurred_at)
        return reach.subscribes_to(event)

    assert is_reported(made_at)
    assert not is_reported(made_at - dt.timedelta(microseconds=1))


def test_concurrently_narrowed_binding_is_applied(operator: User, receiver: Receiver) -> None:
    """Each attempt checks again: messages outside the binding are dropped, the rest delivered."""
    key, secret = actions.create_api_key(
        user_id=operator.pk, name="k", scopes=["webhook:write", "cluster:read"],
        expires_at=None, actor=Actor(name="test"),
    )  # fmt: skip
    hook_of(ApiClient(secret, AccessToken()), receiver, "cluster.create")
    receiver.answer = answers(500)
    inside, outside = event("inside"), event("outside")
    inside.save()
    outside.save()
    Cluster.objects.create(pk=uuid.UUID(inside.resource_id), name="inside")
    deliver()
    tried = {one.payload["data"]["name"] for one in receiver.received}
    receiver.received.clear()

    ApiKey.objects.filter(pk=key.pk).change(bound_cluster_id=uuid.UUID(inside.resource_id))
    receiver.answer = answers(200)
    Delivery.objects.update(next_attempt_at=timezone.now())
    deliver()

    assert tried == {"inside", "outside"}
    assert [one.payload["data"]["name"] for one in receiver.received] == ["inside"]
    given_up = Delivery.objects.get(resource_id=outside.resource_id)
    assert (given_up.status, given_up.attempts) == ("FAILED", 1)
    assert given_up.error == "the endpoint is no longer allowed to receive this event"


def test_narrowed_trust_policy_limits_the_webhooks_of_its_tokens(
    operator: User, client: ApiClient, receiver: Receiver
) -> None:
    hook_of(client, receiver, "cluster.create")
    issuer = Issuer.objects.create(kind="CUSTOM", url="https://ci.example.com", audience="us")
    policy = TrustPolicy.objects.create(
        name="p", owner=operator, issuer=issuer, conditions={"sub": "job"},
        scopes=["webhook:write", "cluster:read"],
    )  # fmt: skip
    AccessToken.objects.filter(pk=client.token.pk).update(
        trust_policy=policy, kind="SERVICE", expires_at=timezone.now() + dt.timedelta(hours=1)
    )
    event("before").save()
    deliver()

    TrustPolicy.objects.filter(pk=policy.pk).change(scopes=["webhook:write"])
    event("after").save()
    deliver()

    assert [one.payload["data"]["name"] for one in receiver.received] == ["before"]


@pytest.mark.parametrize(("days", "received"), [(89, ["idle", "back"]), (91, ["back"])])
def test_webhooks_of_an_idle_owner_pause(
    client: ApiClient, receiver: Receiver, settings: Any, days: int, received: list[str]
) -> None:
    settings.OWNER_IDLE_DAYS = 90
    hook_of(client, receiver, "cluster.create")
    User.objects.update(last_login=timezone.now() - dt.timedelta(days=days))
    event("idle").save()
    deliver()

    User.objects.update(last_login=timezone.now())
    event("back").save()
    deliver()

    assert [one.payload["data"]["name"] for one in receiver.received] == received


def test_webhook_of_a_deleted_token_does_not_block_other_webhooks(
    client: ApiClient, client_with: ClientWith, receiver: Receiver
) -> None:
    gone = client_with(*SCOPES)
    hook_of(gone, receiver, "cluster.create")
    hook_of(client, receiver, "cluster.create")
    AccessToken.objects.filter(pk=gone.token.pk).delete()
    event("delivered").save()

    deliver()

    assert [one.payload["data"]["name"] for one in receiver.received] == ["delivered"]


def test_delivery_published_concurrently_is_not_failed(
    client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = hook_of(client, receiver, "cluster.create")
    event("for one that ends").save()
    publish_next()
    type(ended.endpoint).objects.update(expires_at=timezone.now())

    def reaches_of_before() -> Any:
        found = reaches()
        hook_of(client, receiver, "cluster.create")
        event("for one that is new").save()
        publish_next()
        return found

    monkeypatch.setattr(queue, "reaches", reaches_of_before)

    assert queue.fail_undeliverable() == 1
    assert [one.status for one in Delivery.objects.order_by("pk")] == ["FAILED", "WAITING"]
