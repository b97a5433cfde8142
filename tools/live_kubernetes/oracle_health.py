"""Compute the expected health, as a second implementation of the table in the reference."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

Object = dict[str, Any]

_BAD_WAITING = ("BackOff", "Error")


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


def health_of(  # noqa: C901, PLR0911, PLR0912, PLR0915 - the table, line by line
    kind: str,
    raw: Object,
    n: dict[str, int],
    pods: list[Object],
    as_of: dt.datetime,
) -> tuple[str, str]:
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    conditions = _conditions(raw)
    failed = [p for p in pods if p["status"].get("phase") == "Failed"]
    active = [p for p in pods if p["status"].get("phase") not in ("Succeeded", "Failed")]
    live = [p for p in active if not p["metadata"].get("deletionTimestamp")]
    terminating = [p for p in active if p["metadata"].get("deletionTimestamp")]
    unready = [p for p in live if not _is_ready(p)]
    down = n["ready"] == 0 and len(unready) == len(live)
    behind = (
        "observedGeneration" in status and status["observedGeneration"] < metadata["generation"]
    )
    changed = [
        _moment(f["time"])
        for f in metadata.get("managedFields", [])
        if f.get("subresource") != "status"
    ]

    each = [[_failing(s) for s in p["status"].get("containerStatuses", [])] for p in live]
    failing = _commonest([reason for pod in each for reason in pod])
    homeless = "Unschedulable" if "Unschedulable" in map(_not_scheduled, live) else ""
    held = _commonest([_held(p) for p in live])
    removed = ""
    if len(live) < n["desired"]:
        removed = (
            "ReplicasTerminating" if terminating else _commonest([_why_failed(p) for p in failed])
        )
    cause = failing or homeless or held or removed
    refused = conditions.get("ReplicaFailure", {})
    refused_reason = (
        refused.get("reason", "ReplicaFailure") if refused.get("status") == "True" else ""
    )
    available = conditions.get("Available", {})
    unavailable = "" if available.get("status") == "True" else available.get("reason", "")
    progressing = conditions.get("Progressing", {})

    # The grace period.
    deadline = spec.get("progressDeadlineSeconds", 0)
    rolls_out = progressing.get("status") == "True"
    rolls_out = rolls_out and progressing.get("reason") != "NewReplicaSetAvailable"
    grace = max(300, deadline if rolls_out and deadline < 2**31 - 1 else 0)
    created = _moment(metadata["creationTimestamp"])
    moments = [
        [_moment(available["lastTransitionTime"])] if available.get("status") == "False" else [],
        [_unready_since(p) for p in unready],
        [_moment(p["metadata"]["deletionTimestamp"]) for p in terminating],
        [_unready_since(p) for p in failed],
        [max(changed)] if behind and changed else [],
        [created],
    ]
    earliest = [min(group) for group in moments if group]
    # Ignore times far ahead of the report, except deadlines.
    deadlines = [min(moments[2])] if moments[2] else []
    earliest = [m for m in earliest if m in deadlines or (m - as_of).total_seconds() <= 300]
    begin = max(earliest[0], created) if earliest else created
    in_grace = "DEGRADED" if (as_of - begin).total_seconds() <= grace else "ERROR"

    # The update.
    update = spec.get("updateStrategy", {})
    partition = (update.get("rollingUpdate") or {}).get("partition", 0)
    incomplete = n["updated"] < n["desired"] - partition
    by_hand = update.get("type") == "OnDelete" and n["updated"] < n["desired"]
    revisions = {status.get("currentRevision", ""), status.get("updateRevision", "")}
    if "" not in revisions and len(revisions) == 1:
        incomplete = by_hand = False
    if kind == "Deployment":
        incomplete = incomplete or status.get("replicas", 0) > n["updated"]
    updating = ""
    if spec.get("paused") and incomplete:
        updating = "DeploymentPaused"
    elif "" not in revisions and len(revisions) == 2:
        rolling = "" if update.get("type") == "OnDelete" else "RolloutInProgress"
        updating = "OnDeleteUpdatePending" if by_hand else rolling

    if metadata.get("deletionTimestamp"):
        return "DEGRADED", "Terminating"
    blocked = progressing.get("reason") if progressing.get("status") == "False" else ""
    if blocked and blocked != "ProgressDeadlineExceeded":
        return "ERROR" if down and n["desired"] else "DEGRADED", str(blocked)
    if "observedGeneration" not in status:
        return in_grace, "NotObserved"
    if behind and (not changed or (as_of - max(changed)).total_seconds() > 10):
        return (in_grace if down and n["desired"] else "DEGRADED"), "GenerationNotObserved"
    if n["desired"] == 0:
        return "HEALTHY", "NoEligibleNodes" if kind == "DaemonSet" else "ScaledToZero"
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return "ERROR", "ProgressDeadlineExceeded" + (f": {cause}" if cause else "")
    if down and (refused_reason or failing):
        return "ERROR", refused_reason or failing
    if down:
        minimum = kind == "Deployment" and unavailable == "MinimumReplicasUnavailable"
        return in_grace, cause or updating or (unavailable if minimum else "NoReadyReplicas")
    if each and all(pod and all(pod) for pod in each):
        return "ERROR", failing
    if min(n["ready"], n["available"]) < n["desired"]:
        short = "ReplicasNotReady" if n["ready"] < n["desired"] else "ReplicasNotAvailable"
        return "DEGRADED", cause or updating or unavailable or short
    if refused_reason or failing:
        return "DEGRADED", refused_reason or failing
    oldest = min(map(_unready_since, unready), default=as_of)
    if (as_of - max(oldest, created)).total_seconds() > grace:
        starting = _commonest([_starting(p) for p in unready])
        unnamed = "" if spec.get("paused") else "ReplicasNotReady"
        if stuck := homeless or held or starting or unnamed:
            return "DEGRADED", stuck
    if restart := _restart(live, as_of):
        return "DEGRADED", restart
    if spec.get("paused"):
        return "HEALTHY", "DeploymentPaused"
    if by_hand:
        return "HEALTHY", "OnDeleteUpdatePending"
    if incomplete:
        return "HEALTHY", "RolloutInProgress"
    overdue = [as_of - _moment(p["metadata"]["deletionTimestamp"]) for p in terminating]
    if any(late.total_seconds() > 300 for late in overdue):
        return "HEALTHY", "ReplicasTerminating"
    return "HEALTHY", ""


def _is_ready(pod: Object) -> bool:
    return bool(_conditions(pod).get("Ready", {}).get("status") == "True")


def _unready_since(pod: Object) -> dt.datetime:
    ready = _conditions(pod).get("Ready", {})
    created = pod["metadata"]["creationTimestamp"]
    return max(_moment(ready.get("lastTransitionTime") or created), _moment(created))


def _why_failed(pod: Object) -> str:
    return str(pod["status"].get("reason", ""))


def _starting(pod: Object) -> str:
    reasons = [
        s.get("state", {}).get("waiting", {}).get("reason", "")
        for s in pod["status"].get("containerStatuses", [])
    ]
    return min((r for r in reasons if r in ("ContainerCreating", "PodInitializing")), default="")


def _not_scheduled(pod: Object) -> str:
    condition = _conditions(pod).get("PodScheduled", {})
    return str(condition.get("reason", "")) if condition.get("status") == "False" else ""


def _held(pod: Object) -> str:
    conditions = _conditions(pod)
    if _not_scheduled(pod) == "SchedulingGated":
        return "SchedulingGated"
    ready = conditions.get("Ready", {})
    gates = ready.get("status") == "False" and ready.get("reason") == "ReadinessGatesNotReady"
    if is_lost(pod):
        return "NodeLost"
    if conditions.get("DisruptionTarget", {}).get("status") == "True":
        return "DisruptionTarget"
    return "ReadinessGatesNotReady" if gates else ""


def is_lost(pod: Object) -> bool:
    ready = _conditions(pod).get("Ready", {})
    if ready.get("status") not in ("False", "Unknown"):
        return False
    statuses = pod["status"].get("containerStatuses", [])
    contradicted = bool(statuses) and all(s["ready"] for s in statuses)
    return contradicted and ready.get("reason") != "ReadinessGatesNotReady"


def _restart(live: list[Object], as_of: dt.datetime) -> str:
    recent = []
    for pod in live:
        for status in pod["status"].get("containerStatuses", []):
            ended = status.get("lastState", {}).get("terminated")
            if not ended or not status["restartCount"]:
                continue
            if 0 <= (as_of - _moment(ended["finishedAt"])).total_seconds() <= 600:
                recent.append(ended.get("reason"))
    if "OOMKilled" in recent:
        return "OOMKilled"
    return "RestartsIncreasing" if recent else ""
