"""Measure reports of a large cluster: ``python -m tools.bench.reports`` (on PostgreSQL).

1. A snapshot of 15,000 workloads, of which 5 % changed: the function that applies the snapshot, and
   a complete gzipped request to a live service.
2. A cluster that is listed in pages from a real HTTP server: the seconds, and the peak memory of
   the reading process. First, 1,500 workloads have ten times as many pods. Then, the same number of
   pods belongs to ten times as many workloads. Memory should only depend on the number of
   workloads.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.server import LiveServer, live_server
from tools.bench.figures import Figure, publish

WORKLOADS = 15_000
CHANGED = WORKLOADS // 20
NAMESPACES = 150
TARGET = 1.5
START = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)


def items() -> list[dict[str, Any]]:
    return [item(n) for n in range(WORKLOADS)]


def item(n: int) -> dict[str, Any]:
    """Return a workload of about 0.5 KB, in the form of an agent's report."""
    return {
        "namespace": f"team-{n % NAMESPACES}",
        "name": f"service-{n}",
        "kind": ("Deployment", "StatefulSet", "DaemonSet")[n % 3],
        "uid": f"00000000-0000-4000-8000-{n:012d}",
        "labels": {
            "app.kubernetes.io/name": f"service-{n}",
            "app.kubernetes.io/managed-by": "Helm",
            "team": f"team-{n % NAMESPACES}",
        },
        "health_status": "HEALTHY",
        "replicas_desired": 10,
        "replicas_ready": 10,
        "replicas_available": 10,
        "cpu_requests_millicores": 1000,
        "cpu_limits_millicores": 2000,
        "cpu_used_millicores": 300 + n % 100,
        "memory_requests_bytes": 2**30,
        "memory_limits_bytes": 2**31,
        "memory_used_bytes": 2**29 + n,
        "containers": [
            {
                "name": name,
                "image": f"registry.example/team/service-{n}:{name}-1.4.2",
                "restart_count": 0,
                "state": "running",
                "ready": True,
            }
            for name in ("app", "proxy")
        ],
    }


def vary(reported: list[dict[str, Any]], rng: random.Random, count: int) -> None:
    """Change ``count`` workloads."""
    for n in rng.sample(range(WORKLOADS), count):
        reported[n]["replicas_ready"] = (reported[n]["replicas_ready"] + 1) % 11
        reported[n]["health_status"] = rng.choice(["HEALTHY", "DEGRADED", "ERROR"])


def over_http(server: LiveServer) -> None:
    """Send a report as an agent does, and print its duration."""
    token = server.token("cluster:read", "cluster:write")
    kind = {"Content-Type": "application/json"}
    body = json.dumps({"cluster": {"name": "bench"}}).encode()
    cluster = server.request("POST", "/api/v1/clusters", body, token=token, headers=kind).json()
    path = f"/api/v1/clusters/{cluster['cluster']['id']}/workloads"
    reported, rng = items(), random.Random(1)

    def put(number: int) -> tuple[float, dict[str, int], int]:
        moment = START + dt.timedelta(seconds=number)
        sent = gzip.compress(
            json.dumps({"reported_at": moment.isoformat(), "workloads": reported}).encode(), 1
        )
        headers = {**kind, "Content-Encoding": "gzip"}
        started = time.perf_counter()
        answer = server.request("PUT", path, sent, token=token, headers=headers, timeout=120)
        seconds = time.perf_counter() - started
        assert answer.status == 200, answer.body
        return seconds, answer.json()["report"], len(sent)

    seconds, _counts, size = put(0)
    print(f"first snapshot, a gzipped request of {size / 1e6:.1f} MB     {seconds:6.2f} s")
    print(f"  all unchanged                                  {put(1)[0]:6.2f} s")
    times = []
    for number in range(2, 9):
        vary(reported, rng, CHANGED)
        seconds, counts, _size = put(number)
        assert counts["unchanged"] >= WORKLOADS - CHANGED
        times.append(seconds)
    publish(
        Figure(
            work="snapshot of 15,000 workloads, 5 % changed, whole request",
            ours=sorted(times)[3],
            peer=TARGET,
            peer_name="the target itself",
            unit="s",
            at_most=1,
        )
    )
    for item in reported:
        item["cpu_used_millicores"] += 1
    print(f"  100 % changed                                  {put(20)[0]:6.2f} s")


def applied(environment: dict[str, str]) -> None:
    """Run ``apply`` in a process with the service's settings."""
    code = "import django; django.setup(); from tools.bench.reports import apply; apply()"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def apply() -> None:
    """Apply snapshots of 15,000 workloads, of which 5 % changed, and print the median."""
    from apikeys.actors import Actor
    from workloads.models import Cluster
    from workloads.reporting.applying import apply_report
    from workloads.reporting.incoming import read_report

    cluster = Cluster.objects.create(name="bench-apply")
    reported, rng, times = items(), random.Random(1), []
    cpu: list[tuple[float, float]] = []  # of this process: parsing and applying a report
    for number in range(8):
        moment = START + dt.timedelta(seconds=number)
        body = json.dumps({"reported_at": moment.isoformat(), "workloads": reported}).encode()
        before = time.process_time()
        report = read_report(body, complete=True)
        report = dataclasses.replace(report, records=list(report.records))
        read, started = time.process_time(), time.perf_counter()
        apply_report(cluster_id=cluster.pk, report=report, actor=Actor(name="bench"))
        times.append(time.perf_counter() - started)
        cpu.append((read - before, time.process_time() - read))
        vary(reported, rng, CHANGED)
    median = sorted(times[1:])[3]
    print(f"apply_report, 15,000 workloads, 5 % changed      {median:6.2f} s  (target {TARGET})")
    reading, merging = (sorted(spent)[3] for spent in zip(*cpu[1:], strict=True))
    print(f"  its CPU, after {reading:.2f} s to parse the report       {merging:6.2f} s")


