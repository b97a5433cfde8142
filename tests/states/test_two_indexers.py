"""Several simultaneous indexers with separate connections, on PostgreSQL.

SQLite has no row locks: there several indexers read the same state, and a single indexer writes it
(``test_indexing``).
"""

from __future__ import annotations

import threading
from collections import Counter
from itertools import chain
from typing import Any

import pytest
from django.db import connection

from states.document.contents import LoadedDocument
from states.models import ResourceDigest, ResourceEntry, State
from states.resources import indexing
from tests.conftest import ClientWith
from tests.states.conftest import Backend
from tests.states.indexed import due, found, with_things
from tests.support.committed import db, twice_at_once  # noqa: F401 - a fixture
from tests.support.waiting import MAX_WAIT

pytestmark = pytest.mark.skipif(connection.vendor != "postgresql", reason="about row locks")

STATES = 12


def test_two_indexers_share_the_work(client_with: ClientWith, monkeypatch: Any) -> None:
    client = client_with("state:write")
    backends = [Backend(client) for _ in range(STATES)]
    for turn, each in enumerate(backends):
        assert each.push(with_things(1, a=f"i-{turn}", b="i-b")).status_code == 200
    read: Counter[bytes] = Counter()
    real, guard = indexing.find_contents, threading.Lock()

    def find(loaded: LoadedDocument) -> Any:
        with guard:
            read[loaded.gzipped] += 1
        return real(loaded)

    monkeypatch.setattr(indexing, "find_contents", find)
    done = list(chain(*twice_at_once(lambda: list(indexing.index_due()))))

    assert Counter(one.state_id for one in done) == Counter(
        State.objects.values_list("pk", flat=True)
    )
    assert set(read.values()) == {1}  # no state is read twice
    assert due() == []
    assert ResourceEntry.objects.count() == 2 * STATES
    assert ResourceDigest.objects.count() == 2 * STATES
    assert len(found("i-b")) == STATES


def test_states_of_another_indexer_are_skipped(client_with: ClientWith, monkeypatch: Any) -> None:
    client = client_with("state:write")
    first, second = Backend(client), Backend(client)
    for each in (first, second):
        each.push(with_things(1, a="i-a"))
    real, others = indexing.find_contents, []

    def other() -> None:
        try:
            others.extend(indexing.index_due())
        finally:
            connection.close()

    def find(loaded: LoadedDocument) -> Any:
        monkeypatch.setattr(indexing, "find_contents", real)
        worker = threading.Thread(target=other)
        worker.start()
        worker.join()
        # Reading the earlier version does not block a push.
        assert second.push(with_things(2, b="i-b")).status_code == 200
        return real(loaded)

    monkeypatch.setattr(indexing, "find_contents", find)
    done = list(indexing.index_due())

    assert [one.state_id for one in done] == [first.record.pk]
    assert [one.state_id for one in others] == [second.record.pk]
    assert due() == [second.record.pk]  # of the push


def test_facts_of_a_version_that_is_being_indexed_do_not_wait(
    client_with: ClientWith, monkeypatch: Any
) -> None:
    backend = Backend(client_with("state:read", "state:write"))
    backend.push(with_things(1, a="i-a"))
    real, answers = indexing.find_contents, []

    def record() -> None:
        try:
            path = f"{backend.root}/versions/1/facts"
            answers.append(backend.client.send("PUT", path, {"commit": "8f2c1d7"}).status_code)
        finally:
            connection.close()

    def find(loaded: LoadedDocument) -> Any:
        worker = threading.Thread(target=record)
        worker.start()
        worker.join(MAX_WAIT)
        answers.append(None)  # the index has not finished
        return real(loaded)

    monkeypatch.setattr(indexing, "find_contents", find)
    list(indexing.index_due())

    assert answers == [200, None]
