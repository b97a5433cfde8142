"""Two agents and a reader at once, on a live service: no snapshot is mixed with another."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from typing import Any

import pytest

from tests.e2e.together import in_threads
from tests.support.server import LiveServer
from tests.support.waiting import MAX_WAIT
from tests.workloads.records import gzipped, healthy

pytestmark = pytest.mark.both

AGENTS = ("red", "blue")
SIZE = 60
ENOUGH = 25


def snapshot(agent: str, moment: dt.datetime) -> bytes:
    """Return a snapshot whose every workload bears the agent's mark, in labels and in names."""
    shared = [healthy(f"shared-{n}", labels={"by": agent}) for n in range(SIZE // 2)]
    own = [healthy(f"{agent}-{n}", labels={"by": agent}) for n in range(SIZE // 2)]
    return json.dumps({"reported_at": moment.isoformat(), "workloads": shared + own}).encode()


def only_agent(workloads: list[dict[str, Any]]) -> str:
    """Return the agent of the snapshot; fail when it mixes both or is incomplete."""
    assert len(workloads) == SIZE
    (agent,) = {workload["labels"]["by"] for workload in workloads}
    assert sum(workload["name"].startswith(agent) for workload in workloads) == SIZE // 2
    return agent


def test_two_agents_and_a_reader_see_consistent_rows(live: LiveServer) -> None:
    token = live.token("cluster:read", "cluster:write")
    kind = {"Content-Type": "application/json"}
    body = json.dumps({"cluster": {"name": "simultaneous"}}).encode()
    cluster = live.request("POST", "/api/v1/clusters", body, token=token, headers=kind).json()
    path = f"/api/v1/clusters/{cluster['cluster']['id']}/workloads"
    until = time.monotonic() + MAX_WAIT
    statuses: Counter[tuple[str, int]] = Counter()
    pages: Counter[str] = Counter()

    def goes_on() -> bool:
        counts = [*(statuses[agent, 200] for agent in AGENTS), *(pages[agent] for agent in AGENTS)]
        return min(counts) < ENOUGH and time.monotonic() < until

    def report(agent: str) -> None:
        while goes_on():
            body = gzipped(snapshot(agent, dt.datetime.now(dt.UTC)))
            headers = {**kind, "Content-Encoding": "gzip"}
            answer = live.request("PUT", path, body, token=token, headers=headers)
            statuses[agent, answer.status] += 1

    def read() -> None:
        while goes_on():
            page = live.request("GET", f"{path}?page_size=100", token=token)
            assert page.status == 200
            if workloads := page.json()["workloads"]:
                pages[only_agent(workloads)] += 1

    in_threads([lambda agent=agent: report(agent) for agent in AGENTS] + [read])

    # The report that began first may come second, and then gets 409. On SQLite it may have to be
    # sent again, because another writer needs longer than a second.
    assert {status for _agent, status in statuses} <= {200, 409, 503}
    assert time.monotonic() < until, (statuses, pages)

    counts = live.request("GET", path.removesuffix("/workloads"), token=token).json()["cluster"]
    assert counts["workload_counts"]["total"] == SIZE
