"""An exception in a single item is logged, and the worker continues with the rest."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError
from structlog.testing import capture_logs

from apikeys.models import AuditEvent
from infra_service.lib.commandline.isolation import isolated
from infra_service.lib.encryption import current_key
from infra_service.webhooks import actions, delivering, health_changes, publishing, queue
from infra_service.webhooks import secrets as webhook_secrets
from infra_service.webhooks.delivering import Deliverer
from infra_service.webhooks.event_types import AUDIT
from infra_service.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent
from states.models import State
from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver, answers
from tests.infra_service.webhooks.test_health_changes import DOWN, TYPE, reported
from tests.infra_service.webhooks.test_timed import DAY, hold, long_ago
from tests.infra_service.webhooks.test_trail import event, names
from tests.states.conftest import Backend
from tests.workloads.records import record
from workloads.models import Cluster


class UnforeseenError(Exception):
    """Of a kind that no code expects."""


def failing_for(is_bad: Callable[..., bool], original: Callable[..., Any]) -> Any:
    """Return the function, which raises where the condition on its arguments holds."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_bad(*args, **kwargs):
            raise UnforeseenError
        return original(*args, **kwargs)

    return wrapped


def three_events() -> list[AuditEvent]:
    made = [event(name) for name in ("first", "bad", "last")]
    for one in made:
        one.save()
    return made


@pytest.fixture
def hook(client: ApiClient, receiver: Receiver) -> Any:
    return hook_of(client, receiver, "cluster.create")


def is_bad(one: Any, *_: Any) -> bool:
    data: dict[str, Any] = getattr(one, "details", None) or one.data
    return data["name"] == "bad"


