"""Clients that send requests during an upgrade, and count the responses."""

from __future__ import annotations

import contextlib
import datetime as dt
import http.client
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from tests.e2e.traffic import GoneError, Ledger, Traffic
from tests.support.server import Answer, LiveServer


def filtered(path: str, field: str, value: str) -> str:
    """Return the path of a list with a filter for the value of a field."""
    expression = f"field['{field}'] = {value}"
    return f"{path}?{urlencode({'filter': expression})}"


class Front(LiveServer):
    """A client of the service or of a single instance that counts the responses by phase."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: Counter[tuple[str, str]] = Counter()
        self.phase = ""
        self._mutex = threading.Lock()

    def request(self, *given: Any, **more: Any) -> Answer:
        """Send a request and count its response; ``no answer`` is a broken connection.

        Raises:
            GoneError: the service did not respond.
        """
        try:
            answer = super().request(*given, **more)
            counted = "503 with Retry-After" if is_busy(answer) else str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            counted = "no answer"
            raise GoneError from error
        finally:
            with self._mutex:
                self.answers[self.phase, counted] += 1
        return answer


def is_busy(answer: Answer) -> bool:
    """Return whether the response tells the client to repeat the request."""
    return answer.status == 503 and answer.headers.get("Retry-After", "").isdecimal()


class Everything(Traffic):
    """Clients that push and lock, and clients that list, report and create keys."""

    def __init__(self, front: Front, token: str, key: str, cluster_ids: list[str]) -> None:
        super().__init__(front, token)
        self.front, self.token, self.key, self.clusters = front, token, key, cluster_ids
        own = [Ledger(self.ledgers[0].backend, shared=False)]
        habits = (self.read_lists, self.read_contents, self.report, self.make_keys)
        self.plan += [(self._ignoring_ledger(habit), own[0]) for habit in habits]
        self.failed: Counter[str] = Counter()

    @staticmethod
    def _ignoring_ledger(habit: Callable[[], None]) -> Callable[[Ledger], None]:
        return lambda _ledger: habit()

    def _run(self, habit: Callable[[Ledger], None], ledger: Ledger) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(GoneError):
                habit(ledger)

    def _send(self, send: Callable[[], Answer], *expected: int) -> int:
        while is_busy(answer := send()):
            time.sleep(0.1)
        if answer.status in expected:
            return answer.status
        with self._mutex:
            self.failed[f"{self.front.phase}: {answer.status} {answer.body[:300]!r}"] += 1
        raise GoneError

    def _call(self, method: str, path: str, body: Any = None, *, key: str = "") -> Any:
        """Send JSON, repeat the request while the service is busy, and return the response body."""
        content = None if body is None else json.dumps(body).encode()
        kept: list[Answer] = []

        def send() -> Answer:
            kept.append(
                self.front.request(
                    method,
                    path,
                    content,
                    token=key or self.token,
                    headers={"Content-Type": "application/json"},
                )
            )
            if kept[-1].status >= 400:
                kept[-1].body = f"{method} {path} ".encode() + kept[-1].body
            return kept[-1]

        self._send(send, 200, 201, 204)
        return kept[-1].json() if kept[-1].body else {}

    def read_lists(self) -> None:
        """Read a page of each list, and of two lists with a filter."""
        for path in (
            "/api/v1/states",
            filtered("/api/v1/states", "serial", "3"),
            "/api/v1/components",
            "/api/v1/clusters",
            f"/api/v1/clusters/{self.clusters[0]}/workloads",
            f"/api/v1/clusters/{self.clusters[0]}/workloads:summary",
            "/api/v1/audit-events",
            filtered("/api/v1/audit-events", "action", "'state.push'"),
        ):
            self._call("GET", path)
        self._call("GET", "/v1/api-keys", key=self.key)
        self._call("GET", "/v1/access-tokens", key=self.key)

    def read_contents(self) -> None:
        """Read the newest version and the resources of a state that other clients push to."""
        backend = self.ledgers[0].backend
        path = filtered("/api/v1/states", "component_id", f"'{backend.component_id}'")
        for state in self._call("GET", path).get("states", []):
            path = f"/api/v1/states/{state['id']}"
            versions = self._call("GET", f"{path}/versions").get("versions", [])
            for version in versions[:1]:
                self._call("GET", f"{path}/versions/{version['number']}/document")
                self._call("GET", f"{path}/versions/{version['number']}/diff")
                self._call("GET", f"{path}/resources")
                self._call("GET", f"{path}/outputs")
        time.sleep(0.05)

    def report(self) -> None:
        """Send a snapshot with changing figures; create, change and delete a cluster."""
        for cluster_id in self.clusters[-1:]:
            now = dt.datetime.now(dt.UTC)
            items = [
                {
                    "namespace": "upgrade",
                    "name": f"workload-{number}",
                    "kind": "Deployment",
                    "replicas_desired": 3,
                    "replicas_ready": (number + now.second) % 4,
                    "cpu_used_millicores": now.microsecond % 1000,
                }
                for number in range(100)
            ]
            body = {"reported_at": now.isoformat(), "workloads": items}
            self._call("PUT", f"/api/v1/clusters/{cluster_id}/workloads", body)
        name = f"cluster-{uuid.uuid4()}"
        cluster = self._call("POST", "/api/v1/clusters", {"cluster": {"name": name}}).get("cluster")
        if cluster:
            changed = {"cluster": {"report_interval_seconds": 90}}
            self._call("PATCH", f"/api/v1/clusters/{cluster['id']}", changed)
            self._call("DELETE", f"/api/v1/clusters/{cluster['id']}")
        time.sleep(0.05)

    def make_keys(self) -> None:
        """Create, rename and rotate a key, mint and use a token, and then revoke the key."""
        made = self._call(
            "POST",
            "/v1/api-keys",
            {"api_key": {"name": "new", "scopes": ["state:read", "apikey:write"]}},
            key=self.key,
        )
        if not made:
            return
        path = f"/v1/api-keys/{made['api_key']['id']}"
        self._call("PATCH", path, {"api_key": {"name": "renamed"}}, key=self.key)
        rotated = self._call("POST", f"{path}:rotate", {"grace_period": "604800s"}, key=self.key)
        self._call("POST", f"{path}:rotate", {"grace_period": "604800s"}, key=self.key)
        token = {"name": "minted", "scopes": ["state:read"]}
        minted = self._call(
            "POST", "/v1/access-tokens", {"access_token": token}, key=rotated.get("secret", "")
        )
        if minted:
            self._call("GET", "/api/v1/states?page_size=1", key=minted["secret"])
        self._call("POST", f"{path}:revoke", {}, key=self.key)
        time.sleep(0.05)
