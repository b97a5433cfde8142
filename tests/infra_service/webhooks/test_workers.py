"""Several workers at once, and a worker killed between sending and recording."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import pytest
from django.db import connection
from django.utils import timezone

from infra_service.webhooks import queue
from infra_service.webhooks.models import Delivery
from infra_service.webhooks.queue import LEASE
from infra_service.webhooks.sending import SECONDS, Outcome
from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver
from tests.infra_service.webhooks.test_trail import event
from tests.support.committed import twice_at_once


class Killed(BaseException):
    """As SIGKILL: nothing of ours runs after it."""


def test_message_is_repeated_after_a_kill_between_sending_and_recording(
    client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent twice, with the same id; and not before the lease is over."""
    hook_of(client, receiver, "cluster.create")
    event("one").save()

    def kill(_attempts: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(queue, "note", kill)
        with pytest.raises(Killed):
            deliver()
    deliver()
    sent_within_the_lease = len(receiver.received)
    Delivery.objects.update(next_attempt_at=timezone.now())
    deliver()

    assert sent_within_the_lease == 1
    assert len(receiver.received) == 2
    assert len({one.message_id for one in receiver.received}) == 1
    assert Delivery.objects.get().status == "DELIVERED"


def test_worker_without_the_lease_records_no_attempt(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, "cluster.create")
    event("one").save()
    deliver()
    delivery = Delivery.objects.get()
    delivery.claim = None
    queue.note([queue.Attempt(delivery, Outcome(500))])

    assert Delivery.objects.get().attempts == 1


def test_the_lease_is_longer_than_an_attempt() -> None:
    assert 2 * dt.timedelta(seconds=SECONDS) < LEASE


@pytest.mark.skipif(connection.vendor != "postgresql", reason="the copy of SQLite is in memory")
def test_two_concurrent_runs_share_the_work(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, "cluster.create")
    for number in range(40):
        event(str(number)).save()
    twice_at_once(deliver)
    deliver()

    assert Counter(Delivery.objects.values_list("status", flat=True)) == {"DELIVERED": 40}
    assert len(receiver.received) == len({one.message_id for one in receiver.received}) == 40
