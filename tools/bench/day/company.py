"""The company: pipelines, agents and users that use the service over HTTP."""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.parse
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final

from tests.e2e.backend import lock_info
from tests.support.issuer import IssuerServer
from tests.support.server import LiveServer
from tools.bench.day import proportions
from tools.bench.day.access import log_in, trust
from tools.bench.day.clients import (
    GZIP,
    JSON,
    Client,
    Cluster,
    Headers,
    State,
    UnexpectedStatusError,
)

#: A function that does work, called with its due time on the monotonic clock.
Work = Callable[[float], None]
#: The time after the start in seconds, and the work.
Arrival = tuple[float, Work]

#: The lists that users open, by name.
LISTS: Final = {
    "states": "/api/v1/states?page_size=50",
    "locked states": "/api/v1/states?filter=field['locked'] = 'true'",
    "workloads": "/api/v1/workloads?page_size=50",
    "workloads of a health": "/api/v1/workloads?filter=field['health_status'] = 'DEGRADED'",
    "workloads of a namespace and label": "/api/v1/workloads?filter=field['namespace'] = 'team-7'"
    " AND labels['team'] = 'team-7'",
    "summary of all workloads": "/api/v1/workloads:summary",
    "clusters": "/api/v1/clusters",
    "audit events": "/api/v1/audit-events?page_size=50",
}
_PAGES: Final = (
    "/admin/",
    "/admin/states/state/",
    "/admin/states/component/",
    "/admin/workloads/workload/",
    "/admin/workloads/cluster/",
    "/admin/apikeys/auditevent/",
)


