"""Two agents and a reader at once, on a live service: no snapshot is mixed with another."""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from typing import Any

from tests.server import LiveServer
from tests.workloads.records import gzipped, healthy

SIZE = 60
SECONDS = 4.0


def snapshot(agent: str, moment: dt.datetime) -> bytes:
    """Return a snapshot whose every workload bears the agent's mark, in labels and in names."""
    shared = [healthy(f"shared-{n}", labels={"by": agent}) for n in range(SIZE // 2)]
    own = [healthy(f"{agent}-{n}", labels={"by": agent}) for n in range(SIZE // 2)]
    return json.dumps({"reported_at": moment.isoformat(), "workloads": shared + own}).encode()


def test_two_agents_and_a_reader(live: LiveServer) -> None:
    token = live.token("cluster:read", "cluster:write")
    kind = {"Content-Type": "application/json"}
    body = json.dumps({"cluster": {"name": "simultaneous"}}).encode()
    cluster = live.request("POST", "/api/v1/clusters", body, token=token, headers=kind).json()
    path = f"/api/v1/clusters/{cluster['cluster']['id']}/workloads"
    until = time.monotonic() + SECONDS
    statuses: list[int] = []
    pages: list[list[dict[str, Any]]] = []

    def report(agent: str) -> None:
        while time.monotonic() < until:
            body = gzipped(snapshot(agent, dt.datetime.now(dt.UTC)))
            headers = {**kind, "Content-Encoding": "gzip"}
            statuses.append(live.request("PUT", path, body, token=token, headers=headers).status)

    def read() -> None:
        while time.monotonic() < until:
            page = live.request("GET", f"{path}?page_size=100", token=token)
            assert page.status == 200
            pages.append(page.json()["workloads"])

    threads = [threading.Thread(target=report, args=(agent,)) for agent in ("red", "blue")]
    threads.append(threading.Thread(target=read))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # The one whose report began first may come second, and is then told so.
    assert set(statuses) <= {200, 409}
    assert statuses.count(200) > 5
    seen = set()
    for page in filter(None, pages):
        assert len(page) == SIZE
        (agent,) = {workload["labels"]["by"] for workload in page}
        assert sum(workload["name"].startswith(agent) for workload in page) == SIZE // 2
        seen.add(agent)
    assert len(pages) > 5
    assert seen == {"red", "blue"}

    counts = live.request("GET", path.removesuffix("/workloads"), token=token).json()["cluster"]
    assert counts["workload_counts"]["total"] == SIZE
