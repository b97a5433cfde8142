"""Measure the memory of an agent in the largest cluster: ``python -m tools.bench.agent``.

The agent runs as it does in a pod. It reads 15,000 workloads with 150,000 pods of 11 KB in pages,
and reports to a real service. With `--watch`, it then watches the cluster for several snapshots.
"""

from __future__ import annotations

import argparse
import json
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.apiserver import ReplayServer
from tests.support.certificates import self_signed
from tests.support.installation import ROOT
from tests.support.server import LiveServer, live_server
from tools.bench.reports import WORKLOADS, Pods
from tools.live_kubernetes.scale import megabytes

INTERVAL = 30
# The environment of the image, and the mount paths of a pod on this machine. The image does not
# contain rich and greenlet, which structlog would load.
MEMORY = {
    "MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072",
}  # fmt: skip
SCRIPT = """
import pathlib, sys
sys.modules["rich"] = sys.modules["greenlet"] = None
from workloads.collector import account
account.TOKEN_FILE, account.CA_FILE = map(pathlib.Path, sys.argv[1:3])
sys.argv = ["manage.py", *sys.argv[3:]]
import manage
manage.main()
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.agent")
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--snapshots", type=int, default=3, help="number of snapshots with --watch")
    parser.add_argument("--small-pods", action="store_true", help="use pods of 1 KB (faster)")
    options = parser.parse_args()
    with live_server() as server, tempfile.TemporaryDirectory() as directory:
        for is_measured in (False, True):
            cluster = Cluster(options.pods, is_measured=is_measured, small=options.small_pods)
            certificate = encrypt(cluster.server, Path(directory))
            with cluster.server:
                for how in ("--once", "--watch"):
                    token = Path(directory) / "account"
                    token.write_text(cluster.server.token)
                    account = (str(token), str(certificate))
                    measure(cluster, server, account, how, options.snapshots)


def encrypt(server: ReplayServer, directory: Path) -> Path:
    """Enable TLS on the API server, and return its certificate."""
    certificate, key = self_signed(directory, "kubernetes")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server._http.socket = context.wrap_socket(
        server._http.socket, server_side=True, do_handshake_on_connect=False
    )
    return certificate


class Cluster(Pods):
    """A cluster of pods with uids of realistic length, with or without metrics."""

    def __init__(self, total: int, *, is_measured: bool, small: bool) -> None:
        super().__init__(total, total * WORKLOADS // 150_000)
        self.is_measured = is_measured
        if small:
            del self.template["metadata"]["managedFields"]
        if is_measured:
            self.server.metrics = [self.metrics_of(n) for n in range(total)]

    def pod(self, n: int) -> Any:
        pod = super().pod(n)
        pod["metadata"]["uid"] = f"{n:08x}-5ee6-4e2c-9d0f-{n:012x}"
        return pod

    def metrics_of(self, n: int) -> Any:
        """Return distinct usage values of a pod, in the form of the metrics server."""
        metadata = self.pod(n)["metadata"]
        usage = {"cpu": f"{1_000_000 + 7919 * n}n", "memory": f"{100_000 + n}Ki"}
        return {
            "metadata": {
                "name": metadata["name"], "namespace": metadata["namespace"],
                "creationTimestamp": "2026-11-20T00:00:00Z", "labels": metadata["labels"],
            },
            "timestamp": "2026-11-20T00:00:00Z", "window": "30s",
            "containers": [{"name": "app", "usage": usage}],
        }  # fmt: skip


def measure(
    cluster: Cluster, server: LiveServer, account: tuple[str, str], how: str, snapshots: int
) -> None:
    """Run the agent, and print its memory usage."""
    host, _, port = cluster.server.url.removeprefix("http://").partition(":")
    body = json.dumps({"cluster": {"name": f"{how} {cluster.is_measured}"}}).encode()
    headers = {"Content-Type": "application/json"}
    token = server.token("cluster:read", "cluster:write")
    answer = server.request("POST", "/api/v1/clusters", body, token=token, headers=headers)
    token_file = Path(account[0]).with_name("token")
    token_file.write_text(server.token("cluster:report"))
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *account,
         "sync_workloads", how, "--json", "--interval", str(INTERVAL), "--in-cluster",
         "--report-to", server.url, "--cluster", answer.json()["cluster"]["id"],
         "--token-file", str(token_file)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
        env={**MEMORY, "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port},
    )  # fmt: skip
    assert process.stdout is not None
    result = json.loads(process.stdout.readline())
    print(f"{how}, usage is {'' if cluster.is_measured else 'not '}measured: "
          f"{result['created']:,} workloads, {result['seconds']} s for the report")  # fmt: skip
    for _ in range(snapshots if how == "--watch" else 0):
        print(f"    {megabytes(process.pid)} MB, at most {megabytes(process.pid, 'VmHWM')}")
        process.stdout.readline()
    print(f"    {megabytes(process.pid)} MB, at most {megabytes(process.pid, 'VmHWM')}", flush=True)
    process.terminate()
    process.wait(60)


if __name__ == "__main__":
    main()