class Company:
    """The teams that use a service, and the durations of their requests."""

    def __init__(self, server: LiveServer, issuer: IssuerServer) -> None:
        self.server, self.teams = server, 0
        self.states: list[State] = []
        self.clusters: list[Cluster] = []
        self.milliseconds: defaultdict[str, list[float]] = defaultdict(list)
        self.wrong: Counter[str] = Counter()
        self._issuer, self._policy = issuer, trust(server, issuer)
        scopes = ("state:read", "state:write", "cluster:read", "cluster:write", "cluster:report",
                  "audit:read")  # fmt: skip
        self._bearer = f"Bearer {server.token(*scopes)}"
        self._session = log_in(server)

    def record(self, kind: str, milliseconds: float) -> None:
        self.milliseconds[kind].append(milliseconds)

    def shrink_to(self, teams: int) -> None:
        """Stop using the states and clusters of the other teams, which remain in the database."""
        self.teams = teams
        del self.states[sum(len(proportions.states_of(team)) for team in range(teams)) :]
        del self.clusters[sum(len(proportions.clusters_of(team)) for team in range(teams)) :]

    def grow_to(self, teams: int) -> None:
        """Create the states and clusters of missing teams."""
        for team in range(self.teams, teams):
            for size in proportions.states_of(team):
                self.states.append(State(size))
                self._setup("POST", self.states[-1].path, self.states[-1].next_document())
            for size in proportions.clusters_of(team):
                name = json.dumps({"cluster": {"name": f"team-{team}-{uuid.uuid4()}"}}).encode()
                made = json.loads(self._setup("POST", "/api/v1/clusters", name))
                self.clusters.append(Cluster(made["cluster"]["id"], size))
                first = self.clusters[-1]
                self._setup("PUT", first.path, first.snapshot(), **GZIP)
        self.teams = teams

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> None:
        """Send a request that is due now, with the company's token."""
        client = self._client(time.monotonic())
        try:
            client.send(method, method, path, {"Authorization": self._bearer, **headers}, body)
        finally:
            client.close()

    def _setup(self, method: str, path: str, body: bytes, **headers: str) -> bytes:
        given = {"Authorization": self._bearer, **JSON, **headers}
        answer = self.server.request(method, path, body, headers=given)
        if answer.status >= 300:
            raise UnexpectedStatusError(f"{method} {path}: {answer.status} {answer.body[:200]!r}")
        return answer.body

    def rates(self) -> dict[Work, float]:
        """Return the arrivals per second of each kind of work."""
        hourly = {
            self._pipeline: self.teams * proportions.PIPELINES_PER_HOUR,
            self._page: self.teams * proportions.PAGES_PER_HOUR,
            self._list: self.teams * proportions.LISTS_PER_HOUR,
        }
        return {
            **{work: rate / 3600 for work, rate in hourly.items()},
            self._delta: len(self.clusters) / proportions.REPORT_SECONDS,
            self._snapshot: len(self.clusters) / proportions.SNAPSHOT_SECONDS,
        }

    def arrivals(self, seconds: float, rng: random.Random) -> list[Arrival]:
        """Return random arrivals during ``seconds``, in order."""
        found = []
        for work, rate in self.rates().items():
            moment = rng.expovariate(rate)
            while moment < seconds:
                found.append((moment, work))
                moment += rng.expovariate(rate)
        return sorted(found, key=lambda arrival: arrival[0])

    def run(self, work: Work, due: float) -> None:
        """Do the work of an arrival. Count an unexpected response or a broken connection."""
        try:
            work(due)
        except (UnexpectedStatusError, OSError, http.client.HTTPException) as error:
            self.wrong[str(error) or type(error).__name__] += 1

    def _pipeline(self, due: float) -> None:
        one = self._free(self.states)
        client = self._client(due)
        try:
            bearer = {"Authorization": f"Bearer {self._exchange(client)}"}
            pull = "pull" if one.size < 1_000_000 else "pull of 1 MB and more"
            client.send(pull, "GET", one.path, bearer)
            runs = ["plan", "apply"] if random.random() < proportions.APPLY_SHARE else ["plan"]
            for name in runs:
                lock_id = str(uuid.uuid4())
                lock = json.dumps(lock_info(lock_id)).encode()
                client.send("lock", "LOCK", one.path, bearer, lock)
                client.send(pull, "GET", one.path, bearer)
                if name == "apply":
                    push = pull.replace("pull", "push")
                    path = f"{one.path}?ID={lock_id}"
                    client.send(push, "POST", path, bearer, one.next_document)
                client.send("unlock", "UNLOCK", one.path, bearer, lock)
            one.is_in_use.release()  # not after a failure, because the state may still be locked
        finally:
            client.close()

    def _exchange(self, client: Client) -> str:
        def body() -> bytes:
            form = {
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "client_id": self._policy,
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "subject_token": self._issuer.token(),
            }
            return json.dumps(form).encode()

        answer = client.send("exchange", "POST", "/v1/oauth/token", {}, body)
        token: str = json.loads(answer)["access_token"]
        return token

    def _delta(self, due: float) -> None:
        self._report(due, "report", "PATCH", Cluster.delta)

    def _snapshot(self, due: float) -> None:
        self._report(due, "snapshot", "PUT", Cluster.snapshot)

    def _report(self, due: float, kind: str, method: str, body: Callable[[Cluster], bytes]) -> None:
        one = self._free(self.clusters)
        client = self._client(due)
        try:
            headers = {"Authorization": self._bearer, **GZIP}
            client.send(kind, method, one.path, headers, lambda: body(one))
        finally:
            client.close()
            one.is_in_use.release()

    def _list(self, due: float) -> None:
        name, path = random.choice(list(LISTS.items()))
        quoted = urllib.parse.quote(path, safe="/?=&:")
        self._read(due, name, quoted, {"Authorization": self._bearer})

    def _page(self, due: float) -> None:
        self._read(due, "page", random.choice(_PAGES), {"Cookie": self._session})

    def _read(self, due: float, kind: str, path: str, headers: Headers) -> None:
        client = self._client(due)
        try:
            client.send(kind, "GET", path, headers)
        finally:
            client.close()

    def _client(self, due: float) -> Client:
        return Client(self.server.port, due, self.record)

    @staticmethod
    def _free(things: list[Any]) -> Any:
        """Return a random object that is not in use, and mark it as in use."""
        while True:
            one = random.choice(things)
            if one.is_in_use.acquire(blocking=False):
                return one
            time.sleep(0.001)
