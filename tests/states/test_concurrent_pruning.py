"""Removal of an unused catalogue entry beside a push that uses it."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apikeys.actors import Actor
from apikeys.models import AuditEvent
from states.actions import locks, removal
from states.addresses import Names
from states.lockinfo import LockInfo
from states.models import Component, Environment, SlugClaim, State
from states.targets import StateTarget
from tests.e2e.backend import lock_info
from tests.states.test_concurrent_removal import _is_waiting
from tests.support.committed import db  # noqa: F401 - commits, in place of pytest-django's
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has a single writer"
)
ACTOR = Actor(name="test")
YEAR = timezone.now() - dt.timedelta(days=365)


@pytest.fixture(params=["component", "environment"])
def target(request: pytest.FixtureRequest, db: None) -> StateTarget:  # noqa: F811
    """A state's address by slugs, of which the component or the environment is old and unused."""
    model = {"component": Component, "environment": Environment}[request.param]
    entry = model.objects.create(name="old", slug="old", created_at=YEAR)
    model.objects.update(updated_at=YEAR)
    parent = uuid.UUID(int=0)
    SlugClaim.objects.create(kind=request.param, parent_id=parent, slug="old", entry_id=entry.pk)
    names = Names(**{"component": "c", "environment": "e", request.param: "old"})
    return StateTarget(component_id=uuid.uuid4(), environment_id=uuid.uuid4(), names=names)


def lock(target: StateTarget) -> None:
    locks.lock(target=target, info=LockInfo(**lock_info(uuid.uuid4())), actor=ACTOR)


def prune() -> None:
    list(removal.remove_unused(before=timezone.now() - dt.timedelta(days=1), actor=ACTOR))


def beside(first: Callable[[], Any], second: Callable[[], Any]) -> None:
    """Run the second in a thread while the transaction of the first is open."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            second()
        except BaseException as error:  # noqa: BLE001 - for the test
            failures.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    with transaction.atomic():
        first()
        thread.start()
        wait_until(_is_waiting)
    thread.join(30)
    assert not thread.is_alive()
    assert failures == []


def test_an_entry_that_a_registration_uses_stays(target: StateTarget) -> None:
    beside(lambda: lock(target), prune)

    state = State.objects.select_related("component", "environment").get()
    assert "old" in {state.component.slug, state.environment.slug}
    assert not AuditEvent.objects.filter(action__endswith=".delete").exists()


def test_a_removed_entry_is_registered_again(target: StateTarget) -> None:
    beside(prune, lambda: lock(target))

    state = State.objects.select_related("component", "environment").get()
    assert {state.component.slug, state.environment.slug} & {"old"}
    assert state.component.updated_at > YEAR
    assert AuditEvent.objects.filter(action__endswith=".delete").count() == 1
    assert state.lock_id is not None
