"""Run etcd, kube-apiserver and kube-controller-manager on free loopback ports."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.postgres import free_port
from tools.live_kubernetes.api import Api
from tools.live_kubernetes.build import Binaries

CONTROLLERS = (
    "deployment,replicaset,statefulset,daemonset,job,endpoint,disruption,garbagecollector,namespace"
)


class ControlPlane:
    """The control plane of a cluster. Its nodes and kubelets are simulated (see `kubelet`)."""

    def __init__(self, binaries: Binaries, directory: Path, name: str) -> None:
        self.binaries, self.directory, self.name = binaries, directory, name
        self.admin_token = secrets.token_hex(16)
        self.port, self.etcd_port = free_port(), free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.certificate = directory / "certificates/apiserver.crt"
        # "0" disables compaction, for lists that take longer than the interval and would expire.
        self.compaction_interval = "5m"
        self._peer_port = free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._write_files()

    def start(self, *, controllers: bool = True) -> None:
        """Start the stopped programs, and wait until the API server is ready (10 s)."""
        self._start(
            "etcd",
            self.binaries.etcd,
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{self.etcd_port}",
            f"--advertise-client-urls=http://127.0.0.1:{self.etcd_port}",
            f"--listen-peer-urls=http://127.0.0.1:{self._peer_port}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{self._peer_port}",
            f"--initial-cluster=default=http://127.0.0.1:{self._peer_port}",
            "--quota-backend-bytes=8000000000",
            "--max-txn-ops=2000",
            "--max-request-bytes=50000000",
            "--log-level=error",
        )
        self.start_api_server()
        if controllers:
            self._start(
                "controllers",
                self.binaries.controller_manager,
                f"--kubeconfig={self.kubeconfig(self.directory / 'admin.kubeconfig')}",
                f"--controllers={CONTROLLERS}",
                "--leader-elect=false",
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
                "--port=0",
                f"--secure-port={free_port()}",
                "--bind-address=127.0.0.1",
                f"--cert-dir={self.directory / 'controllers'}",
            )

    def start_api_server(self) -> None:
        keys = self.directory / "service-accounts.key"
        self._start(
            "apiserver",
            self.binaries.apiserver,
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--etcd-compaction-interval={self.compaction_interval}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self.certificate.parent}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            f"--service-account-key-file={keys}",
            f"--service-account-signing-key-file={keys}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
        )
        api = self.api()
        # With a large cluster, the API server loads for minutes before it is ready.
        for _ in range(1200):
            with contextlib.suppress(OSError):
                if api.get("/readyz", raw=True)[0] == 200:
                    return
            if self._processes["apiserver"].poll() is not None:
                break
            time.sleep(0.5)
        raise RuntimeError((self.directory / "apiserver.log").read_text()[-4000:])

    def api(self, token: str = "") -> Api:
        return Api(self.url, token or self.admin_token, self.certificate)

    def kubeconfig(self, path: Path, token: str = "", **user: str) -> Path:
        """Write a kubeconfig for a token or a user. The default is the administrator."""
        return write_kubeconfig(
            path,
            {self.name: (self.url, self.certificate)},
            user or {"token": token or self.admin_token},
        )

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def stop(self, name: str) -> None:
        process = self._processes.pop(name, None)
        if process is not None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def close(self) -> None:
        for name in ("controllers", "apiserver", "etcd"):
            self.stop(name)

    def _start(self, name: str, *command: str | Path) -> None:
        if name in self._processes:
            return
        with (self.directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(part) for part in command],
                cwd=self.directory,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "ETCD_UNSUPPORTED_ARCH": ""},
            )

    def _write_files(self) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        (self.directory / "service-accounts.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        tokens = f"{self.admin_token},admin,admin,system:masters\n"
        (self.directory / "tokens.csv").write_text(tokens)


def write_kubeconfig(path: Path, clusters: dict[str, tuple[str, Path]], user: object) -> Path:
    """Write a kubeconfig with a context for each cluster, and one user for all."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(clusters)),
        "clusters": [
            {"name": name, "cluster": {"server": url, "certificate-authority": str(certificate)}}
            for name, (url, certificate) in clusters.items()
        ],
        "users": [{"name": "user", "user": user}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": "user"}} for name in clusters
        ],
    }
    path.write_text(json.dumps(config))
    return path


@contextlib.contextmanager
def control_plane(
    binaries: Binaries, name: str = "live", *, controllers: bool = True
) -> Iterator[ControlPlane]:
    """Run a control plane during the block."""
    directory = Path(tempfile.mkdtemp(prefix="infra-kubernetes-"))
    plane = ControlPlane(binaries, directory, name)
    try:
        plane.start(controllers=controllers)
        yield plane
    finally:
        plane.close()
        shutil.rmtree(directory, ignore_errors=True)
