"""The list of states in the admin."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.utils import timezone

from states.admin.search import MOST_NAMES
from states.admin.states import StateAdmin
from states.models import Application, Component, State
from tests.states.conftest import Backend, document, named
from tests.support.people import person, reads_of, statements, text_of

LIST = "/admin/states/state/"


@pytest.fixture
def state(locked_state: State) -> State:
    return locked_state


def test_list_shows_lock_holder_and_duration(state: State) -> None:
    client = person("viewer")
    assert (
        "network production locked for 0 minutes by ada@laptop \N{EN DASH} \N{EN DASH} 2"
        in text_of(client.get(LIST))
    )
    assert b"status-warning" in client.get(LIST).content

    since = timezone.now() - dt.timedelta(hours=3, minutes=5)
    State.objects.update(lock_acquired_at=since)
    assert "locked for 3 hours by ada@laptop" in text_of(client.get(LIST))
    assert b"status-error" in client.get(LIST).content


def test_the_list_finds_by_names_and_ids(state: State) -> None:
    client = person("viewer")
    for words, found in (
        ("net", True), ("network prod", True), (str(state.pk), True), ("'network' \"prod\"", True),
        (str(state.component_id), True), ("staging", False), ("network staging", False),
        ("eTWork PROD", True), ("network-", False), (str(uuid.uuid4()), False), ("100%", False),
    ):  # fmt: skip
        shown = text_of(client.get(LIST, {"q": words}))
        assert ("1 state" in shown) is found, words
        assert ("No states" in shown) is not found, words
    assert client.get(LIST, {"q": "\0"}).status_code in (200, 302)


def test_list_reports_incomplete_searches(db: None) -> None:
    Component.objects.bulk_create(Component(name=f"queue-{n:02}") for n in range(MOST_NAMES + 1))
    client = person("viewer")
    for word in ("qu", "UEUE"):
        text = text_of(client.get(LIST, {"q": word}))
        assert f"More than {MOST_NAMES} components have “{word}” in their names" in text
    assert "More than" not in text_of(client.get(LIST, {"q": "queue-1"}))


def test_the_list_in_the_order_of_changes(state: State) -> None:
    since = timezone.now() - dt.timedelta(days=2)
    older = State.objects.create(
        component=Component.objects.create(name="older"), environment=state.environment,
        updated_at=since,
    )  # fmt: skip
    client = person("viewer")

    def found(query: str) -> list[State]:
        return list(client.get(f"{LIST}?{query}").context["cl"].result_list)

    assert found("") == [state, older], "opened with the most recently changed first"
    assert found("q=production") == [older, state], "the newest first"
    assert found("order=changed") == [older, state]
    assert found("order=-changed") == [state, older]
    assert found("order=-lock") == [older, state], "no index has that order"
    assert 'aria-sort="descending"' in client.get(LIST).content.decode()
    body = client.get(f"{LIST}?order=-changed").content.decode()
    assert 'aria-sort="descending"' in body
    assert 'href="?order=changed"' in body


@pytest.mark.both
@pytest.mark.parametrize("column", ["serial", "size"])
def test_states_never_pushed_sort_last_in_both_directions(
    db: None, client_with: Any, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """Also across pages in both directions, on both databases; no state repeats."""
    monkeypatch.setattr(StateAdmin, "list_per_page", 2)
    writer = client_with("state:write")
    pushed = []
    for serial in (7, 9, 8):
        backend = Backend(writer)
        assert backend.push(document(serial, padding="x" * 9 * serial)).status_code == 200
        pushed.append((serial, backend.record))
    unpushed = []
    for _ in range(3):
        backend = Backend(writer)
        assert backend.lock(uuid.uuid4()).status_code == 200
        unpushed.append(backend.record)
    client = person("viewer")
    ascending = [state for _, state in sorted(pushed, key=lambda pair: pair[0])]

    for order, expected in (
        (column, [*ascending, *unpushed]),
        (f"-{column}", [*reversed(ascending), *reversed(unpushed)]),
    ):
        lists = [client.get(LIST, {"order": order}).context["cl"]]
        while lists[-1].next_url:
            lists.append(client.get(LIST + lists[-1].next_url).context["cl"])
        assert [state for cl in lists for state in cl.result_list] == expected
        back = client.get(LIST + lists[-1].previous_url).context["cl"]
        assert list(back.result_list) == list(lists[-2].result_list)


def test_the_list_by_status(state: State, backend: Backend, client_with: Any) -> None:
    client = person("viewer")

    def shown(status: str) -> bool:
        return "1 state" in text_of(client.get(LIST, {"is": status}))

    assert (shown("locked"), shown("stale"), shown("deleted")) == (True, False, False)
    State.objects.update(lock_acquired_at=timezone.now() - dt.timedelta(minutes=61))
    assert (shown("locked"), shown("stale"), shown("deleted")) == (True, True, False)
    State.objects.update(lock_id=None, lock_info=None, lock_acquired_at=None)
    assert (shown("locked"), shown("stale"), shown("deleted")) == (False, False, False)
    State.objects.update(deleted_at=timezone.now())
    assert (shown("locked"), shown("stale"), shown("deleted")) == (False, False, True)
    assert "No states" in text_of(client.get(LIST))


@pytest.mark.slow
def test_pages_of_the_list_cost_the_same(db: None, client_with: Any) -> None:
    client = person("viewer")
    application = Application.objects.create(name="billing")

    def add(count: int) -> None:
        for _ in range(count):
            backend = Backend(client_with("state:write"))
            assert backend.lock(uuid.uuid4()).status_code == 200
            named(backend.record, "network", "production")
        State.objects.update(application=application)

    costs = []
    for count in (30, 30):
        add(count)
        for query in ("", "?is=locked", "?is=deleted", "?q=network", "?q=billing+production"):
            with statements() as found:
                assert client.get(LIST + query).status_code == 200
            # The page; where several conditions meet also which of them finds few, and where
            # the page is not full, whether the list ends there.
            assert 1 <= len(reads_of("states_state", found)) <= 3, query
            costs.append(len(found))
    assert costs[:5] == costs[5:]

    first = client.get(LIST)
    assert "50 states on this page" in text_of(first)
    following = client.get(LIST + first.context["cl"].next_url)
    assert "10 states on this page" in text_of(following)
    shown = {row.pk for answer in (first, following) for row in answer.context["cl"].result_list}
    assert len(shown) == 60
