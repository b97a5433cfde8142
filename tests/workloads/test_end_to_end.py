"""The command as operators run it, on the recording or a real cluster, and the API after it.

``KUBECONFIG_TEST`` names a kubeconfig whose current context is a cluster that may be read.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

from tests.apiserver import DEPLOYMENTS, METRICS, Fault, ReplayServer, event, lines
from tests.support.installation import ROOT
from tests.support.server import LiveServer
from tests.support.waiting import MAX_WAIT, wait_until
from tests.workloads.kubernetes.test_recorded import EXPECTED

REAL = os.environ.get("KUBECONFIG_TEST", "")


@dataclass
class Target:
    """A cluster to read, as it is registered on a live service."""

    service: LiveServer
    token: str
    kubeconfig: str
    cluster_id: str
    name: str
    api: ReplayServer | None

    def get(self, path: str = "") -> Any:
        answer = self.service.request(
            "GET", f"/api/v1/clusters/{self.cluster_id}{path}", token=self.token
        )
        assert answer.status == 200, answer.body
        return answer.json()

    def workloads(self) -> list[dict[str, Any]]:
        found, token = [], ""
        while True:
            page = self.get(f"/workloads?page_size=100&page_token={token}")
            found += page["workloads"]
            token = page["next_page_token"]
            if not token:
                return found

    def sync(self, *options: str) -> dict[str, Any]:
        (output,) = self.service.run_commands(("sync_workloads", *self.options(), *options))
        line: dict[str, Any] = json.loads(output)
        return line

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start the command in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "manage.py", "sync_workloads", *self.options(), *options],
            cwd=ROOT,
            env=self.service.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def options(self) -> list[str]:
        return ["--cluster", self.name, "--kubeconfig", self.kubeconfig, "--json"]

    def names(self) -> set[tuple[str, str, str]]:
        """Ask the cluster itself, with the package's own typed client."""
        if self.api is not None:
            return set(EXPECTED)
        apps = kubernetes_client.AppsV1Api(
            kubernetes_config.new_client_from_config(self.kubeconfig)
        )
        return {
            (kind, raw.metadata.namespace, raw.metadata.name)
            for kind, listed in (
                ("Deployment", apps.list_deployment_for_all_namespaces()),
                ("StatefulSet", apps.list_stateful_set_for_all_namespaces()),
                ("DaemonSet", apps.list_daemon_set_for_all_namespaces()),
            )
            for raw in listed.items
        }


@pytest.fixture(scope="module")
def token(live: LiveServer) -> str:
    return live.token("cluster:read", "cluster:write")


@pytest.fixture(params=[
    "replay", pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="no KUBECONFIG_TEST"))
])  # fmt: skip
def target(
    request: pytest.FixtureRequest, live: LiveServer, token: str, tmp_path: Path
) -> Iterator[Target]:
    name = f"cluster-{secrets.token_hex(4)}"
    body = json.dumps({"cluster": {"name": name}}).encode()
    headers = {"Content-Type": "application/json"}
    answer = live.request("POST", "/api/v1/clusters", body, token=token, headers=headers)
    assert answer.status == 201, answer.body
    cluster_id = answer.json()["cluster"]["id"]
    if request.param == "real":
        yield Target(live, token, REAL, cluster_id, name, None)
        return
    with ReplayServer() as api:
        yield Target(live, token, str(api.kubeconfig(tmp_path)), cluster_id, name, api)


