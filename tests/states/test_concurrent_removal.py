"""An UNLOCK that removes a never-pushed state, beside another client's LOCK of that state."""

from __future__ import annotations

import threading
import uuid

import pytest
from django.db import connection, transaction

from apikeys.actors import Actor
from states.actions import locks, removal
from states.lockinfo import LockInfo
from states.models import State
from states.targets import StateTarget
from tests.e2e.backend import lock_info
from tests.support.committed import db  # noqa: F401 - commits, in place of pytest-django's
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has a single writer"
)
ACTOR = Actor(name="test")


def test_a_lock_that_is_granted_meanwhile_stays(db: None) -> None:  # noqa: F811
    target = StateTarget(component_id=uuid.uuid4(), environment_id=uuid.uuid4())
    first, second = (LockInfo(**lock_info(uuid.uuid4())) for _ in range(2))
    locks.lock(target=target, info=first, actor=ACTOR)
    state = State.objects.get()
    locks._release(state, first, ACTOR, "state.unlock")
    is_granted, may_commit = threading.Event(), threading.Event()

    def lock_again() -> None:
        try:
            with transaction.atomic():
                locks.lock(target=StateTarget.of(state), info=second, actor=ACTOR)
                is_granted.set()
                assert may_commit.wait(30)
        finally:
            connection.close()

    def remove() -> None:
        try:
            removal.unregister(state, ACTOR)
        finally:
            connection.close()

    threads = [threading.Thread(target=lock_again), threading.Thread(target=remove)]
    threads[0].start()
    assert is_granted.wait(30)
    threads[1].start()
    wait_until(_is_waiting)
    may_commit.set()
    for thread in threads:
        thread.join(30)

    assert State.objects.get().lock_id == second.uuid


def _is_waiting() -> bool:
    """Return whether a statement waits for a lock; other databases are of other tests."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock')"
        )
        return bool(cursor.fetchone()[0])
