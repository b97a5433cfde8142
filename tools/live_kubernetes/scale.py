"""Measure the cost of a large cluster: ``python -m tools.live_kubernetes.scale``.

The program writes the objects directly to etcd, in the API server's form, because creating 15,000
Deployments with 150,000 pods would take an hour. The API server and the collector are real. A
metrics API behind the API server returns different figures for every pod at each reading.

Under `python -m tests.support.postgres`, the program also reports the writes in the service's
database.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psycopg
import urllib3

from tests.support.installation import ROOT
from tests.support.server import LiveServer
from tools.live_kubernetes.build import binaries, cache_directory
from tools.live_kubernetes.large_cluster import MadeUsage, Object, objects
from tools.live_kubernetes.plane import ControlPlane, control_plane

_BATCH = 400


def main() -> int:
    """Fill a cluster, watch it, and print the cost."""
    parser = argparse.ArgumentParser(prog="python -m tools.live_kubernetes.scale")
    parser.add_argument("--workloads", type=int, default=15_000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--snapshots", type=int, default=6, help="number of one-minute snapshots")
    options = parser.parse_args()
    with (
        control_plane(binaries(cache_directory()), controllers=False) as plane,
        tempfile.TemporaryDirectory(prefix="infra-live-") as directory,
    ):
        plane.stop("apiserver")
        plane.compaction_interval = "0"
        started = time.monotonic()
        count = fill(plane, options.workloads, options.pods // options.workloads)
        print(f"{count} objects in etcd after {time.monotonic() - started:.0f} s", flush=True)
        started = time.monotonic()
        plane.start_api_server()
        print(f"API server ready after {time.monotonic() - started:.0f} s, "
              f"{megabytes(plane.pid('apiserver'))} MB", flush=True)  # fmt: skip
        metrics = MadeUsage(plane, options.workloads, options.pods // options.workloads)
        metrics.start()
        service = LiveServer(Path(directory))
        service.prepare()
        try:
            collect(plane, service, options.snapshots)
        finally:
            service.close()
            metrics.close()
    return 0


def fill(plane: ControlPlane, workloads: int, replicas: int) -> int:
    """Write the objects to etcd, and return their number."""
    pool = urllib3.PoolManager(retries=False)
    count = 0
    batch: list[Object] = []

    def flush() -> None:
        body = {"success": [{"request_put": put} for put in batch]}
        answer = pool.request("POST", f"http://127.0.0.1:{plane.etcd_port}/v3/kv/txn", json=body)
        assert answer.status == 200, answer.data
        batch.clear()

    for key, value in objects(workloads, replicas):
        batch.append({"key": encoded(key), "value": encoded(json.dumps(value))})
        count += 1
        if len(batch) == _BATCH:
            flush()
    flush()
    return count


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def collect(plane: ControlPlane, service: LiveServer, snapshots: int) -> None:
    """Register the cluster, read it once, and watch it for several snapshots."""
    code = "from workloads.models import Cluster; Cluster.objects.create(name='large')"
    service.manage("shell", "--no-imports", "-c", code)
    kubeconfig = plane.kubeconfig(service.directory / "kubeconfig")
    for options in (("--once",), ("--watch", "--interval", "60")):
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "manage.py", "sync_workloads", "--cluster", "large", "--json",
             "--kubeconfig", str(kubeconfig), *options],
            cwd=ROOT, env=service.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline().decode().strip()
        print(f"{' '.join(options)}: first report after {time.monotonic() - started:.0f} s: {line}")
        print(f"    memory {megabytes(process.pid)} MB, at most {megabytes(process.pid, 'VmHWM')}",
              flush=True)  # fmt: skip
        if "--watch" in options:
            before = written(service)
            for _ in range(snapshots):
                line = process.stdout.readline().decode().strip()
                print(f"    {line}: {megabytes(process.pid)} MB, "
                      f"at most {megabytes(process.pid, 'VmHWM')}", flush=True)  # fmt: skip
            process.terminate()
            for label, count in (written(service) - before).items():
                print(f"    in {snapshots} snapshots: {count} {label}", flush=True)
        process.wait(60)


def written(service: LiveServer) -> Counter[str]:
    """Return the rows and bytes that PostgreSQL has written, or an empty result with SQLite."""
    url = service.environment.get("DATABASE_URL")
    if not url:
        return Counter()
    # A session flushes its statistics when it ends, or after a second.
    time.sleep(2)
    with contextlib.closing(psycopg.connect(url)) as connection:
        rows, hot, wal = connection.execute(
            "SELECT n_tup_upd, n_tup_hot_upd, pg_current_wal_lsn() - '0/0'::pg_lsn"
            " FROM pg_stat_user_tables WHERE relname = 'workloads_workload'"
        ).fetchone() or (0, 0, 0)
    return Counter({"rows updated": rows, "rows updated in place": hot, "bytes of WAL": int(wal)})


def megabytes(pid: int, label: str = "VmRSS") -> int:
    """Return the memory of a process in MB, or 0 if it has exited."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition(f"{label}:")[2].split()[0]) // 1024 if label in status else 0


if __name__ == "__main__":
    sys.exit(main())