def places(workloads: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {(w["kind"], w["namespace"], w["name"]) for w in workloads}


def test_a_cluster_is_read_and_shown(target: Target) -> None:
    assert target.get()["cluster"]["health_status"] == "PENDING"

    first = target.sync()
    assert first["created"] == len(target.names())
    assert places(target.workloads()) == target.names()

    second = target.sync()
    assert (second["created"], second["deleted"]) == (0, 0)

    cluster = target.get()["cluster"]
    assert cluster["health_status"] in {"HEALTHY", "DEGRADED", "ERROR"}
    assert cluster["workload_counts"]["total"] == first["created"]
    summary = target.get("/workloads:summary")["summary"]
    assert summary["total"]["workloads"] == first["created"]


def test_the_recorded_figures_come_out_of_the_api(target: Target) -> None:
    if target.api is None:
        pytest.skip("only the recording has expected figures")
    target.sync()

    shown = {(w["kind"], w["namespace"], w["name"]): w for w in target.workloads()}

    output: list[str] = []
    for place, entry in EXPECTED.items():
        expected = dict(entry["expected"])
        health = expected.pop("health_one_hour_later")
        del expected["health_at_recording"], expected["pods_with_metrics"]
        expected |= {"health_status": health["health"], "status_reason": health["status_reason"]}
        for container in shown[place]["containers"]:
            output += container.pop("running", [])
        assert {name: shown[place][name] for name in expected} == expected
    images = ("registry.example/app:1.0", "nginx:1.25", "envoy:v1.30")
    assert set(output) == {f"{image}@sha256:{0:064}" for image in images}
    assert target.get()["cluster"]["workload_counts"] == {
        "total": 54, "healthy": 18, "degraded": 12, "error": 24, "unspecified": 0
    }  # fmt: skip


def test_a_watch_keeps_up_and_stops_cleanly(target: Target) -> None:
    if target.api is not None:
        final = target.api.lists[DEPLOYMENTS]
        target.api.lists[DEPLOYMENTS] = []
        target.api.watches.scripts[DEPLOYMENTS].append(lines("watch-deployments-history.jsonl"))
    watching = target.start("--watch")
    try:
        wait_until(lambda: places(target.workloads()) == target.names())
    finally:
        watching.send_signal(signal.SIGTERM)
        out, err = watching.communicate(timeout=MAX_WAIT)
    assert watching.returncode == 0, err
    assert json.loads(out.splitlines()[0])["report"] == "snapshot"

    watched = {w["id"]: w for w in target.workloads()}
    if target.api is not None:
        target.api.lists[DEPLOYMENTS] = final
    assert target.sync()["deleted"] == 0
    for workload in target.workloads():
        now, then = ({**w, "last_updated_at": ""} for w in (workload, watched[workload["id"]]))
        assert target.api is None or now == then


def test_a_watch_ends_when_it_is_another_cluster(target: Target) -> None:
    target.sync()
    body = json.dumps({"reported_at": "2026-01-01T00:00:00Z", "upserts": [], "cluster_uid": "x"})
    headers = {"Content-Type": "application/json"}
    path = f"/api/v1/clusters/{target.cluster_id}/workloads"
    answer = target.service.request(
        "PATCH", path, body.encode(), token=target.token, headers=headers
    )
    assert (answer.status, answer.reason) == (409, "CLUSTER_UID_MISMATCH")


@pytest.mark.parametrize("options", [("--once",), ("--watch",)])
@pytest.mark.parametrize("silent", [DEPLOYMENTS, METRICS])
def test_a_silent_server_does_not_keep_it(
    target: Target, options: tuple[str, ...], silent: str
) -> None:
    if target.api is None:
        pytest.skip("a real cluster answers")
    api, requested = target.api, threading.Event()

    def hang(path: str, _query: dict[str, str]) -> None:
        if path.startswith(silent):
            requested.set()
            api.watches.hang_up.wait(60)

    api.before_answer = hang
    running = target.start(*options)
    assert requested.wait(MAX_WAIT)
    started = time.monotonic()
    running.send_signal(signal.SIGTERM)
    _out, err = running.communicate(timeout=MAX_WAIT)

    assert time.monotonic() - started < 20
    assert (running.returncode, b"Traceback" in err) == (int("--once" in options), False)
    assert target.workloads() == []


def test_half_an_answer_does_not_keep_it(target: Target) -> None:
    if target.api is None:
        pytest.skip("a real cluster answers")
    half = json.dumps({"metadata": {}, "items": []}).encode()
    target.api.faults[DEPLOYMENTS].append(Fault(200, half, cut=10, hold=True))
    running = target.start("--once")
    wait_until(lambda: target.api and target.api.queries_of(DEPLOYMENTS))
    time.sleep(0.5)  # the half has arrived
    started = time.monotonic()
    running.send_signal(signal.SIGTERM)
    _out, err = running.communicate(timeout=MAX_WAIT)

    assert time.monotonic() - started < 20
    assert (running.returncode, b"Traceback" in err) == (1, False)


def test_stopped_watch_reports_the_reason(target: Target) -> None:
    if target.api is None:
        pytest.skip("a real cluster is always itself")
    body = json.dumps(
        {"reported_at": "2026-01-01T00:00:00Z", "workloads": [], "cluster_uid": "another"}
    )
    headers = {"Content-Type": "application/json"}
    path = f"/api/v1/clusters/{target.cluster_id}/workloads"
    target.service.request("PUT", path, body.encode(), token=target.token, headers=headers)
    target.api.watches.scripts[DEPLOYMENTS].append([event("BOOKMARK", {"metadata": {}})])

    watching = target.start("--watch", "--interval", "5")
    _out, err = watching.communicate(timeout=MAX_WAIT)

    assert watching.returncode == 1
    assert b"has the uid another" in err
