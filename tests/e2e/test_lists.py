"""Lists during writes: no row twice, and no existing row missing."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.e2e.backend import Backend, document
from tests.e2e.together import in_threads
from tests.support.server import LiveServer, live_server

pytestmark = pytest.mark.both

READERS = 2
WALKS = 3


@pytest.fixture(scope="module")
def lister(live: LiveServer) -> str:
    """A token that may read everything and move components."""
    return live.token("state:read", "state:write", "state:admin", "cluster:read")


def walk(live: LiveServer, token: str, path: str, name: str, **query: Any) -> list[Any]:
    """Return the items of a list, page after page."""
    items, page = [], ""
    while True:
        address = f"{path}?{urlencode({**query, 'page_token': page})}"
        answer = live.request("GET", address, token=token)
        assert answer.status == 200, answer.body
        items += answer.json()[name]
        page = answer.json()["next_page_token"]
        if not page:
            return items


def while_writing(read: Callable[[], None], *writers: Callable[[], None]) -> None:
    """Let readers walk the list several times while each writer continues."""
    done = threading.Event()

    def write(step: Callable[[], None]) -> None:
        while not done.is_set():
            step()

    def read_all() -> None:
        for _ in range(WALKS):
            read()

    def readers() -> None:
        try:
            in_threads([read_all] * READERS)
        finally:
            done.set()

    in_threads([readers, *[lambda step=step: write(step) for step in writers]])


def test_pages_stay_complete_while_states_change(live: LiveServer, token: str, lister: str) -> None:
    environment_id = uuid.uuid4()

    def new() -> Backend:
        backend = Backend(live, token)
        backend.environment_id = environment_id
        assert backend.push(document(1)).status == 200
        return backend

    stable = [str(new().component_id) for _ in range(40)]
    changing = new()
    serials = iter(range(2, 1_000_000))

    def connect_and_close() -> None:
        assert new().send("DELETE").status == 200

    def come() -> None:
        new()

    def change() -> None:
        assert changing.push(document(next(serials))).status == 200

    text = f"field['environment_id'] = '{environment_id}'"

    def read() -> None:
        states = walk(live, lister, "/api/v1/states", "states", filter=text, page_size=7)
        ids = [state["id"] for state in states]
        assert ids == sorted(set(ids))
        listed = [state["component_id"] for state in states]
        assert [component for component in listed if component in set(stable)] == stable
        assert listed.count(str(changing.component_id)) == 1

    while_writing(read, connect_and_close, come, change)


@pytest.fixture
def alone() -> Iterator[LiveServer]:
    """A server of a single test: the demo's clusters have the same ids each time."""
    with live_server() as server:
        yield server


def test_pages_stay_complete_while_workloads_are_created(alone: LiveServer) -> None:
    token = alone.token("cluster:read")
    options = ("--states", "0", "--clusters", "1", "--json")
    alone.run_commands(("seed_demo", *options, "--workloads", "300"))
    (cluster,) = walk(alone, token, "/api/v1/clusters", "clusters")
    path = f"/api/v1/clusters/{cluster['id']}/workloads"

    def keys(**query: Any) -> list[tuple[str, str, str]]:
        found = walk(alone, token, path, "workloads", **query)
        return [(w["namespace"], w["name"], w["kind"]) for w in found]

    stable = keys()
    assert len(stable) == 300
    totals = iter(range(330, 1_000_000, 30))

    def come() -> None:
        alone.run_commands(("seed_demo", *options, "--workloads", str(next(totals))))

    def read() -> None:
        found = keys(page_size=20)
        assert found == sorted(set(found))
        there = set(stable)
        assert [key for key in found if key in there] == stable

    while_writing(read, come)
    assert len(keys()) > 300


def test_states_are_registered_while_their_component_moves(
    live: LiveServer, token: str, lister: str
) -> None:
    def create(kind: str, name: str = "moving") -> str:
        body = json.dumps({kind: {"name": name}}).encode()
        answer = live.request("POST", f"/api/v1/{kind}s", body, token=lister, headers=JSON)
        assert answer.status == 201
        created: str = answer.json()[kind]["id"]
        return created

    component = create("component")
    applications = [create("application", f"moving {number}") for number in range(3)]

    def move() -> None:
        for application in applications:
            body = json.dumps({"component": {"application_id": application}}).encode()
            where = f"/api/v1/components/{component}"
            answer = live.request("PATCH", where, body, token=lister, headers=JSON)
            assert answer.status == 200
            found = answer.json()["component"]["application_id"]
            assert found == application

    def register() -> None:
        for _ in range(15):
            backend = Backend(live, token)
            backend.component_id = uuid.UUID(component)
            assert backend.push(document(1)).status == 200

    in_threads([move, register, register, register])

    states = [
        len(walk(live, lister, "/api/v1/states", "states", filter=text))
        for text in [f"field['application_id'] = '{a}'" for a in applications]
    ]
    assert states == [0, 0, 45]


JSON = {"Content-Type": "application/json"}
