"""The recorded answers of a real API server, and the answers that are derived from them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECORDING = Path(__file__).parents[1] / "workloads" / "fixtures" / "kubernetes-1.20"
TOKEN = "replayed-token"
VERSION = "1500"

DEPLOYMENTS = "/apis/apps/v1/deployments"
STATEFULSETS = "/apis/apps/v1/statefulsets"
DAEMONSETS = "/apis/apps/v1/daemonsets"
REPLICASETS = "/apis/apps/v1/replicasets"
PODS = "/api/v1/pods"
METRICS = "/apis/metrics.k8s.io/v1beta1/pods"
KUBE_SYSTEM = "/api/v1/namespaces/kube-system"
SERVER_VERSION = "/version"
KINDS = {
    DEPLOYMENTS: "Deployment",
    STATEFULSETS: "StatefulSet",
    DAEMONSETS: "DaemonSet",
    REPLICASETS: "ReplicaSet",
    PODS: "Pod",
    METRICS: "PodMetrics",
}
LISTS = {path: path.rpartition("/")[2] for path in KINDS if path != METRICS}

Object = dict[str, Any]


def recorded(name: str) -> Any:
    return json.loads((RECORDING / name).read_text())


def recorded_lists() -> dict[str, list[Object]]:
    return {path: recorded(f"list-{name}.json")["items"] for path, name in LISTS.items()}


def lines(name: str) -> list[bytes]:
    return (RECORDING / name).read_bytes().splitlines()


def event(kind: str, raw: Object) -> bytes:
    return json.dumps({"type": kind, "object": raw}).encode()


@dataclass
class Fault:
    """An answer in place of the right one.

    `cut` closes the connection after this many bytes; with `hold`, not before `hang_up`. `silent`
    closes it without an answer.
    """

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    hold: bool = False
    silent: bool = False

    @classmethod
    def of(cls, name: str, status: int | None = None, **headers: str) -> Fault:
        """Play a recorded error."""
        raw = recorded(f"error-{name}.json")
        if "_non_json_body" in raw:
            body = raw["_non_json_body"].encode()
            return cls(raw["http_status"], body, raw.get("_content_type", "text/plain"), headers)
        return cls(status or raw["code"], json.dumps(raw).encode(), headers=headers)

    @classmethod
    def refused(cls, code: int, reason: str, message: str) -> Fault:
        """Refuse with a Status object."""
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            **({"reason": reason} if reason else {}),
            "code": code,
        }
        return cls(code, json.dumps(status).encode())


EXPIRED = Fault.of("410-expired-continue")
FORBIDDEN = Fault.of("forbidden")
UNAUTHORIZED = Fault.of("unauthorized")
NO_METRICS = Fault.of("no-metrics-api")
DEAD_METRICS = Fault.of("metrics-backend-down")
UNAVAILABLE = Fault(503, b"starting up\n", "text/plain", {"Retry-After": "0"})
