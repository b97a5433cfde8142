"""Indexer processes: killed halfway, and two at once on the same database."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Sum

from apikeys.actors import Actor
from states.actions.push import push
from states.document.uploads import Upload
from states.models import CountTotal, ResourceDigest, ResourceEntry, State
from states.models.resource_counts import Kind
from states.targets import StateTarget
from tests.states.forked import forking
from tests.states.indexed import with_things
from tests.support.commands import on_database_of
from tests.support.server import LiveServer

pytestmark = pytest.mark.both

STATES, EACH = 12, 5


@pytest.fixture
def server(db: None, tmp_path: Path, settings: Any) -> Iterator[LiveServer]:
    """A service with a database of states to index but no running server."""
    server = LiveServer(tmp_path, STATE_ENCRYPTION_KEYS=",".join(settings.STATE_ENCRYPTION_KEYS))
    try:
        server.prepare()
        on_database_of(server, fill)
        yield server
    finally:
        server.close()


def fill() -> None:
    environment_id = uuid.uuid4()  # shared, so that all states update the same totals
    for _ in range(STATES):
        body = with_things(1, **{f"n{number}": f"i-{number}" for number in range(EACH)})
        target = StateTarget(component_id=uuid.uuid4(), environment_id=environment_id)
        push(
            target=target,
            upload=Upload.of(body),
            lock_id=None,
            force=False,
            actor=Actor(name="test"),
        )


def index(server: LiveServer, *kill_at: int | None) -> list[int]:
    """Run indexers at once, each killed at a statement, and return their exit codes."""
    with forking(server.environment) as run:
        return run("index_states", kill_at=kill_at)


def indexed() -> int:
    """Return the number of states in the index, each complete; no partial states exist."""
    ids = set(State.objects.filter(indexed_number=1).values_list("pk", flat=True))
    for entries in (ResourceEntry.objects, ResourceDigest.objects):
        assert entries.count() == EACH * len(ids)
    assert set(ResourceEntry.objects.values_list("state_id", flat=True)) == ids
    things = CountTotal.objects.filter(kind=Kind.RESOURCE_TYPE).aggregate(
        states=Sum("states"), resources=Sum("resources")
    )
    assert things == {"states": len(ids), "resources": EACH * len(ids)}
    return len(ids)


def test_killed_and_concurrent_indexers_leave_a_consistent_index(server: LiveServer) -> None:
    assert index(server, 20) == [-9]
    done = on_database_of(server, indexed)
    assert 0 < done < STATES

    assert index(server, None, None) == [0, 0]

    assert on_database_of(server, indexed) == STATES
    assert on_database_of(server, State.objects.due().count) == 0
