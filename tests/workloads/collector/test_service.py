"""Reports over HTTP: whatever happens on the way, the rows are soon those of the cluster."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver import DEPLOYMENTS, STATEFULSETS, ReplayServer, event
from tests.support.certificates import self_signed
from tests.support.waiting import wait_until
from tests.workloads.collector import between as way
from tests.workloads.collector.between import Between, answering
from tests.workloads.collector.conftest import no_progress
from tests.workloads.collector.registered import JSON, Registered
from workloads.collection import CollectionFailure, FailureReason
from workloads.collector import connect, service_connection
from workloads.collector.destinations import NotReportedError, ReportingEndedError
from workloads.collector.service import ServiceDestination
from workloads.collector.service_connection import AddressError, ServiceConnection
from workloads.collector.service_credentials import TokenFile
from workloads.collector.sync import Collector, Synced
from workloads.reporting.reports import Applied


@pytest.fixture
def token_file(registered: Registered, tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{registered.token}\n")
    return file


def destination(url: str, registered: Registered, file: Path, **more: Any) -> ServiceDestination:
    connection = ServiceConnection(url, **more)
    return ServiceDestination(connection, TokenFile(file), registered.id, "agent/test")


@dataclass
class Scene:
    """An agent of a recorded cluster, and all that stands on its way to the service."""

    api: ReplayServer
    between: Between
    registered: Registered
    token_file: Path
    kubeconfig: str
    pauses: list[float]

    def agent(self) -> Collector:
        client = connect.from_kubeconfig(self.kubeconfig, "replay")
        there = destination(self.between.url, self.registered, self.token_file)
        return Collector(client, there, progress=no_progress, interval=3600)

    @property
    def methods(self) -> list[str]:
        return [method for method, *_ in self.between.reports()]


@pytest.fixture
def scene(
    api: ReplayServer,
    registered: Registered,
    between: Between,
    token_file: Path,
    pauses: list[float],
) -> Scene:
    kubeconfig = str(api.kubeconfig(token_file.parent))
    return Scene(api, between, registered, token_file, kubeconfig, pauses)


def follow(
    scene: Scene, stop: threading.Event, enough: Callable[[list[Synced]], bool]
) -> list[Synced]:
    reports: list[Synced] = []

    def reported(synced: Synced) -> None:
        reports.append(synced)
        if enough(reports):
            stop.set()

    scene.agent().follow(stop, reported)
    assert enough(reports), reports
    return reports


def test_single_pass_ends(scene: Scene, stop: threading.Event) -> None:
    synced = scene.agent().once(stop)

    assert synced.applied == Applied(created=54, updated=0, deleted=0, unchanged=0)
    cluster = scene.registered.get()["cluster"]
    assert cluster["workload_counts"]["total"] == 54
    assert cluster["report_interval_seconds"] == 3600
    assert cluster["collection"]["collector_version"] == "agent/test"
    assert cluster["uid"] == "229cb448-7af2-40c4-bf31-ace29c1771bb"


FAULTS = [
    way.unheard, answering(500), answering(502, b"<html>"),
    answering(200, b"<html>welcome</html>"), answering(301, Location="http://127.0.0.1:1/"),
    answering(404, b"no backend"), answering(409, b'{"error": []}'), answering(401), answering(403),
    answering(413, Retry_After="3"), answering(429, Retry_After="7"), answering(503),
    answering(200, b"{" * 100_000), answering(503, b"x" * 100_000), way.lost, way.halved,
]  # fmt: skip


def test_a_snapshot_that_fails_is_sent_again(scene: Scene, stop: threading.Event) -> None:
    scene.between.actions += FAULTS

    follow(scene, stop, lambda reports: len(reports) == 1)

    assert scene.methods == ["PUT"] * (len(FAULTS) + 1)
    assert len(scene.registered.workloads()) == 54


def test_changes_that_fail_are_made_good_by_a_snapshot(scene: Scene, stop: threading.Event) -> None:
    """Of one workload after another, each removed while the next fault is on the way."""
    gone = [(path, raw) for path in (DEPLOYMENTS, STATEFULSETS) for raw in scene.api.lists[path]][
        : len(FAULTS)
    ]
    there = {}

    def enough(reports: list[Synced]) -> bool:
        there[len(reports)] = len(scene.registered.workloads())
        done = len(reports) - 1
        if done == len(FAULTS):
            return True
        scene.between.actions.append(FAULTS[done])
        path, raw = gone[done]
        scene.api.watches.send(path, event("DELETED", raw))
        return False

    follow(scene, stop, enough)

    assert scene.methods == ["PUT"] + ["PATCH", "PUT"] * len(FAULTS)
    assert there == {number + 1: 54 - number for number in range(len(FAULTS) + 1)}


def test_retry_after_is_respected(scene: Scene, stop: threading.Event) -> None:
    headers = (
        {}, {"Retry_After": "7"}, {"Retry_After": "Wed, 21 Oct 2026 07:28:00 GMT"},
        {"Retry_After": "99999999999"}, {"Retry_After": "-1"},
    )  # fmt: skip
    for status in (413, 429):
        scene.between.actions += [answering(status, **header) for header in headers]

    follow(scene, stop, lambda reports: len(reports) == 1)

    assert scene.methods == ["PUT"] * 11
    # Other pauses are of watches.
    assert [pause for pause in scene.pauses if pause] == [7.0, 300.0] * 2


def test_unreachable_service_is_reported(scene: Scene, stop: threading.Event) -> None:
    scene.between.actions += [way.unheard] * 30

    follow(scene, stop, lambda reports: len(reports) == 1)

    assert scene.methods == ["PUT"] * 31
    assert len(scene.registered.workloads()) == 54
    # Meanwhile the collector tried to send its failure; a report resets that status.
    assert scene.registered.get()["cluster"]["collection"]["status"] == "OK"


def test_no_pause_is_longer_than_half_an_interval(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a service that is back after hours gets a report within one interval."""
    monkeypatch.undo()  # real pauses, without the waiting
    waited: list[float] = []
    reporting = threading.current_thread()

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if threading.current_thread() is not reporting:
                return super().wait(timeout)
            waited.append(timeout or 0.0)
            if len(scene.methods) == 9:
                self.set()
            return super().wait(0.01)

    scene.between.actions += [answering(503)] * 9
    agent = scene.agent()
    agent._interval = 4

    agent.follow(Stop(), lambda _synced: None)

    longest = max(waited)
    assert 1.0 <= longest <= 2.0


