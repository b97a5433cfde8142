"""Round trips to PostgreSQL per request, the cost of a distant database.

Counted on a wire (``tests.support.wire``), in the steady state: statements are prepared, and the
use of the token was recorded within the minute.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import connection

from apikeys import audit
from apikeys.bindings import Binding
from states.models import Application, Component, Environment
from tests.apikeys.conftest import KeyWith, key_with  # noqa: F401 - a fixture
from tests.conftest import ClientWith
from tests.states.conftest import Backend, document
from tests.states.test_named import Named
from tests.support.committed import db  # noqa: F401 - a fixture
from tests.support.wire import Wire
from tests.workloads.records import healthy, snapshot_body
from workloads.models import Cluster

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite is asked without a wire"
)
# A statement is prepared at its third use, which takes an additional round trip.
WARM = 6


@pytest.fixture
def wire(db: None) -> Iterator[Wire]:  # noqa: F811 - the fixture
    """The connections of this test go over a wire."""
    settings = connection.settings_dict
    before = {name: settings[name] for name in ("HOST", "PORT", "OPTIONS")}
    wire = Wire(settings["HOST"], int(settings["PORT"]))
    # A single connection, so that a statement is prepared only once.
    options = {**settings["OPTIONS"], "pool": {**settings["OPTIONS"]["pool"], "max_size": 1}}
    _reconnect(HOST="127.0.0.1", PORT=str(wire.port), OPTIONS=options)
    try:
        yield wire
    finally:
        _reconnect(**before)
        wire.close()


def _reconnect(**settings: Any) -> None:
    wrapper: Any = connection
    wrapper.close()
    wrapper.close_pool()
    wrapper.settings_dict.update(settings)


@pytest.fixture
def state(client_with: ClientWith, wire: Wire) -> Backend:
    """A state that was pushed, and a client that may do all with it."""
    state = Backend(client_with("state:read", "state:write", "state:admin"))
    assert state.push(document(1)).status_code == 200
    return state


def trips(wire: Wire, *calls: Callable[[], Any]) -> list[int]:
    """Return the round trips of each call in turn, after a warm-up."""
    found: list[int] = []
    for _ in range(WARM):
        found = []
        for call in calls:
            before = wire.trips
            answer = call()
            assert answer.status_code < 300, answer.content
            found.append(wire.trips - before)
    return found


def test_the_wire_counts_a_pipeline_once(wire: Wire) -> None:
    with psycopg.connect(wire.through(os.environ["DATABASE_URL"]), autocommit=True) as direct:
        before = wire.trips
        direct.execute("SELECT 1")
        direct.execute("SELECT %s", [2])
        assert wire.trips - before == 2
        with direct.pipeline():
            answers = [direct.execute("SELECT %s", [number]) for number in range(9)]
        assert [answer.fetchone() for answer in answers] == [(number,) for number in range(9)]
        assert wire.trips - before == 3


def test_a_lock_and_an_unlock(wire: Wire, state: Backend) -> None:
    lock_id = uuid.uuid4()
    # Caller and state; UPDATE with its event.
    assert trips(wire, lambda: state.lock(lock_id), lambda: state.unlock(lock_id)) == [2, 2]


def test_a_push(wire: Wire, state: Backend) -> None:
    lock_id, serials = uuid.uuid4(), itertools.count(2)
    # Caller and state; UPDATE with the version and the event.
    assert trips(wire, lambda: state.push(document(next(serials)))) == [2]
    state.lock(lock_id)
    assert trips(wire, lambda: state.push(document(next(serials)), f"?ID={lock_id}")) == [2]
    # Nothing new: caller and state.
    same = document(next(serials))
    assert trips(wire, lambda: state.push(same, f"?ID={lock_id}")) == [1]


def test_document_is_read_in_two_round_trips(wire: Wire, state: Backend) -> None:
    # Caller and document; event.
    assert trips(wire, state.get) == [2]


@pytest.mark.parametrize("names", ["network/prod", "shop/network/prod"])
def test_by_names(wire: Wire, state: Backend, names: str) -> None:
    """The same as by IDs: the lookup of the state includes the names."""
    named, lock_id, serials = Named(state.client, names), uuid.uuid4(), itertools.count(1)
    calls: list[Callable[[], Any]] = [
        partial(named.lock, lock_id),
        lambda: named.push(document(next(serials)), f"?ID={lock_id}"),
        named.get,
        partial(named.unlock, lock_id),
    ]
    assert trips(wire, *calls) == [2, 2, 2, 2]


def test_round_trips_are_few_with_an_application_binding(
    wire: Wire, state: Backend, client_with: ClientWith
) -> None:
    """The lookup of the state includes the application and the lock requirement."""
    assert Named(state.client, "shop/network/prod").push(document(1)).status_code == 200
    Environment.objects.update(require_lock=True)
    shop = Application.objects.get()
    binding = Binding(application_ids=frozenset({shop.pk}))
    client = client_with("state:read", "state:write", **binding.columns())
    serials = itertools.count(2)
    by_ids = Backend(client)
    by_ids.component_id = Component.objects.get(application=shop).pk
    by_ids.environment_id = Environment.objects.get(slug="prod").pk
    for backend in (Named(client, "shop/network/prod"), by_ids):
        lock_id = uuid.uuid4()
        calls: list[Callable[[], Any]] = [
            partial(backend.lock, lock_id),
            partial(_pushes, backend, lock_id, serials),
            backend.get,
            partial(backend.unlock, lock_id),
        ]
        assert trips(wire, *calls) == [2, 2, 2, 2]


def _pushes(backend: Backend, lock_id: uuid.UUID, serials: Iterator[int]) -> Any:
    return backend.push(document(next(serials)), f"?ID={lock_id}")


def test_lost_race_costs_few_round_trips(
    wire: Wire, state: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, answers = audit.AuditedUpdate.run, itertools.cycle((False, True))

    def run(*args: Any, **given: Any) -> bool:
        return next(answers) and real(*args, **given)

    monkeypatch.setattr(audit.AuditedUpdate, "run", run)
    lock_id, serials = uuid.uuid4(), itertools.count(2)
    calls: list[Callable[[], Any]] = [
        partial(state.lock, lock_id),
        lambda: state.push(document(next(serials)), f"?ID={lock_id}"),
        partial(state.unlock, lock_id),
    ]
    # Caller and state; caller and state again; the deed that is not lost.
    assert trips(wire, *calls) == [3, 3, 3]


def test_a_first_lock_and_a_first_push(wire: Wire, state: Backend) -> None:
    client = state.client
    # Caller and no state; BEGIN, component, environment, the component's row, state, the state's
    # row, event, COMMIT; deed.
    assert trips(wire, lambda: Backend(client).lock(uuid.uuid4())) == [10]
    assert trips(wire, lambda: Backend(client).push(document())) == [10]


def test_statements_are_not_prepared_behind_a_pooler(wire: Wire, state: Backend) -> None:
    _reconnect(OPTIONS={**connection.settings_dict["OPTIONS"], "prepare_threshold": None})
    lock_id, serials = uuid.uuid4(), itertools.count(2)
    calls: list[Callable[[], Any]] = [
        partial(state.lock, lock_id),
        state.get,
        lambda: state.push(document(next(serials)), f"?ID={lock_id}"),
        partial(state.unlock, lock_id),
    ]
    assert trips(wire, *calls) == [2, 2, 2, 2]


def test_lists_are_read_in_few_round_trips(wire: Wire, state: Backend) -> None:
    client = state.client
    paths = ("/api/v1/states", "/api/v1/states?page_size=2", "/api/v1/components")
    # Caller, page.
    assert trips(wire, *(partial(client.get, path) for path in paths)) == [2, 2, 2]


def test_unchanged_report(wire: Wire, client_with: ClientWith) -> None:
    client, cluster = client_with("cluster:write"), Cluster.objects.create(name="prod")
    seconds = itertools.count(1)
    path, items = f"/api/v1/clusters/{cluster.pk}/workloads", [healthy("api"), healthy("web")]

    def report() -> Any:
        return client.put(path, snapshot_body(next(seconds), items), "application/json")

    # Caller, cluster twice, rows; UPDATE.
    assert trips(wire, report) == [5]


def test_tokens_are_minted_in_few_round_trips(wire: Wire, key_with: KeyWith) -> None:  # noqa: F811 - the fixture
    owner = key_with("apikey:write", "state:read")
    new = {"access_token": {"name": "x", "scopes": ["state:read"]}}
    # Caller; token with its event; token as it is shown, with its owner.
    assert trips(wire, lambda: owner.send("POST", "/v1/access-tokens", new)) == [3]
    # Caller, owner.
    assert trips(wire, lambda: owner.get("/v1/whoami")) == [2]
