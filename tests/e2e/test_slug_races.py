"""Twenty concurrent requests for a slug: it gets a single owner, and addresses stay."""

from __future__ import annotations

import http.client
import json
import threading
import uuid
from collections import Counter
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from tests.e2e.together import in_threads
from tests.states.conftest import document
from tests.support.server import Answer, LiveServer

pytestmark = pytest.mark.both

MANY = 20
ROUNDS = 3


class Request(NamedTuple):
    method: str
    path: str
    body: Any


class Catalogue:
    """The catalogue of a live server, for an administrator and for a writer."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        scopes = ("state:read,state:write,state:admin", "state:read,state:write")
        self.admin, self.writer = server.tokens(*scopes)

    def send(
        self, request: Request, token: str, barrier: threading.Barrier | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        with closing(connection):
            connection.connect()
            if barrier is not None:
                barrier.wait(30)
            body = request.body if isinstance(request.body, bytes) else json.dumps(request.body)
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request(request.method, request.path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())

    def at_once(self, *requests: Request) -> list[Answer]:
        """Send PATCH requests as an administrator and the rest as a writer, released together."""
        barrier = threading.Barrier(len(requests))

        def job(request: Request) -> Answer:
            token = self.admin if request.method == "PATCH" else self.writer
            return self.send(request, token, barrier)

        return in_threads([lambda request=request: job(request) for request in requests])

    def made(self, kind: str, **fields: Any) -> str:
        answer = self.send(new(kind, **fields), self.admin)
        assert answer.status == 201, answer.body
        entry_id: str = answer.json()[kind]["id"]
        return entry_id

    def pushed(self, names: str) -> Answer:
        return self.send(Request("POST", f"/api/v1/state/at/{names}", document(1)), self.admin)

    def read(self, names: str) -> Answer:
        return self.send(Request("GET", f"/api/v1/state/at/{names}", b""), self.admin)

    def count(self, kind: str, slug: str) -> int:
        path = f"/api/v1/{kind}s?filter=field%5B%27slug%27%5D%20=%20%27{slug}%27".replace(
            " ", "%20"
        )
        answer = self.send(Request("GET", path, b""), self.admin)
        return len(answer.json()[f"{kind}s"])


def new(kind: str, **fields: Any) -> Request:
    return Request("POST", f"/api/v1/{kind}s", {kind: fields})


def change(kind: str, entry: str, **fields: Any) -> Request:
    return Request("PATCH", f"/api/v1/{kind}s/{entry}", {kind: fields})


def outcome(answer: Answer) -> tuple[int, str]:
    return answer.status, "" if answer.status < 400 else answer.reason


@pytest.fixture(scope="module")
def catalogue(live: LiveServer) -> Catalogue:
    return Catalogue(live)


@pytest.fixture(params=range(ROUNDS))
def name() -> str:
    return f"n{uuid.uuid4().hex[:12]}"


@pytest.mark.parametrize("kind", ["application", "component", "environment"])
def test_name_is_created_once(catalogue: Catalogue, name: str, kind: str) -> None:
    answers = catalogue.at_once(*[new(kind, name=name)] * MANY)

    assert Counter(outcome(a) for a in answers) == {
        (201, ""): 1, (409, "ALREADY_EXISTS"): MANY - 1
    }  # fmt: skip
    (winner,) = [a.json()[kind]["id"] for a in answers if a.status == 201]
    losers = [a.json()["error"]["details"][0]["metadata"]["id"] for a in answers if a.status == 409]
    assert set(losers) == {winner}


def test_suffixes_differ(catalogue: Catalogue, name: str) -> None:
    answers = catalogue.at_once(*[new("component", name=name, slug_suffix=True)] * MANY)

    assert {a.status for a in answers} == {201}
    assert len({a.json()["component"]["slug"] for a in answers}) == MANY


@pytest.mark.parametrize("kind", ["application", "component", "environment"])
def test_a_rename_leaves_its_slug_to_no_writer(catalogue: Catalogue, name: str, kind: str) -> None:
    parts = {"application": "a", "component": "c", "environment": "e"}
    names = "/".join(f"{name}{part}" for part in parts.values())
    assert catalogue.pushed(names).status == 200
    slug = f"{name}{parts[kind]}"
    in_application: dict[str, Any] = {}
    if kind == "component":
        application = catalogue.send(new("application", name=f"{name}a"), catalogue.admin)
        found = application.json()["error"]["details"][0]["metadata"]["id"]
        in_application = {"application_id": found}
    again = catalogue.send(new(kind, name=slug, **in_application), catalogue.admin)
    entry = again.json()["error"]["details"][0]["metadata"]["id"]

    answers = catalogue.at_once(
        change(kind, entry, slug=f"{name}new"),
        *[new(kind, name=f"x{n}", slug=slug, **in_application) for n in range(MANY // 2)],
        *[Request("POST", f"/api/v1/state/at/{names}", document(1))] * (MANY // 2 - 1),
    )

    assert answers[0].status == 200
    creations, pushes = answers[1 : MANY // 2 + 1], answers[MANY // 2 + 1 :]
    assert {outcome(a) for a in creations} == {(409, "SLUG_TAKEN")}
    assert {a.status for a in pushes} == {200}
    for at in (names, names.replace(slug, f"{name}new")):
        assert (catalogue.read(at).status, catalogue.read(at).body) == (200, document(1))


def test_a_move_against_creations(catalogue: Catalogue, name: str) -> None:
    """Also against moves and renames: a single component gets the slug in the application."""
    shop = catalogue.made("application", name=name)
    inside = catalogue.made("component", name="x", slug=f"{name}x", application_id=shop)
    outside = catalogue.made("component", name="y", slug=f"{name}y")

    answers = catalogue.at_once(
        change("component", outside, application_id=shop, slug=f"{name}z"),
        change("component", inside, slug=f"{name}z"),
        *[new("component", name="z", slug=f"{name}z", application_id=shop)] * (MANY - 2),
    )

    assert Counter(a.status for a in answers) == {
        200 if 200 in [a.status for a in answers] else 201: 1, 409: MANY - 1
    }  # fmt: skip
    assert {a.reason for a in answers if a.status == 409} == {"SLUG_TAKEN"}
    assert catalogue.count("component", f"{name}z") == 1


def test_first_pushes_against_creations(catalogue: Catalogue, name: str) -> None:
    names = f"{name}/c/{name}"
    answers = catalogue.at_once(
        *[Request("POST", f"/api/v1/state/at/{names}", document(1))] * (MANY // 2),
        *[new(kind, name=name) for kind in ("application", "environment")] * (MANY // 4),
    )

    assert {a.status for a in answers[: MANY // 2]} == {200}
    assert {outcome(a) for a in answers[MANY // 2 :]} <= {
        (201, ""), (409, "ALREADY_EXISTS")
    }  # fmt: skip
    assert catalogue.count("application", name) == catalogue.count("environment", name) == 1
    assert catalogue.read(names).body == document(1)


def test_two_entries_exchange_slugs_during_creations(catalogue: Catalogue, name: str) -> None:
    """An administrator takes a former slug while writers request it: only the administrator may."""
    first = catalogue.made("environment", name=f"{name} first", slug=f"{name}a")
    second = catalogue.made("environment", name=f"{name} second", slug=f"{name}b")
    catalogue.send(change("environment", first, slug=f"{name}c"), catalogue.admin)

    answers = catalogue.at_once(
        change("environment", second, slug=f"{name}a"),
        change("environment", first, slug=f"{name}a"),
        *[new("environment", name="x", slug=f"{name}a")] * (MANY - 2),
    )

    assert sorted(a.status for a in answers[:2]) == [200, 409]
    assert {outcome(a) for a in answers[2:]} == {(409, "SLUG_TAKEN")}
    assert catalogue.count("environment", f"{name}a") == 1