class Pods:
    """An API server that generates pods on request, instead of storing them."""

    def __init__(self, total: int, workloads: int) -> None:
        from tests.apiserver import PODS, REPLICASETS, ReplayServer, recorded_lists

        self.workloads, self.replicas = workloads, total // workloads
        lists = recorded_lists()
        template = next(raw for raw in lists[PODS] if "annotations" in raw["metadata"])
        # Real pods have 11 KB, mostly managed fields and environment variables.
        template["metadata"]["managedFields"] = [{"fieldsV1": {f"f:{n}": {} for n in range(500)}}]
        self.template = template
        self.deployments = self.numbered(lists["/apis/apps/v1/deployments"][0], "Deployment", None)
        self.replicasets = self.numbered(lists[REPLICASETS][0], "ReplicaSet", "Deployment")
        self.server = ReplayServer({
            **{key: [] for key in lists},
            "/apis/apps/v1/deployments": self.deployments,
            REPLICASETS: self.replicasets,
        })  # fmt: skip
        self.server.lists[PODS] = _Made(total, self.pod)  # type: ignore[assignment]
        self.server.metrics = []

    def numbered(self, raw: Any, kind: str, owner: str | None) -> list[Any]:
        made = []
        for n in range(self.workloads):
            one = copy.deepcopy(raw)
            one["metadata"] |= {"namespace": self.namespace(n), "name": f"w-{n:06d}"}
            one["metadata"]["uid"] = f"{kind}-{n}"
            if owner:
                one["metadata"]["ownerReferences"] = [
                    {"kind": owner, "uid": f"{owner}-{n}", "controller": True}
                ]
            made.append(one)
        return made

    def namespace(self, workload: int) -> str:
        return f"team-{workload * NAMESPACES // self.workloads:03d}"

    def pod(self, n: int) -> Any:
        workload = n // self.replicas
        metadata = {
            **self.template["metadata"],
            "namespace": self.namespace(workload),
            "name": f"w-{workload:06d}-{n:07d}",
            "uid": f"pod-{n}",
            "ownerReferences": [
                {"kind": "ReplicaSet", "uid": f"ReplicaSet-{workload}", "controller": True}
            ],
        }
        return {**self.template, "metadata": metadata}


class _Made:
    """A list of pods, ordered by name. Each pod is generated on access."""

    def __init__(self, total: int, make: Callable[[int], Any], start: int = 0) -> None:
        self.total, self.make, self.start = total, make, start

    def __iter__(self) -> Any:
        return (self.make(n) for n in range(self.start, self.total))

    def __len__(self) -> int:
        return self.total - self.start

    def __getitem__(self, part: slice) -> list[Any]:
        return [self.make(n) for n in range(self.start, min(self.start + part.stop, self.total))]

    def after(self, key: str) -> _Made:
        """Return the pods after a namespace/name."""
        return _Made(self.total, self.make, int(key.rpartition("-")[2]) + 1)


def listed(total: int, workloads: int) -> None:
    """Read a cluster in a separate process, and print the seconds and the peak memory."""
    pods = Pods(total, workloads)
    with pods.server, tempfile.TemporaryDirectory() as directory:
        kubeconfig = str(pods.server.kubeconfig(Path(directory)))
        code = f"from tools.bench.reports import read; read({kubeconfig!r}, {total}, {workloads})"
        environment = {**os.environ, "PYTHONPATH": "."}
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def peak_megabytes() -> float:
    """Return the peak memory of this process. getrusage would include its parent's peak."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def read(kubeconfig: str, total: int, workloads: int) -> None:
    """List the cluster, and print the cost."""
    from workloads.collector import connect
    from workloads.collector.listing import read_cluster

    client = connect.from_kubeconfig(kubeconfig, "replay")
    before = peak_megabytes()
    started, cpu = time.perf_counter(), time.process_time()
    records = read_cluster(client, START, lambda _name, _done, _left: None)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    peak = peak_megabytes()
    assert len(records) == workloads
    assert sum(record.containers[0].restart_count >= 0 for record in records) == len(records)
    print(
        f"{total:7,} pods, {len(records):6,} workloads: {seconds:6.1f} s ({cpu:.1f} s of CPU), "
        f"memory {before:.0f} -> {peak:.0f} MB"
    )


def main() -> None:
    with live_server() as server:
        applied(server.environment)
        over_http(server)
    for total, workloads in ((15_000, 1500), (45_000, 1500), (150_000, 1500), (150_000, WORKLOADS)):
        listed(total, workloads)


if __name__ == "__main__":
    main()
