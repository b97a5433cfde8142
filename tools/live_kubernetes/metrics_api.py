"""A stub of metrics.k8s.io behind the aggregator. The name of a pod determines its usage."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import ssl
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tools.live_kubernetes.api import Api

GROUP = "metrics.k8s.io"
BASE = f"/apis/{GROUP}/v1beta1"


def usage(name: str) -> tuple[int, int]:
    """Return the millicores and mebibytes of each container of a pod with this name."""
    number = zlib.crc32(name.encode())
    return number % 500, number % 300


class MetricsApi:
    """A server of PodMetrics for the running pods of a cluster. `hang` delays its responses."""

    def __init__(self, api: Api, directory: Path) -> None:
        self.hang = threading.Event()
        self._released = threading.Event()
        self._api = api
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        certificate, key = _certificate(directory)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)

    def start(self) -> None:
        threading.Thread(target=self._http.serve_forever, args=(0.1,), daemon=True).start()
        port = self._http.server_address[1]
        self._api.apply([
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "metrics", "namespace": "kube-system"},
                "spec": {"type": "ExternalName", "externalName": "localhost"},
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"v1beta1.{GROUP}"},
                "spec": {
                    "group": GROUP,
                    "version": "v1beta1",
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "insecureSkipTLSVerify": True,
                    "service": {"name": "metrics", "namespace": "kube-system", "port": port},
                },
            },
        ])  # fmt: skip

    def close(self) -> None:
        self._released.set()
        self._http.shutdown()
        self._http.server_close()

    def answer(self, path: str) -> Any:
        parts = path.partition("?")[0].removeprefix(BASE).strip("/").split("/")
        if parts == [""]:
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{GROUP}/v1beta1",
                "resources": [{
                    "name": "pods", "singularName": "", "namespaced": True,
                    "kind": "PodMetrics", "verbs": ["get", "list"],
                }],
            }  # fmt: skip
        if self.hang.is_set():
            self._released.wait(120)
        where = f"/namespaces/{parts[1]}" if parts[0] == "namespaces" else ""
        items = self.measured(where)
        version = f"{GROUP}/v1beta1"
        return {"kind": "PodMetricsList", "apiVersion": version, "metadata": {}, "items": items}

    def measured(self, where: str) -> list[Any]:
        """Return the PodMetrics of all pods, or of the pods in a namespace."""
        pods = self._api.items(f"/api/v1{where}/pods")
        return [_measured(pod) for pod in pods if pod["status"].get("phase") == "Running"]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                try:
                    body = json.dumps(server.answer(self.path)).encode()
                except OSError:
                    self.send_error(503)
                    return
                with contextlib.suppress(OSError):  # the client may have disconnected
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _measured(pod: Any) -> Any:
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
    cpu, memory = usage(metadata["name"])
    amounts = {"cpu": f"{cpu * 1_000_000}n", "memory": f"{memory * 1024}Ki"}
    containers = [{"name": c["name"], "usage": amounts} for c in pod["spec"]["containers"]]
    return {"metadata": metadata, "containers": containers, "window": "30s"}


def _certificate(directory: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "metrics")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    paths = directory / "metrics.crt", directory / "metrics.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths
