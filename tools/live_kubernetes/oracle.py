"""Compute the expected rows of a cluster from plain GET requests.

The oracle implements docs/reference/workload-health.md without code from `workloads`, so that a
single mistake causes a difference.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

from tools.live_kubernetes.api import Api
from tools.live_kubernetes.metrics_api import usage
from tools.live_kubernetes.oracle_health import Object, health_of, is_lost

Row = dict[str, Any]
Place = tuple[str, str, str]

_PATHS = {
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "DaemonSet": "/apis/apps/v1/daemonsets",
}
_SCALE = {
    suffix: Decimal(scale)
    for suffix, scale in (
        ("m", "0.001"), ("Ki", 2**10), ("Mi", 2**20), ("Gi", 2**30), ("k", 1000), ("M", 10**6),
    )
}  # fmt: skip


class Oracle:
    """The objects of a cluster, read once."""

    def __init__(self, api: Api) -> None:
        self.workloads = {kind: api.items(path) for kind, path in _PATHS.items()}
        sets = api.items("/apis/apps/v1/replicasets")
        self._owner = {s["metadata"]["uid"]: _owner(s) for s in sets}
        self._pods: dict[str, list[Object]] = {}
        for pod in api.items("/api/v1/pods"):
            owner = _owner(pod)
            self._pods.setdefault(self._owner.get(owner, owner), []).append(pod)

    def rows(self, as_of: dt.datetime, *, measured: bool = True) -> dict[Place, Row]:
        """Return the expected row of each workload, by kind, namespace and name."""
        found = {}
        for kind, items in self.workloads.items():
            for raw in items:
                metadata = raw["metadata"]
                pods = self._pods.get(metadata["uid"], [])
                place = (kind, metadata["namespace"], metadata["name"])
                found[place] = _row(kind, raw, pods, as_of, measured=measured)
        return found


def _owner(raw: Object) -> str:
    owners = raw["metadata"].get("ownerReferences", [])
    return next((o["uid"] for o in owners if o.get("controller")), "")


def _row(kind: str, raw: Object, pods: list[Object], as_of: dt.datetime, *, measured: bool) -> Row:
    spec, status = raw["spec"], raw.get("status", {})
    if kind == "DaemonSet":
        desired, ready = status["desiredNumberScheduled"], status["numberReady"]
        available, updated = (
            status.get("numberAvailable", 0),
            status.get("updatedNumberScheduled", 0),
        )
    else:
        desired, ready = spec.get("replicas", 1), status.get("readyReplicas", 0)
        updated = status.get("updatedReplicas", 0)
        available = status.get("availableReplicas", ready if kind == "StatefulSet" else 0)
    active = [p for p in pods if p["status"].get("phase") not in ("Succeeded", "Failed")]
    live = [p for p in active if not p["metadata"].get("deletionTimestamp")]
    counts = {"desired": desired, "ready": ready, "available": available, "updated": updated}
    health, reason = health_of(kind, raw, counts, pods, as_of)
    row: Row = {
        "labels": raw["metadata"].get("labels", {}),
        "health_status": health,
        "status_reason": reason,
        "replicas_desired": desired,
        "replicas_ready": ready,
        "replicas_available": available,
        "containers": [_container(c, live) for c in spec["template"]["spec"]["containers"]],
    }
    for resource, side, name in (
        ("cpu", "requests", "cpu_requests_millicores"),
        ("cpu", "limits", "cpu_limits_millicores"),
        ("memory", "requests", "memory_requests_bytes"),
        ("memory", "limits", "memory_limits_bytes"),
        ("ephemeral-storage", "requests", "ephemeral_storage_requests_bytes"),
    ):
        total = sum(
            (
                _quantity(c.get("resources", {}).get(side, {}).get(resource, "0"))
                for p in active
                for c in p["spec"]["containers"]
            ),
            Decimal(0),
        )
        row[name] = math.ceil(total * 1000 if resource == "cpu" else total)
    running = [p for p in active if p["status"].get("phase") == "Running"]
    used = [(usage(p["metadata"]["name"]), len(p["spec"]["containers"])) for p in running]
    known = measured and bool(used or not active)
    row["cpu_used_millicores"] = sum(u[0] * n for u, n in used) if known else None
    row["memory_used_bytes"] = sum(u[1] * 1024 * 1024 * n for u, n in used) if known else None
    return row


def _quantity(text: str) -> Decimal:
    for suffix, scale in _SCALE.items():
        if text.endswith(suffix):
            return Decimal(text.removesuffix(suffix)) * scale
    return Decimal(text)


def _container(template: Object, live: list[Object]) -> Row:
    statuses = [
        s
        for p in live
        for s in p["status"].get("containerStatuses", [])
        if s["name"] == template["name"]
    ]
    states = {next(iter(s["state"]), "waiting") for s in statuses}
    worst = next((s for s in ("terminated", "waiting", "running") if s in states), "")
    return {
        "name": template["name"],
        "image": template["image"],
        "restart_count": sum(s["restartCount"] for s in statuses),
        "state": worst,
        "ready": bool(live)
        and not any(map(is_lost, live))
        and sum(s["ready"] for s in statuses) == len(live),
    }
