"""Indexers and rebuilds as processes: killed halfway, and several at once on the same database."""

from __future__ import annotations

import functools
import itertools
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apikeys.actors import Actor
from infra_service.change_history.models import Change, RecordedState
from states.actions.push import push
from states.document.uploads import Upload
from states.models import State
from states.targets import StateTarget
from tests.infra_service.change_history.random_versions import Author, Expected, expected
from tests.states.forked import Fork, forking
from tests.support.commands import on_database_of
from tests.support.server import LiveServer

pytestmark = pytest.mark.both

STATES, VERSIONS = 3, 6
#: The statement of the first kill, and the number of statements until the next kill.
FIRST, APART = 9, 17
KILLED = -9

Row = tuple[Any, ...]


class Documents:
    """Random versions of several states, and the changes of each."""

    def __init__(self) -> None:
        self.versions: dict[Any, list[bytes | None]] = {}

    def push(self) -> None:
        """Push further versions of each state."""
        for seed in range(STATES):
            pushed = self.versions.setdefault(seed, [None])
            target = StateTarget(component_id=uuid.UUID(int=seed), environment_id=uuid.UUID(int=7))
            author = Author(seed)
            documents = [author.version() for _ in range(len(pushed) - 1 + VERSIONS)]
            for body in documents[len(pushed) - 1 :]:
                pushed.append(body)
                push(target=target, upload=Upload.of(body), lock_id=None, force=False,
                     actor=Actor(name="test"))  # fmt: skip

    def check_recorded(self) -> int:
        """Compare each version up to its state's position, and return the number of versions.

        A version after the position has no row.
        """
        done = 0
        for seed, documents in self.versions.items():
            state = State.objects.get(component_id=uuid.UUID(int=seed))
            recorded = RecordedState.objects.filter(state=state).first()
            position = recorded.number if recorded else 0
            for number, (before, after) in enumerate(itertools.pairwise(documents), start=1):
                assert after is not None
                rows = Change.objects.filter(state=state, version_number=number)
                found = Counter(
                    Expected(*texts, attributes=tuple(attributes))
                    for *texts, attributes in rows.values_list(*Expected._fields)
                )
                assert found == (expected(before, after) if number <= position else Counter())
            done += position
        return done


def rows() -> list[Row]:
    """Return all rows without their ids, by version and in the order of the list."""
    names = [field.attname for field in Change._meta.concrete_fields if field.attname != "id"]
    return list(Change.objects.order_by("version_id", "-id").values_list(*names))


@pytest.fixture
def documents() -> Documents:
    return Documents()


@pytest.fixture
def server(db: None, documents: Documents, tmp_path: Path, settings: Any) -> Iterator[LiveServer]:
    """A service with a database of new versions but no running server."""
    server = LiveServer(tmp_path, STATE_ENCRYPTION_KEYS=",".join(settings.STATE_ENCRYPTION_KEYS))
    try:
        server.prepare()
        on_database_of(server, documents.push)
        yield server
    finally:
        server.close()


@pytest.fixture
def run(server: LiveServer) -> Iterator[Fork]:
    with forking(server.environment) as run:
        yield functools.partial(run, reads=True)


def test_each_version_is_recorded_once_by_killed_indexers(
    run: Fork, server: LiveServer, documents: Documents
) -> None:
    done, codes = 0, []
    while codes[-1:] != [0]:
        codes += run("index_states", kill_at=[FIRST + APART * len(codes)])
        found = on_database_of(server, documents.check_recorded)
        assert found >= done
        done = found

    assert done == STATES * VERSIONS
    assert len(codes) > 4
    assert set(codes[:-1]) == {KILLED}


def test_each_version_is_recorded_once_by_simultaneous_indexers(
    run: Fork, server: LiveServer, documents: Documents
) -> None:
    assert run("index_states", kill_at=[None, None, 30])[:2] == [0, 0]
    on_database_of(server, documents.push)
    assert run("index_states", kill_at=[40, 60]) == [KILLED, KILLED]
    assert run("index_states", kill_at=[None, None]) == [0, 0]

    assert on_database_of(server, documents.check_recorded) == 2 * STATES * VERSIONS


def test_rebuilt_rows_are_the_same(run: Fork, server: LiveServer, documents: Documents) -> None:
    assert run("index_states", kill_at=[None]) == [0]
    before = on_database_of(server, rows)
    assert run("rebuild_changes", kill_at=[20]) == [KILLED]
    assert on_database_of(server, rows) == before

    # A rebuild may precede the index, and several may run.
    on_database_of(server, documents.push)
    assert run("rebuild_changes", kill_at=[None, None, 50]) == [0, 0, KILLED]
    assert run("index_states", kill_at=[None]) == [0]
    assert on_database_of(server, documents.check_recorded) == 2 * STATES * VERSIONS
    whole = on_database_of(server, rows)
    assert [row for row in whole if row in before] == before
    assert run("rebuild_changes", kill_at=[None]) == [0]
    assert on_database_of(server, rows) == whole
