"""Run a collector for a cluster in the service, and compare the rows with the oracle."""

from __future__ import annotations

import datetime as dt
import json
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Protocol

from tests.support.installation import ROOT
from tests.support.server import LiveServer
from tools.live_kubernetes.api import Api
from tools.live_kubernetes.oracle import Oracle, Place, Row

INTERVAL = 10
USAGE = ("cpu_used_millicores", "memory_used_bytes")


class Process(Protocol):
    """The interface of a collector: a process, or an agent's pods."""

    def poll(self) -> int | None: ...

    def send_signal(self, number: int, /) -> None: ...

    def wait(self, timeout: float | None = None) -> int: ...


class Collected:
    """A cluster in the service, and the processes that collect it."""

    def __init__(self, service: LiveServer, token: str, name: str) -> None:
        self.service, self.token, self.name = service, token, name
        self.log = service.directory / f"{name}-{secrets.token_hex(3)}.log"
        answer = self._request("POST", "/api/v1/clusters", {"cluster": {"name": name}})
        self.cluster_id = answer["cluster"]["id"]

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.service.request(
            method,
            path,
            None if body is None else json.dumps(body).encode(),
            token=self.token,
            headers={"Content-Type": "application/json"},
        )
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.body!r}")
        return answer.json() if answer.body else None

    def cluster(self) -> Any:
        return self._request("GET", f"/api/v1/clusters/{self.cluster_id}")["cluster"]

    def unregister(self) -> None:
        self._request("DELETE", f"/api/v1/clusters/{self.cluster_id}")

    def rows(self) -> dict[Place, Row]:
        found, token = {}, ""
        while True:
            path = f"/api/v1/clusters/{self.cluster_id}/workloads?page_size=100&page_token={token}"
            page = self._request("GET", path)
            for row in page["workloads"]:
                found[row["kind"], row["namespace"], row["name"]] = row
            token = page["next_page_token"]
            if not token:
                return found

    def collect(self, kubeconfig: Path, *options: str) -> subprocess.Popen[bytes]:
        """Start `sync_workloads` as a process, for this cluster or with --all."""
        which = () if "--all" in options else ("--cluster", self.name)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "manage.py", "sync_workloads", "--json"),
                    *("--kubeconfig", str(kubeconfig), *which, *options),
                ],
                cwd=ROOT,
                env=self.service.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def watch(self, kubeconfig: Path, *options: str) -> subprocess.Popen[bytes]:
        return self.collect(kubeconfig, "--watch", "--interval", str(INTERVAL), *options)

    def differences(
        self, api: Api, *, namespaces: tuple[str, ...] = (), without: tuple[str, ...] = ()
    ) -> tuple[int, list[str]]:
        """Return the number of compared rows, and a message for each difference."""
        snapshot = dt.datetime.fromisoformat(self.cluster()["last_snapshot_at"])
        oracle = Oracle(api)
        shown = self.rows()
        # Some rules only depend on the time. A row is from the snapshot or from a later delta.
        moments = [snapshot, dt.datetime.now(dt.UTC)]
        answers = [oracle.rows(moment) for moment in moments]
        expected = {p for p in answers[0] if not namespaces or p[1] in namespaces}
        found = [f"{place}: missing" for place in expected - set(shown)]
        found += [f"{place}: not deleted" for place in set(shown) - expected]
        for place in expected & set(shown):
            each: list[list[str]] = [
                [
                    f"{place}: {name} is {shown[place][name]!r}, not {value!r}"
                    for name, value in answer[place].items()
                    if name not in without and shown[place][name] != value
                ]
                for answer in answers
            ]
            fewest: list[str] = min(each, key=len)
            found += fewest
        return len(expected), found


def end(process: Process) -> int:
    """Stop a collector with SIGTERM, and return its exit status."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    return process.wait(60)


def wait_for(condition: Any, seconds: float) -> bool:
    """Return whether the condition became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True
