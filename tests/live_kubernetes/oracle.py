"""What the service should show of a cluster, computed from plain GETs.

It is written from docs/reference/workload-health.md and shares no code with `workloads`, so that a
mistake would have to be made twice.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from typing import Any

from tests.live_kubernetes.api import Api
from tests.live_kubernetes.metrics_api import usage

Object = dict[str, Any]
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
_BAD_WAITING = ("BackOff", "Error")


class Oracle:
    """One look at a cluster."""

    def __init__(self, api: Api) -> None:
        self.workloads = {kind: api.items(path) for kind, path in _PATHS.items()}
        sets = api.items("/apis/apps/v1/replicasets")
        self._owner = {s["metadata"]["uid"]: _owner(s) for s in sets}
        self._pods: dict[str, list[Object]] = {}
        for pod in api.items("/api/v1/pods"):
            owner = _owner(pod)
            self._pods.setdefault(self._owner.get(owner, owner), []).append(pod)

    def rows(self, as_of: dt.datetime, *, measured: bool = True) -> dict[Place, Row]:
        """Return what is to be shown of each workload, by kind, namespace and name."""
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
    health, reason = _health(kind, raw, counts, live, as_of)
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
    row["cpu_used_millicores"] = sum(u[0] * n for u, n in used) if measured else None
    row["memory_used_bytes"] = sum(u[1] * 1024 * 1024 * n for u, n in used) if measured else None
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
        "ready": bool(live) and sum(s["ready"] for s in statuses) == len(live),
    }


def _moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def _conditions(raw: Object) -> dict[str, Object]:
    return {c["type"]: c for c in raw.get("status", {}).get("conditions") or []}


def _failing(status: Object) -> str:
    state = status.get("state", {})
    reason = state.get("waiting", {}).get("reason", "")
    if reason.endswith(_BAD_WAITING) or reason.startswith("Err"):
        return str(reason)
    ended = state.get("terminated", {})
    return str(ended.get("reason", "Error")) if ended.get("exitCode") else ""


def _commonest(reasons: list[str]) -> str:
    counted = Counter(filter(None, reasons))
    return min(counted, key=lambda reason: (-counted[reason], reason), default="")


def _health(  # noqa: C901, PLR0911, PLR0912 - the table, line by line
    kind: str,
    raw: Object,
    n: dict[str, int],
    live: list[Object],
    as_of: dt.datetime,
) -> tuple[str, str]:
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    conditions = _conditions(raw)
    young = (as_of - _moment(metadata["creationTimestamp"])).total_seconds() <= 300
    grace = "DEGRADED" if young else "ERROR"
    down = n["ready"] == 0
    each = [[_failing(s) for s in p["status"].get("containerStatuses", [])] for p in live]
    failing = _commonest([reason for pod in each for reason in pod])
    scheduling = [_not_scheduled(p) for p in live]
    homeless = "Unschedulable" if "Unschedulable" in scheduling else ""
    held = _commonest([_held(p) for p in live])
    refused = conditions.get("ReplicaFailure", {})
    refused_reason = (
        refused.get("reason", "ReplicaFailure") if refused.get("status") == "True" else ""
    )
    available = conditions.get("Available", {})
    unavailable = "" if available.get("status") == "True" else available.get("reason", "")
    if metadata.get("deletionTimestamp"):
        return "DEGRADED", "Terminating"
    if "observedGeneration" not in status:
        return grace, "NotObserved"
    if status["observedGeneration"] < metadata["generation"]:
        return (grace if down and n["desired"] else "DEGRADED"), "GenerationNotObserved"
    if n["desired"] == 0:
        return "HEALTHY", "NoEligibleNodes" if kind == "DaemonSet" else "ScaledToZero"
    if conditions.get("Progressing", {}).get("reason") == "ProgressDeadlineExceeded":
        detail = failing or homeless
        return "ERROR", "ProgressDeadlineExceeded" + (f": {detail}" if detail else "")
    if down and (refused_reason or failing or homeless):
        return "ERROR", refused_reason or failing or homeless
    if down:
        minimum = kind == "Deployment" and unavailable == "MinimumReplicasUnavailable"
        return grace, held or (unavailable if minimum else "NoReadyReplicas")
    if each and all(pod and all(pod) for pod in each):
        return "ERROR", failing
    if min(n["ready"], n["available"]) < n["desired"]:
        return "DEGRADED", failing or homeless or held or unavailable or "ReplicasNotReady"
    if refused_reason or failing:
        return "DEGRADED", refused_reason or failing
    if crash := _crash(live, as_of):
        return "DEGRADED", crash
    if spec.get("paused"):
        return "HEALTHY", "DeploymentPaused"
    update = spec.get("updateStrategy", {})
    if update.get("type") == "OnDelete" and n["updated"] < n["desired"]:
        return "HEALTHY", "OnDeleteUpdatePending"
    partition = (update.get("rollingUpdate") or {}).get("partition", 0)
    if n["updated"] < n["desired"] - partition:
        return "HEALTHY", "RolloutInProgress"
    return "HEALTHY", ""


def _not_scheduled(pod: Object) -> str:
    condition = _conditions(pod).get("PodScheduled", {})
    return str(condition.get("reason", "")) if condition.get("status") == "False" else ""


def _held(pod: Object) -> str:
    conditions = _conditions(pod)
    if _not_scheduled(pod) == "SchedulingGated":
        return "SchedulingGated"
    if conditions.get("DisruptionTarget", {}).get("status") == "True":
        return "DisruptionTarget"
    ready = conditions.get("Ready", {})
    gates = ready.get("status") == "False" and ready.get("reason") == "ReadinessGatesNotReady"
    return "ReadinessGatesNotReady" if gates else ""


def _crash(live: list[Object], as_of: dt.datetime) -> str:
    recent = []
    for pod in live:
        for status in pod["status"].get("containerStatuses", []):
            ended = status.get("lastState", {}).get("terminated")
            if not ended or not status["restartCount"] or not ended["exitCode"]:
                continue
            if (as_of - _moment(ended["finishedAt"])).total_seconds() <= 600:
                recent.append(ended.get("reason"))
    if "OOMKilled" in recent:
        return "OOMKilled"
    return "RestartsIncreasing" if recent else ""