def test_failure_to_read_an_event(
    hook: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = three_events()[1]
    wrapped = failing_for(is_bad, publishing._event_of)
    monkeypatch.setattr(publishing, "_event_of", wrapped)
    with capture_logs() as logs:
        deliver()
    deliver()

    assert sorted(names(receiver)) == ["first", "last"]
    assert [(one["work"], one["item"]) for one in logs] == [("publish an event", str(bad.pk))]


def test_failure_to_record_an_event(
    hook: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other events of the batch are recorded despite the shared transaction."""
    three_events()
    original = publishing._insert

    def enter(events: Any) -> int:
        entered = original(events)
        if any(is_bad(event) for event in events if event.type != AUDIT):
            raise UnforeseenError
        return entered

    monkeypatch.setattr(publishing, "_insert", enter)
    with capture_logs() as logs:
        deliver()

    assert sorted(names(receiver)) == ["first", "last"]
    assert WebhookEvent.objects.count() == 2
    assert len(logs) == 1


def test_failure_to_load_a_delivery_affects_only_that_delivery(
    hook: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    three_events()
    publishing.publish_next()
    bad = WebhookEvent.objects.get(data__name="bad").pk
    position = [field.attname for field in WebhookEvent._meta.concrete_fields].index("id")
    wrapped = failing_for(lambda _db, _names, values: values[position] == bad, WebhookEvent.from_db)
    monkeypatch.setattr(WebhookEvent, "from_db", staticmethod(wrapped))
    with capture_logs() as logs:
        deliver()

    assert sorted(names(receiver)) == ["first", "last"]
    assert [one["work"] for one in logs] == ["load a delivery"]


def test_failure_to_create_a_message(
    hook: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts as a failed attempt."""
    three_events()
    wrapped = failing_for(lambda _endpoint, one: is_bad(one), delivering.sending.message)
    monkeypatch.setattr(delivering.sending, "message", wrapped)
    with capture_logs() as logs:
        deliver()

    assert sorted(names(receiver)) == ["first", "last"]
    failed = Delivery.objects.waiting().get()
    assert (failed.attempts, failed.error) == (1, "the attempt failed: UnforeseenError")
    assert [one["delivery"] for one in logs] == [failed.pk]


def test_failure_to_record_an_attempt(
    hook: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Concurrent results are recorded together, except the failing result."""
    three_events()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        is_one = receiver.received[-1].payload["data"]["name"] == "bad"
        answers(500 if is_one else 204)(handler)

    receiver.answer = answer
    wrapped = failing_for(lambda *_: True, queue._record_failure)
    monkeypatch.setattr(queue, "_record_failure", wrapped)
    monkeypatch.setattr(delivering, "_GATHER", 0.5)
    with capture_logs() as logs:
        deliver()

    assert sorted(names(receiver)) == ["bad", "first", "last"]
    assert Delivery.objects.filter(status="DELIVERED").count() == 2
    assert [one["work"] for one in logs] == ["record an attempt"]


def test_unreadable_filter_affects_only_its_webhook(
    hook: Any, client: ApiClient, receiver: Receiver
) -> None:
    """As after a release that removes a field."""
    other = hook_of(client, receiver, "cluster.create", url=receiver.url + "/other")
    WebhookEndpoint.objects.filter(pk=other.id).update(filter="field['planet'] = 'mars'")
    event("one").save()
    with capture_logs() as logs:
        deliver()

    assert [one.path for one in receiver.received] == ["/hook"]
    assert [one["work"] for one in logs] == ["compile the filter of a webhook"]


def test_failure_to_read_a_grant(
    hook: Any, client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = hook_of(client, receiver, "cluster.create", url=receiver.url + "/other")
    original: Any = WebhookEndpoint.grant
    wrapped = failing_for(lambda one: str(one.pk) == other.id, original.fget)
    monkeypatch.setattr(WebhookEndpoint, "grant", property(wrapped))
    event("one").save()
    deliver()

    assert [one.path for one in receiver.received] == ["/hook"]


def test_failure_to_publish_a_lock(client: ApiClient, receiver: Receiver) -> None:
    """A lock with a field from another release that this release does not know."""
    hook_of(client, receiver, "state.lock_held")
    long_ago()
    bad, good = Backend(client), Backend(client)
    for backend in (bad, good):
        hold(backend, DAY)
    info = State.objects.get(pk=bad.record.pk).lock_info
    State.objects.filter(pk=bad.record.pk).update(lock_info={**(info or {}), "Planet": "mars"})
    with capture_logs() as logs:
        deliver()

    assert [one.payload["data"]["id"] for one in receiver.received] == [str(good.record.pk)]
    assert [(one["work"], one["item"]) for one in logs] == [
        ("publish state.lock_held", str(bad.record.pk))
    ]


def test_failure_to_publish_affects_only_that_cluster(
    client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook_of(client, receiver, TYPE)
    long_ago()
    for name in ("bad", "good"):
        cluster = Cluster.objects.create(name=name)
        reported(cluster, 30, record())
        reported(cluster, 29, record(**DOWN))
        reported(cluster, 20, record(**DOWN))
    wrapped = failing_for(lambda one: one.name == "bad", health_changes._event_of)
    monkeypatch.setattr(health_changes, "_event_of", wrapped)
    deliver()

    assert names(receiver) == ["good"]


WORK = [
    (publishing, "publish_next"), (delivering, "publish_timed"),
    (delivering, "publish_health_changes"), (queue, "fail_undeliverable"), (queue, "claim"),
    (queue, "note"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), WORK)
def test_a_whole_kind_of_work(
    module: Any, name: str, hook: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker continues, and does this work in the next pass."""
    failures = [True]

    def fail_once(*_: Any) -> bool:
        return bool(failures and failures.pop())

    monkeypatch.setattr(module, name, failing_for(fail_once, getattr(module, name)))
    monkeypatch.setattr(queue, "LEASE", -DAY)
    monkeypatch.setattr(delivering, "_WAIT", 0.0)
    event("one").save()
    with capture_logs() as logs:
        deliver()
        deliver()

    assert set(names(receiver)) == {"one"}
    assert Delivery.objects.get().status == "DELIVERED"
    assert [one["event"] for one in logs] == ["item_failed"]


def test_the_command_survives(
    hook: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After any exception a new run starts, following a pause."""
    runs: list[float | None] = []

    def run(self: Deliverer, interval: float | None) -> None:
        runs.append(interval)
        if len(runs) == 1:
            raise UnforeseenError
        self._stop.set()

    monkeypatch.setattr(Deliverer, "run", run)
    monkeypatch.setattr("infra_service.management.commands.deliver_events._PAUSE", 0.01)
    with capture_logs() as logs:
        call_command("deliver_events", "--watch")

    assert len(runs) == 2
    assert [one["work"] for one in logs] == ["deliver events"]


def test_failure_to_encrypt_a_secret(
    hook: Any, client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = hook_of(client, receiver, "cluster.create")
    WebhookEndpoint.objects.update(encryption_key="old")
    wrapped = failing_for(lambda one: str(one.pk) == hook.id, WebhookEndpoint.reencrypted)
    monkeypatch.setattr(WebhookEndpoint, "reencrypted", wrapped)
    monkeypatch.setattr(webhook_secrets, "decrypt", lambda *_: b"secret")
    with capture_logs() as logs:
        assert actions.reencrypt_secrets() == 1

    assert other.endpoint.encryption_key == current_key()
    assert [one["item"] for one in logs] == [hook.id]


def test_a_database_that_is_away_is_no_failure_of_an_item() -> None:
    with pytest.raises(OperationalError), isolated("anything"):
        raise OperationalError
