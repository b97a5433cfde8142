"""GET /api/v1/resource-index: the backlog of the index and the unreadable states."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apikeys.bindings import Binding
from states import index_lag
from states.metrics import IndexCollector
from states.models import OUTDATED, State
from states.resources import indexing
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import Backend
from tests.states.indexed import index, with_things
from tests.states.samples import ENCRYPTED
from tests.states.test_list_resources import bindings, matrix
from tests.support import figures
from tests.support.plans import analyze, plans_of
from tools.bench.bulk_states import load_states

PATH = "/api/v1/resource-index"
UP_TO_DATE = {
    "waiting": 0, "waiting_is_exact": True, "oldest_waiting_seconds": 0.0, "unreadable": [],
}  # fmt: skip


def index_status(client: ApiClient) -> Any:
    return client.get(PATH).json()["resource_index"]


def pushed_ago(state: State, **ago: int) -> None:
    State.objects.filter(pk=state.pk).update(updated_at=timezone.now() - dt.timedelta(**ago))


def test_waiting_states_are_counted(backend: Backend, reader: ApiClient) -> None:
    assert index_status(reader) == UP_TO_DATE
    backend.push(with_things(1, a="i-a"))
    Backend(backend.client).push(with_things(1, a="i-a"))
    pushed_ago(backend.record, hours=1)

    found = index_status(reader)
    assert (found["waiting"], found["waiting_is_exact"]) == (2, True)
    assert found["oldest_waiting_seconds"] == pytest.approx(3600, abs=60)

    index()
    assert index_status(reader) == UP_TO_DATE
    # States that are reindexed stay in the index meanwhile.
    indexing.mark_for_indexing(everything=True)
    assert index_status(reader) == UP_TO_DATE


def test_more_than_are_looked_at(
    backend: Backend, reader: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_lag, "MOST", 2)
    for _ in range(4):
        Backend(backend.client).push(with_things(1, a="i-a"))

    found = index_status(reader)

    assert (found["waiting"], found["waiting_is_exact"]) == (2, False)


def test_unreadable_states_are_listed(backend: Backend, reader: ApiClient) -> None:
    others = [Backend(backend.client) for _ in range(3)]
    for each in (backend, *others):
        each.push(ENCRYPTED)
    index()

    first = reader.get(PATH, {"page_size": 3}).json()
    second = reader.get(PATH, {"page_size": 3, "page_token": first["next_page_token"]}).json()

    shown = [*first["resource_index"]["unreadable"], *second["resource_index"]["unreadable"]]
    assert [one["state_id"] for one in shown] == [str(e.record.pk) for e in (backend, *others)]
    assert shown[0] == {
        "state_id": str(backend.record.pk),
        "component_id": str(backend.component_id),
        "component_slug": None,
        "environment_id": str(backend.environment_id),
        "environment_slug": None,
        "version_number": 1,
        "problem": "STATE_ENCRYPTED",
    }
    assert second["next_page_token"] == ""
    State.objects.filter(pk=backend.record.pk).update(deleted_at=timezone.now())
    assert len(index_status(reader)["unreadable"]) == 3


def test_required_scope_and_valid_queries(client_with: ClientWith, reader: ApiClient) -> None:
    refused = client_with("state:write", "state:admin", "cluster:read").get(PATH)
    assert (refused.status_code, error_reason(refused)) == (403, "SCOPE_INSUFFICIENT")
    for query in ({"filter": "x"}, {"page_size": "101"}, {"page_token": "x"}):
        assert reader.get(PATH, query).status_code == 400
    assert reader.send("POST", PATH, {}).status_code == 405


def test_states_outside_the_binding_are_hidden(client_with: ClientWith) -> None:
    states = matrix(client_with("state:write"))
    client = client_with("state:read")
    unreadable, waiting = states[::2], states[1::3]
    State.objects.filter(pk__in=[s.pk for s in unreadable]).update(index_problem="UNEXPECTED")
    for age, state in enumerate(waiting, 1):
        State.objects.filter(pk=state.pk).update(indexed_number=0)
        pushed_ago(state, hours=age)
    for binding in bindings(states):
        type(client.token).objects.filter(pk=client.token.pk).update(**binding.columns())
        inside = [s for s in states if binding.allows_state(
            s.component_id, s.environment_id, s.application_id)]  # fmt: skip

        found = index_status(client)

        assert found["waiting"] == len([s for s in waiting if s in inside]), binding
        oldest = max((age for age, s in enumerate(waiting, 1) if s in inside), default=0)
        assert found["oldest_waiting_seconds"] == pytest.approx(oldest * 3600, abs=60)
        ids = [one["state_id"] for one in found["unreadable"]]
        assert ids == sorted(str(s.pk) for s in unreadable if s in inside)


def test_metrics_are_exported(backend: Backend) -> None:
    backend.push(with_things(1, a="i-a"))
    pushed_ago(backend.record, hours=1)
    bad = Backend(backend.client)
    bad.push(ENCRYPTED)

    def value(name: str) -> float:
        return figures.value(figures.of(IndexCollector()), f"infra_index_{name}")

    assert value("waiting_states") == 2
    assert value("oldest_wait_seconds") == pytest.approx(3600, abs=60)
    assert value("unreadable_states") == 0
    index()
    assert value("waiting_states") == value("oldest_wait_seconds") == 0
    assert value("unreadable_states") == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner")
def test_only_unindexed_states_are_read(client_with: ClientWith) -> None:
    load_states(5_000, lambda _done: None)
    State.objects.update(indexed_number=1, index_key=indexing.stamp())
    few = list(State.objects.values_list("pk", flat=True)[:3])
    State.objects.filter(pk__in=few).update(indexed_number=0, index_problem="UNEXPECTED")
    analyze(State)
    state = State.objects.order_by("id")[7]
    lists = ({"environment_ids": frozenset({state.environment_id})},
             {"application_ids": frozenset({state.application_id})})  # fmt: skip
    clients = [client_with("state:read", **Binding(**ids).columns()) for ids in ({}, *lists)]

    for client in clients:
        with plans_of("states_state", analyze=True) as plans:
            assert client.get(PATH).status_code == 200
        assert not [plan.sql for plan in plans if plan.reads_a_table]
        # A bound token may use the index of the states that it sees.
        if client is clients[0]:
            assert [plan.indexes[0] for plan in plans] == ["state_unreadable", "state_index_due"]
            assert {plan.rows_by_table["states_state"] for plan in plans} == {len(few)}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner")
def test_a_start_looks_at_no_state_that_is_as_it_should_be(db: None) -> None:
    load_states(5_000, lambda _done: None)
    State.objects.update(indexed_number=1, index_key=indexing.stamp())
    others = list(State.objects.values_list("pk", flat=True)[:2])
    State.objects.filter(pk__in=others).update(index_key="0.other")
    analyze(State)

    with plans_of("states_state", analyze=True) as plans:
        indexing.mark_for_indexing()

    assert not [plan.sql for plan in plans if plan.reads_a_table]
    assert sum(plan.rows_read for plan in plans) <= 20
    assert set(State.objects.outdated().values_list("pk", flat=True)) == set(others)
    assert State.objects.filter(index_key=OUTDATED).count() == 2
