"""``sync_workloads --all --watch``: each cluster has an end of its own."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver import STATEFULSETS, ReplayServer, event
from tests.support.installation import ROOT
from tests.support.server import LiveServer
from tests.support.waiting import MAX_WAIT, wait_until

JSON = {"Content-Type": "application/json"}


class Clusters:
    """Two registered clusters of the same kubeconfig."""

    def __init__(self, service: LiveServer, directory: Path, api: ReplayServer) -> None:
        self.service, self.api = service, api
        self.token = service.token("cluster:read", "cluster:write")
        self.ids = {f"{word}-{secrets.token_hex(3)}": "" for word in ("first", "second")}
        for name in self.ids:
            body = json.dumps({"cluster": {"name": name}}).encode()
            self.ids[name] = self.request("POST", "", body)["cluster"]["id"]
        self.kubeconfig = api.kubeconfig(directory, *self.ids)

    def request(self, method: str, path: str, body: bytes | None = None) -> Any:
        answer = self.service.request(
            method, f"/api/v1/clusters{path}", body, token=self.token, headers=JSON
        )
        assert answer.status < 300, answer.body
        return answer.json() if answer.body else None

    def unregister(self, name: str) -> None:
        self.request("DELETE", f"/{self.ids[name]}")

    def count(self, name: str) -> int:
        cluster = self.request("GET", f"/{self.ids[name]}")["cluster"]
        total: int = cluster["workload_counts"]["total"]
        return total

    def follow(self, interval: int = 3600) -> subprocess.Popen[bytes]:
        options = ("--all", "--watch", "--interval", str(interval))
        return subprocess.Popen(
            [
                *(sys.executable, "manage.py", "sync_workloads", *options),
                *("--kubeconfig", str(self.kubeconfig)),
            ],
            cwd=ROOT,
            env=self.service.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )


@pytest.fixture
def clusters(live: LiveServer, tmp_path: Path) -> Iterator[Clusters]:
    with ReplayServer() as api:
        yield Clusters(live, tmp_path, api)


def test_unregistered_cluster_does_not_affect_other_clusters(clusters: Clusters) -> None:
    first, second = clusters.ids
    following = clusters.follow(interval=2)
    try:
        wait_until(lambda: clusters.count(first) == clusters.count(second) == 54)
        clusters.unregister(first)
        assert following.stderr is not None
        line = b""
        while b"collection_ended" not in line:
            line = following.stderr.readline()
        assert json.loads(line)["cluster"] == first

        gone = clusters.api.lists[STATEFULSETS].pop(0)

        def is_reported() -> bool:
            """Send the event to all open watches, and check the second cluster."""
            clusters.api.watches.send(STATEFULSETS, event("DELETED", gone))
            return clusters.count(second) == 53

        wait_until(is_reported)
        assert following.poll() is None
    finally:
        following.send_signal(signal.SIGTERM)
        following.communicate(timeout=MAX_WAIT)
    # SIGTERM ended the command while it still followed a cluster.
    assert following.returncode == 0


def test_command_exits_with_1_and_names_the_clusters_when_all_have_ended(
    clusters: Clusters,
) -> None:
    names = list(clusters.ids)
    following = clusters.follow(interval=1)
    try:
        wait_until(lambda: all(clusters.count(name) == 54 for name in names))
        for name in names:
            clusters.unregister(name)
        _out, err = following.communicate(timeout=MAX_WAIT)
    finally:
        following.kill()
    assert following.returncode == 1
    line = err.decode().splitlines()[-1]
    assert all(name in line for name in names)
