"""A cluster whose row is locked, or whose snapshot is huge, on a service of few connections."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.e2e.together import in_threads
from tests.support.server import Answer, LiveServer, live_server
from tests.workloads.records import gzipped, healthy

pytestmark = pytest.mark.both

KIND = {"Content-Type": "application/json"}
AGENTS = 30
HUGE = 12_000
MAX_WAIT_SECONDS = 120.0


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(DATABASE_POOL_MAX="2") as server:
        yield server


@pytest.fixture(scope="module")
def token(server: LiveServer) -> str:
    return server.token("cluster:read", "cluster:write", "state:write")


class Fleet:
    """Two clusters, and the requests of their agents and readers."""

    def __init__(self, server: LiveServer, token: str, name: str) -> None:
        self.server, self.token = server, token
        self.busy, self.other = (self._register(f"{name}-{n}") for n in ("busy", "other"))

    def _register(self, name: str) -> str:
        body = json.dumps({"cluster": {"name": name}}).encode()
        answer = self.send("POST", "/api/v1/clusters", body)
        cluster_id: str = answer.json()["cluster"]["id"]
        return cluster_id

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        return self.server.request(
            method, path, body, token=self.token, headers={**KIND, **headers},
            timeout=MAX_WAIT_SECONDS,
        )  # fmt: skip

    def read(self, cluster: str) -> Answer:
        return self.send("GET", f"/api/v1/clusters/{cluster}/workloads")

    def report(self, cluster: str, ago: float = 0) -> Answer:
        reported_at = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=ago)
        body = {"reported_at": reported_at.isoformat(), "upserts": [healthy("small")]}
        return self.send(
            "PATCH", f"/api/v1/clusters/{cluster}/workloads", json.dumps(body).encode()
        )

    def push(self) -> Answer:
        state = "0b8b2a52-0000-4000-8000-000000000001"
        document = {"version": 4, "serial": time.time_ns(), "lineage": "x", "resources": []}
        path = f"/api/v1/state/{state}/env/{state}"
        return self.send("POST", path, json.dumps(document).encode())


@contextlib.contextmanager
def held(server: LiveServer, cluster: str) -> Iterator[None]:
    """Hold the lock that a report needs: on PostgreSQL of the row, on SQLite of the database."""
    if url := server.environment.get("DATABASE_URL"):
        with psycopg.connect(url) as database:
            database.execute("SELECT 1 FROM workloads_cluster WHERE id = %s FOR UPDATE", [cluster])
            yield
    else:
        with contextlib.closing(sqlite3.connect(server.directory / "db.sqlite3")) as database:
            database.isolation_level = None
            database.execute("BEGIN IMMEDIATE")
            yield


def test_many_reports_wait_for_a_locked_row(server: LiveServer, token: str) -> None:
    fleet = Fleet(server, token, "held")
    on_postgresql = "DATABASE_URL" in server.environment
    answers: list[Answer] = []
    others: Counter[tuple[str, int]] = Counter()
    finished = threading.Event()

    def agents() -> None:
        in_threads([lambda: answers.append(fleet.report(fleet.busy))] * AGENTS)
        finished.set()

    def sends(name: str, ask: Callable[[], Answer]) -> Callable[[], None]:
        def goes_on() -> None:
            while not finished.is_set():
                others[name, ask().status] += 1

        return goes_on

    readers = [sends("read", lambda: fleet.read(fleet.busy))]
    if on_postgresql:  # on SQLite every writer waits for the current writer
        readers += [sends("report", lambda: fleet.report(fleet.other)), sends("push", fleet.push)]
    with held(server, fleet.busy):
        in_threads([agents, *readers])

    # No request waited until the row was free, and all other requests got a connection.
    assert Counter(answer.status for answer in answers) == {503: AGENTS}
    assert {answer.reason for answer in answers} == {"CLUSTER_BUSY"}
    assert {answer.headers["Retry-After"] for answer in answers} == {"2"}
    assert {status for _, status in others} == {200}
    assert len(others) == len(readers)
    assert fleet.report(fleet.busy).status == 200


def test_small_older_reports_are_refused_beside_a_huge_snapshot(
    server: LiveServer, token: str
) -> None:
    """The small reports alone would make the huge snapshot start over for as long as they come."""
    fleet = Fleet(server, token, "huge")
    items = [healthy(f"service-{n}", namespace=f"team-{n % 50}") for n in range(HUGE)]
    body = {"reported_at": dt.datetime.now(dt.UTC).isoformat(), "workloads": items}
    sent = gzipped(json.dumps(body).encode())
    answers: list[Answer] = []
    others: Counter[tuple[str, int]] = Counter()
    done = threading.Event()
    until = time.monotonic() + MAX_WAIT_SECONDS

    def huge() -> None:
        path = f"/api/v1/clusters/{fleet.busy}/workloads"
        while time.monotonic() < until:
            answer = fleet.send("PUT", path, sent, **{"Content-Encoding": "gzip"})
            if answer.status != 503:
                break
            time.sleep(float(answer.headers["Retry-After"]))
        answers.append(answer)
        done.set()

    def small() -> None:
        while not done.is_set():
            others["small", fleet.report(fleet.busy, ago=60).status] += 1

    def sends(name: str, ask: Callable[[], Answer]) -> Callable[[], None]:
        def goes_on() -> None:
            while not done.is_set():
                others[name, ask().status] += 1

        return goes_on

    in_threads([
        huge, *[small] * 4, sends("read", lambda: fleet.read(fleet.other)),
        sends("report", lambda: fleet.report(fleet.other)), sends("push", fleet.push),
    ])  # fmt: skip

    (answer,) = answers
    assert answer.status == 200, answer.body
    assert answer.json()["report"]["created"] >= HUGE - 1
    statuses = {name: {s for n, s in others if n == name} for name, _ in others}
    assert statuses["small"] <= {200, 409, 503}
    assert statuses["read"] == statuses["push"] == {200}
    on_postgresql = "DATABASE_URL" in server.environment
    # On SQLite a report waits at most a second for the current writer, then gets 503.
    assert statuses["report"] <= ({200} if on_postgresql else {200, 503})
