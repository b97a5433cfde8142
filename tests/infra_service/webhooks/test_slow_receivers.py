"""Slow receivers have dedicated threads and do not delay other receivers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from django.db import connections

from infra_service.webhooks import fair_share, sending
from infra_service.webhooks.delivering import Deliverer
from infra_service.webhooks.models import Delivery
from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import hook_of
from tests.infra_service.webhooks.receiver import Receiver, answers, receiving
from tests.infra_service.webhooks.test_trail import event
from tests.support.waiting import wait_until

_SLOW = 40


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """Hold all answers of slow receivers until the test ends."""
    end = threading.Event()
    yield end
    end.set()


def held(end: threading.Event) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        end.wait(50)
        answers(204)(handler)

    return answer


@contextlib.contextmanager
def delivering(end: threading.Event) -> Iterator[None]:
    """Deliver in a thread, until the block ends."""
    stop = threading.Event()

    def run() -> None:
        Deliverer(stop, lambda _: None).run(0.05)
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        end.set()
        thread.join()


def test_forty_slow_receivers_do_not_delay_another(
    client: ApiClient,
    receiver: Receiver,
    hang: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other receives each event at once, also the events that follow."""
    monkeypatch.setattr(fair_share, "SLOW_AFTER", 2.0)
    monkeypatch.setattr(sending, "SECONDS", 50.0)
    with receiving() as slow:
        slow.answer = held(hang)
        for _ in range(_SLOW):
            hook_of(client, slow, "cluster.create")
        hook_of(client, receiver, "cluster.create")
        for number in range(3):
            event(f"first-{number}").save()
        with delivering(hang):
            wait_until(lambda: len(receiver.received) == 3, 40)
            event("later").save()
            wait_until(lambda: len(receiver.received) == 4, 40)
            assert not hang.is_set()
            assert fair_share._TO_SLOW <= len(slow.received) <= fair_share.THREADS
    assert Delivery.objects.filter(status="DELIVERED", response_status=204).count() >= 4


def test_recovered_receiver_is_served_beside_forty_slow_receivers(
    client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other queues are older and never empty."""
    monkeypatch.setattr(fair_share, "SLOW_AFTER", 1.0)
    hang = threading.Event()

    def slowly(handler: BaseHTTPRequestHandler) -> None:
        hang.wait(2)
        answers(204)(handler)

    with receiving() as slow:
        slow.answer = receiver.answer = slowly
        for _ in range(_SLOW):
            hook_of(client, slow, "cluster.create")
        hook_of(client, receiver, "cluster.create")
        for number in range(6):
            event(f"old-{number}").save()
        with delivering(hang):
            wait_until(lambda: bool(receiver.received), 40)
            receiver.answer = answers(204)
            wait_until(lambda: len(receiver.received) == 6, 40)
            assert len(slow.received) < 6 * _SLOW / 2