def test_a_refused_token_is_read_again(scene: Scene, stop: threading.Event) -> None:
    scene.token_file.write_text("iss_" + "a" * 38)

    def replace(proxy: Between, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        way.handed_on(proxy, handler, body)
        if len(proxy.reports()) == 2:
            scene.token_file.write_text(scene.registered.token)

    scene.between.actions += [replace, replace]

    follow(scene, stop, lambda reports: len(reports) == 1)

    assert len(scene.methods) == 3
    assert len(scene.registered.workloads()) == 54


@pytest.mark.parametrize("content", ["", "\n", "two words", "é", "a\x00b", None])
def test_file_without_a_token_is_reported(
    registered: Registered, token_file: Path, between: Between, content: str | None
) -> None:
    if content is None:
        token_file.unlink()
    else:
        token_file.write_text(content)
    failure = CollectionFailure(reason=FailureReason.OTHER, message="")

    with pytest.raises(NotReportedError, match="token"):
        destination(between.url, registered, token_file).publish(failure)

    assert not between.requests


def test_a_cluster_that_is_not_registered_ends_it(scene: Scene, stop: threading.Event) -> None:
    registered = scene.registered
    path = f"/api/v1/clusters/{registered.id}"
    assert registered.live.request("DELETE", path, token=registered.reader).status == 204

    with pytest.raises(ReportingEndedError, match=r"^404 CLUSTER_NOT_FOUND: "):
        scene.agent().follow(stop, lambda _synced: None)
    assert stop.is_set()


def test_another_cluster_ends_it(scene: Scene, stop: threading.Event) -> None:
    registered = scene.registered
    body = json.dumps(
        {"reported_at": "2026-01-01T00:00:00Z", "workloads": [], "cluster_uid": "another"}
    ).encode()
    path = f"/api/v1/clusters/{registered.id}/workloads"
    registered.live.request("PUT", path, body, token=registered.token, headers=JSON)

    with pytest.raises(ReportingEndedError, match=r"^409 CLUSTER_UID_MISMATCH: "):
        scene.agent().follow(stop, lambda _synced: None)


def test_failure_is_published_truncated_and_redacted(
    registered: Registered, between: Between, token_file: Path
) -> None:
    """The message is cut at its limit, and a token in it is redacted before it is sent."""
    failure = CollectionFailure(
        reason=FailureReason.FORBIDDEN,
        message=f"403: Bearer hunter2 {'x' * 10_000}",
        resource="p" * 200,
    )
    destination(between.url, registered, token_file).publish(failure)

    collection = registered.get()["cluster"]["collection"]
    assert (collection["status"], collection["last_error_reason"]) == ("FAILING", "FORBIDDEN")
    assert b"hunter2" not in between.requests[0][3]


def test_two_agents_of_the_same_cluster_are_reported(scene: Scene, stop: threading.Event) -> None:
    """Each is rejected now and then because of the other; the table shows the cluster."""
    gone = scene.api.lists[DEPLOYMENTS][:5]
    watches = scene.api.watches
    reporters: set[str] = set()

    def reported(_synced: Synced) -> None:
        if len(scene.registered.workloads()) == 49:
            reporters.add(threading.current_thread().name)
            if len(reporters) == 2:
                stop.set()

    agents = [
        threading.Thread(target=scene.agent().follow, args=(stop, reported)) for _ in range(2)
    ]
    for agent in agents:
        agent.start()
    wait_until(lambda: watches.number_open(DEPLOYMENTS) == 2)
    watches.send(DEPLOYMENTS, *(event("DELETED", raw) for raw in gone))
    for agent in agents:
        agent.join(60)

    assert len(reporters) == 2
    assert len(scene.registered.workloads()) == 49


def test_the_certificate_is_verified(
    registered: Registered, token_file: Path, tmp_path: Path
) -> None:
    right = self_signed(tmp_path, "right")
    wrong = self_signed(tmp_path, "wrong")
    ca_file = tmp_path / "ca.pem"
    failure = CollectionFailure(reason=FailureReason.OTHER, message="")
    with Between(registered.live, right) as tls:
        with pytest.raises(NotReportedError, match="CERTIFICATE_VERIFY_FAILED"):
            destination(tls.url, registered, token_file).publish(failure)
        shutil.copy(wrong[0], ca_file)
        there = destination(tls.url, registered, token_file, ca_file=str(ca_file))
        with pytest.raises(NotReportedError, match="CERTIFICATE_VERIFY_FAILED"):
            there.publish(failure)
        assert not tls.requests
        shutil.copy(right[0], ca_file)  # as when authorities are renewed
        with pytest.raises(NotReportedError, match="CERTIFICATE_VERIFY_FAILED"):
            there.publish(failure)
        there.publish(failure)
        assert len(tls.requests) == 1


@pytest.mark.parametrize("url", [
    "", "infra.example.com", "http://infra.example.com", "http://10.0.0.1:8000", "ftp://127.0.0.1",
    "https://", "https://user:hunter2@infra.example.com", "https://infra.example.com:port",
    "https://infra.example.com/?a=b", "https://infra.example.com/#a", "https://[::1", "https://a b",
])  # fmt: skip
def test_unsafe_addresses_are_refused(url: str) -> None:
    with pytest.raises(
        AddressError, match=r"^the service's address must have the form https://host$"
    ):
        ServiceConnection(url)


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_file_without_authorities_is_reported(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)

    with pytest.raises(AddressError, match="contains no certificate authorities"):
        ServiceConnection("https://infra.example.com", str(file))


def hanging(proxy: Between, _handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    proxy.hang_up.wait(30)


def test_a_wait_has_an_end(
    registered: Registered, between: Between, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a service that sends a byte now and then."""

    def dripping(proxy: Between, handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        while not proxy.hang_up.wait(0.05):
            handler.wfile.write(b"H")

    monkeypatch.setattr(service_connection, "_WITHIN", 0.5)
    there = destination(between.url, registered, token_file)
    for action in (hanging, dripping):
        between.actions.append(action)
        with pytest.raises(NotReportedError, match="does not respond"):
            there._send("PUT", there._path, b"{}", JSON)


def test_stop_interrupts_the_run(
    registered: Registered, between: Between, token_file: Path
) -> None:
    there = destination(between.url, registered, token_file)

    def stopped(proxy: Between, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        there.stop()
        hanging(proxy, handler, body)

    between.actions.append(stopped)

    for _ in range(2):
        with pytest.raises(NotReportedError):
            there._send("PUT", there._path, b"{}", JSON)

    assert len(between.requests) == 1
