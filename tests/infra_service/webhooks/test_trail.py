"""Every event is published exactly once, in whatever order transactions finish."""

from __future__ import annotations

import datetime as dt
import threading
import uuid

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys import audit
from apikeys.actors import Actor
from apikeys.models import AuditEvent
from infra_service.webhooks import audit_reader
from infra_service.webhooks.models import Delivery, TrailPosition, WebhookEvent
from infra_service.webhooks.publishing import publish_next
from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver

on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="about transactions")
on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="about row ids")


def event(name: str) -> AuditEvent:
    """Return an unsaved event with its ID and time."""
    return AuditEvent(
        action="cluster.create",
        actor_name=name,
        resource_id=str(uuid.uuid4()),
        details={"name": name},
    )


def names(receiver: Receiver) -> list[str]:
    return [one.payload["data"]["name"] for one in receiver.received]


def test_an_event_that_was_made_earlier_and_comes_later(
    client: ApiClient, receiver: Receiver
) -> None:
    hook_of(client, receiver, "cluster.create")
    early, late = event("early"), event("late")
    assert early.pk < late.pk

    late.save()
    deliver()
    early.save()
    deliver()

    assert names(receiver) == ["late", "early"]


@on_postgresql
def test_transactions_in_another_commit_order_are_read(
    client: ApiClient, receiver: Receiver
) -> None:
    """While the older transaction runs, earlier events are read and later events wait."""
    hook_of(client, receiver, "cluster.create")
    written, may_end = threading.Event(), threading.Event()

    def older() -> None:
        try:
            with transaction.atomic():
                event("in").save()
                with transaction.atomic():  # a savepoint has a transaction id of its own
                    event("savepoint").save()
                written.set()
                assert may_end.wait(30)
        finally:
            connection.close()

    event("before").save()
    thread = threading.Thread(target=older)
    thread.start()
    assert written.wait(30)
    event("behind").save()
    deliver()
    seen_meanwhile = names(receiver)
    may_end.set()
    thread.join()
    deliver()

    assert seen_meanwhile == ["before"]
    assert names(receiver)[0] == "before"
    assert sorted(names(receiver)[1:]) == ["behind", "in", "savepoint"]


@on_postgresql
def test_rolled_back_transaction_does_not_delay_events(
    client: ApiClient, receiver: Receiver
) -> None:
    hook_of(client, receiver, "cluster.create")
    with transaction.atomic():
        event("undone").save()
        transaction.set_rollback(True)
    event("done").save()

    deliver()

    assert names(receiver) == ["done"]


@on_postgresql
def test_dump_restored_into_another_server_is_read(client: ApiClient, receiver: Receiver) -> None:
    """The new server's transaction counter starts again; restored events are not republished."""
    hook_of(client, receiver, "cluster.create")
    event("in the dump").save()
    TrailPosition.objects.update(transaction_id=2**40)

    deliver()
    event("after").save()
    deliver()

    assert names(receiver) == ["after"]


@on_sqlite
def test_position_survives_vacuum(client: ApiClient, receiver: Receiver) -> None:
    """It gives other row ids: the index is known by its event."""
    hook_of(client, receiver, "cluster.create")
    event("first").save()
    deliver()
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER auditevent_no_delete")
        cursor.execute("DELETE FROM apikeys_auditevent WHERE action <> 'cluster.create'")
        cursor.execute("VACUUM")
    event("second").save()
    deliver()

    assert names(receiver) == ["first", "second"]


@on_sqlite
def test_the_last_event_that_was_read_is_archived(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, "cluster.create")
    event("first").save()
    deliver()
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER auditevent_no_delete")
        cursor.execute("DELETE FROM apikeys_auditevent")
    event("second").save()
    deliver()

    assert names(receiver) == ["first", "second"]


def test_more_than_is_read_at_once(
    client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_reader, "MOST", 3)
    hook_of(client, receiver, "cluster.create")
    with transaction.atomic():
        for number in range(10):
            audit.authorize_and_record(
                Actor(name="test"), "cluster.create", uuid.uuid4(), name=str(number)
            )

    deliver()

    assert sorted(names(receiver), key=int) == [str(number) for number in range(10)]


def test_an_event_is_entered_once(client: ApiClient, receiver: Receiver) -> None:
    """Reading an event again, after a lost position, publishes nothing."""
    hook_of(client, receiver, "cluster.create")
    position = TrailPosition.objects.get()
    event("once").save()
    publish_next()
    position.save()
    publish_next()

    assert WebhookEvent.objects.count() == Delivery.objects.count() == 1


def test_unsubscribed_event_creates_no_row(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, "state.push")
    event("nobody's").save()

    publish_next()

    assert not WebhookEvent.objects.exists()
    assert TrailPosition.objects.get().event_id == AuditEvent.objects.latest("id").pk


def test_audit_log_is_not_read_without_webhooks(db: None) -> None:
    event("unread").save()

    assert publish_next() == 0
    assert not TrailPosition.objects.exists()


def test_an_idle_look_takes_no_lock(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, "cluster.create")
    deliver()
    with CaptureQueriesContext(connection) as queries:
        assert publish_next() == 0

    assert all(query["sql"].lstrip().startswith("SELECT") for query in queries)
    assert not any("FOR UPDATE" in query["sql"] for query in queries)


def test_events_are_read_after_a_long_time(client: ApiClient, receiver: Receiver) -> None:
    """An event from a slow clock does not hide later events."""
    hook_of(client, receiver, "cluster.create")
    behind = event("behind")
    behind.occurred_at = timezone.now() - dt.timedelta(hours=1)
    behind.save()
    event("now").save()

    deliver()

    assert names(receiver) == ["now"]  # events before the webhook are not published
