"""A freeze of a state beside a rename of its component: the second waits for the first."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from apikeys.actors import Actor
from states.actions import catalogue, freezing, locks
from states.errors import StateFrozen
from states.lockinfo import LockInfo
from states.models import Component, State
from states.targets import StateTarget
from tests.e2e.backend import lock_info
from tests.states.test_concurrent_removal import _is_waiting
from tests.support.committed import db  # noqa: F401 - commits, in place of pytest-django's
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has a single writer"
)
ACTOR = Actor(name="test")
NAME = "renamed"


@pytest.fixture
def state(db: None) -> State:  # noqa: F811
    target = StateTarget(component_id=uuid.uuid4(), environment_id=uuid.uuid4())
    locks.lock(target=target, info=LockInfo(**lock_info(uuid.uuid4())), actor=ACTOR)
    return State.objects.get()


def test_a_rename_waits_for_the_freeze_and_is_refused(state: State) -> None:
    refused = beside(lambda: freeze(state), lambda: rename(state))

    assert isinstance(refused, StateFrozen)
    assert Component.objects.get().name != NAME
    assert State.objects.get().frozen_at is not None


def test_a_freeze_waits_for_the_rename(state: State) -> None:
    refused = beside(lambda: rename(state), lambda: freeze(state))

    assert refused is None
    assert Component.objects.get().name == NAME
    assert State.objects.get().freeze_reason == "upgrade"


def freeze(state: State) -> None:
    freezing.freeze(state_id=state.pk, reason="upgrade", expected_until=None, actor=ACTOR)


def rename(state: State) -> None:
    changes = {"name": NAME}
    catalogue.change(model=Component, entry_id=state.component_id, changes=changes, actor=ACTOR)


def beside(first: Callable[[], None], second: Callable[[], None]) -> Exception | None:
    """Start the second while the first has not committed; return the second's error."""
    is_done, may_commit = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def hold() -> None:
        try:
            with transaction.atomic():
                first()
                is_done.set()
                assert may_commit.wait(30)
        finally:
            connection.close()

    def follow() -> None:
        try:
            second()
        except StateFrozen as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=hold), threading.Thread(target=follow)]
    threads[0].start()
    assert is_done.wait(30)
    threads[1].start()
    wait_until(_is_waiting)
    may_commit.set()
    for thread in threads:
        thread.join(30)
    return errors[0] if errors else None
