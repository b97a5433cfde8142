"""A service, or a server in its place, that sends arbitrary answers to an agent."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver import DEPLOYMENTS, Fault, ReplayServer
from tests.workloads.collector.between import Action, Between, answering
from tests.workloads.collector.conftest import no_progress
from tests.workloads.collector.registered import Registered
from tests.workloads.records import report
from workloads.collector import connect
from workloads.collector.destinations import NotReportedError
from workloads.collector.service import ServiceDestination
from workloads.collector.service_connection import ServiceConnection
from workloads.collector.service_credentials import ExchangedToken, TokenFile
from workloads.collector.sync import Collector, Synced

DIGITS = "9" * 5000
DEEP = b"[" * 30_000 + b"]" * 30_000
BODIES = [
    b"", b"{", b"null", b"[]", b"7", b'"x"', b"{}", b"<html>", b"\xff\xfe", b"\0", DEEP,
    b'{"report":null}', b'{"report":{}}', b'{"report":' + DEEP + b"}",
    b'{"report":{"created":-1,"updated":1e3,"deleted":"x","unchanged":null}}',
    b'{"error":null}', b'{"error":7}', b'{"error":{"details":[]}}', b'{"error":{"details":[7]}}',
    b'{"error":{"details":[{"reason":{"x":[]}}],"message":{"y":[]}}}',
    b'{"error":{"details":[{"reason":"' + b"R" * 60_000 + b'"}],"message":"\\u0000"}}',
]  # fmt: skip
HEADERS: list[dict[str, str]] = [
    {},
    {"Retry_After": DIGITS},
    {"Retry_After": "Mon, 01 Jan 2026 00:00:00 +99999999999999"},
    {"Retry_After": "-1"},
    {"Retry_After": "\xb9"},
    {"Content_Length": DIGITS[:4000]},
    {"Content_Length": "-1"},
    {"Content_Length": "x"},
    {"Transfer_Encoding": "chunked"},
    {"Location": "http://127.0.0.1:1/"},
    {"X": "y" * 60_000},
]
STATUSES = [200, 200, 201, 204, 301, 400, 401, 403, 404, 409, 413, 418, 429, 500, 503, 599]


def raw_answer(line: bytes) -> Action:
    """Answer with bytes that need be no HTTP."""

    def answer(_between: Between, handler: Any, _body: bytes) -> None:
        handler.wfile.write(line)
        handler.close_connection = True

    return answer


RAW = [
    b"", b"\r\n", b"HTTP/9.9 200 OK\r\n\r\n", b"HTTP/1.1 99999 x\r\n\r\n", b"HTTP/1.1 -1 x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffffff\r\nx",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nx", b"x" * 100_000,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx",
]  # fmt: skip


def action(rng: random.Random) -> Action:
    if rng.random() < 0.2:
        return raw_answer(rng.choice(RAW))
    return answering(rng.choice(STATUSES), rng.choice(BODIES), **rng.choice(HEADERS))


def agent(
    api: ReplayServer, between: Between, registered: Registered, directory: Path
) -> Collector:
    file = directory / "token"
    file.write_text(registered.token)
    client = connect.from_kubeconfig(str(api.kubeconfig(directory)), "replay")
    connection = ServiceConnection(between.url)
    there = ServiceDestination(connection, TokenFile(file), registered.id, "agent/test")
    return Collector(client, there, progress=no_progress, interval=3600)


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("seed", range(4))
def test_after_any_answers_a_report_arrives(
    api: ReplayServer, between: Between, registered: Registered, tmp_path: Path, seed: int
) -> None:
    rng, stop = random.Random(seed), threading.Event()
    between.actions += [action(rng) for _ in range(40)]
    reports: list[Synced] = []

    def reported(synced: Synced) -> None:
        # Some of the answers are as good as the service's.
        reports.append(synced)
        if between.actions:
            api.watches.send(DEPLOYMENTS, json.dumps(
                {"type": "MODIFIED", "object": api.lists[DEPLOYMENTS][0]}
            ).encode())  # fmt: skip
        else:
            stop.set()

    agent(api, between, registered, tmp_path).follow(stop, reported)

    assert reports
    assert not between.actions
    assert len(between.reports()) >= 41


@pytest.mark.usefixtures("pauses")
def test_a_workload_that_the_service_would_refuse_costs_no_report(
    api: ReplayServer, between: Between, registered: Registered, tmp_path: Path
) -> None:
    """The service refuses a report as a whole, and an odd API server would be never reported."""
    odd = json.loads(json.dumps(api.lists[DEPLOYMENTS][:4]))
    for number, raw in enumerate(odd):
        raw["metadata"] |= {"uid": f"odd-{number}", "name": f"odd-{number}"}
    odd[0]["metadata"]["labels"] = {"no key": "no value!"}
    odd[1]["spec"]["template"]["spec"]["containers"][0]["name"] = "Not_A_Label"
    odd[2]["metadata"]["name"] = "No_Name"
    odd[3]["metadata"]["name"] = api.lists[DEPLOYMENTS][0]["metadata"]["name"]
    body = {"metadata": {"resourceVersion": "1"}, "items": [*api.lists[DEPLOYMENTS], *odd]}
    api.faults[DEPLOYMENTS].append(Fault(200, json.dumps(body).encode()))

    agent(api, between, registered, tmp_path).once(threading.Event())

    found = {row["name"]: row for row in registered.workloads()}
    assert len(found) == 56
    assert (found["odd-0"]["labels"], found["odd-0"]["containers"]) == ({}, [])
    assert "odd-1" in found
    assert "No_Name" not in found


EXCHANGED: list[dict[str, Any]] = [
    {"access_token": token, "expires_in": expires}
    for token in ("", " ", "iss_a\r\nX: y", "iss_\0", "iss_\u20ac", "x" * 60_000, "iss_ok")
    for expires in (0, -1, 1e308, 3600)
]


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("answer", [*EXCHANGED, {}, [], {"access_token": 7, "expires_in": "x"}])
def test_invalid_token_file_is_reported(
    between: Between, registered: Registered, tmp_path: Path, answer: Any
) -> None:
    identity = tmp_path / "identity"
    identity.write_text("a.b.c")
    between.exchanges.append(answering(200, json.dumps(answer).encode()))
    between.exchanges.append(answering(503))
    connection = ServiceConnection(between.url)
    credentials = ExchangedToken(connection, "fed-x", identity, tmp_path / "kept")
    there = ServiceDestination(connection, credentials, registered.id, "agent/test")

    with pytest.raises(NotReportedError) as refused:
        there._send("PUT", "/x", b"{}", {})

    token = answer.get("access_token") if isinstance(answer, dict) else None
    assert not (isinstance(token, str) and token.strip() and token in str(refused.value))


def test_endless_response_is_cut_off(
    between: Between, registered: Registered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workloads.collector.service_connection._WITHIN", 1.0)

    def endless(_between: Between, handler: Any, _body: bytes) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        with contextlib.suppress(OSError):
            while True:
                handler.wfile.write(b"X: y\r\n")
                time.sleep(0.02)

    between.actions.append(endless)
    file = tmp_path / "token"
    file.write_text(registered.token)
    there = ServiceDestination(
        ServiceConnection(between.url), TokenFile(file), registered.id, "agent/test"
    )
    started = time.monotonic()

    with pytest.raises(NotReportedError):
        there.apply(report(0))

    assert time.monotonic() - started < 20
