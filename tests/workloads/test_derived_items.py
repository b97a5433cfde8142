"""Health that the service derives from an agent's counts; its rules are tested apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.workloads.records import item, snapshot_body
from workloads.kubernetes.records import ContainerRecord, WorkloadRecord
from workloads.reporting.incoming import read_report

RUNNING = {"name": "app", "state": "running", "ready": True}
CRASHING = {"name": "app", "state": "waiting", "reason": "CrashLoopBackOff", "restart_count": 7}
TEMPLATE = {"name": "app", "image": "app:1"}


def pod(name: str = "web-1", *containers: Any, **fields: Any) -> dict[str, Any]:
    return {"name": name, "phase": "Running", "containers": containers, **fields}


def unavailable(since: str) -> dict[str, str]:
    return {
        "type": "Available",
        "status": "False",
        "reason": "MinimumReplicasUnavailable",
        "last_transition_at": since,
    }


def read(**fields: Any) -> WorkloadRecord:
    (record,) = read_report(snapshot_body(0, [item(**fields)]), complete=True).records
    return record


def verdict(**fields: Any) -> tuple[str, str]:
    record = read(**fields)
    return record.health_status.value, record.status_reason


OLD = {"replicas_desired": 1, "created_at": "2026-10-20T00:00:00Z"}
WELL = {"replicas_desired": 1, "replicas_ready": 1, "replicas_available": 1}
CRASHED = {"exit_code": 1, "finished_at": "2026-11-20T11:59:00Z"}


@pytest.mark.parametrize(("fields", "expected"), [
    (WELL, ("HEALTHY", "")),
    ({**WELL, "pods": []}, ("HEALTHY", "")),
    ({"replicas_desired": 0}, ("HEALTHY", "ScaledToZero")),
    ({**WELL, "deleting": True}, ("DEGRADED", "Terminating")),
    ({**WELL, "generation": 1}, ("ERROR", "NotObserved")),
    ({**WELL, "generation": 2, "observed_generation": 1}, ("DEGRADED", "GenerationNotObserved")),
    ({**WELL, "generation": 2, "observed_generation": 2}, ("HEALTHY", "")),
    ({"replicas_desired": 1}, ("ERROR", "NoReadyReplicas")),
    ({"replicas_desired": 1, "created_at": "2026-11-20T11:58:00Z"},
     ("DEGRADED", "NoReadyReplicas")),
    # The grace starts at the transition of Available, else with the oldest pod.
    ({**OLD, "conditions": [unavailable("2026-11-20T11:58:00Z")]},
     ("DEGRADED", "MinimumReplicasUnavailable")),
    ({**OLD, "conditions": [unavailable("2026-11-20T09:58:00Z")],
      "pods": [pod("a", created_at="2026-11-20T11:59:00Z")]},
     ("ERROR", "MinimumReplicasUnavailable")),
    ({**OLD, "progress_deadline_seconds": 10_000, "conditions": [
        unavailable("2026-11-20T09:58:00Z"),
        {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}]},
     ("DEGRADED", "MinimumReplicasUnavailable")),
    # Kubernetes' maximum means no deadline.
    ({**OLD, "progress_deadline_seconds": 2**31 - 1, "conditions": [
        unavailable("2026-11-20T09:58:00Z"),
        {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}]},
     ("ERROR", "MinimumReplicasUnavailable")),
    ({**OLD, "kind": "StatefulSet", "pods": [pod("a", created_at="2026-11-20T11:59:00Z")]},
     ("DEGRADED", "NoReadyReplicas")),
    ({**OLD, "kind": "StatefulSet", "pods": [pod("a", created_at="2026-11-20T11:00:00Z")]},
     ("ERROR", "NoReadyReplicas")),
    ({**OLD, "kind": "StatefulSet", "pods": [pod("a")]}, ("ERROR", "NoReadyReplicas")),
    ({**OLD, "kind": "StatefulSet", "pods": [pod("a", deleting=True)]},
     ("ERROR", "ReplicasTerminating")),
    ({**OLD, "kind": "StatefulSet", "pods": [pod("a", deleted_at="2026-11-20T12:00:30Z")]},
     ("DEGRADED", "ReplicasTerminating")),
    ({**OLD, "kind": "StatefulSet", "pods": [pod("a", deleted_at="2026-11-20T11:54:59Z")]},
     ("ERROR", "ReplicasTerminating")),
    ({**OLD, "pods": [pod("a", phase="Failed", reason="Evicted")]}, ("ERROR", "Evicted")),
    ({**WELL, "replicas_total": 2}, ("HEALTHY", "RolloutInProgress")),
    ({**WELL, "replicas_total": 1}, ("HEALTHY", "")),
    ({**WELL, "kind": "StatefulSet", "replicas_total": 2}, ("HEALTHY", "")),
    ({"replicas_desired": 2, "replicas_ready": 1}, ("DEGRADED", "ReplicasNotReady")),
    # A StatefulSet of an old cluster has no count of available replicas.
    ({"kind": "StatefulSet", "replicas_desired": 1, "replicas_ready": 1}, ("HEALTHY", "")),
    ({"kind": "DaemonSet", "replicas_desired": 1, "replicas_ready": 1},
     ("DEGRADED", "ReplicasNotAvailable")),
    ({**WELL, "paused": True}, ("HEALTHY", "DeploymentPaused")),
    ({**WELL, "replicas_updated": 0}, ("HEALTHY", "RolloutInProgress")),
    ({**WELL, "replicas_updated": 0, "partition": 1}, ("HEALTHY", "")),
    ({**WELL, "replicas_updated": 0, "on_delete": True}, ("HEALTHY", "OnDeleteUpdatePending")),
    ({**WELL, "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "Quota"}]},
     ("DEGRADED", "Quota")),
    ({"replicas_desired": 1, "pods": [pod("a", CRASHING)]}, ("ERROR", "CrashLoopBackOff")),
    ({"replicas_desired": 1, "pods": [pod("a", unschedulable=True, phase="Pending")]},
     ("ERROR", "Unschedulable")),
    ({**WELL, "pods": [pod("a", RUNNING), pod("b", CRASHING)]}, ("DEGRADED", "CrashLoopBackOff")),
    ({**WELL, "pods": [pod("a", RUNNING), pod("b", CRASHING, phase="Failed")]}, ("HEALTHY", "")),
    ({**WELL, "pods": [pod("a", RUNNING), pod("b", CRASHING, deleting=True)]}, ("HEALTHY", "")),
    ({**WELL, "pods": [pod("a", {**RUNNING, "restart_count": 1, "last_termination": CRASHED})]},
     ("DEGRADED", "RestartsIncreasing")),
    ({**WELL, "pods": [pod("a", {**RUNNING, "restart_count": 1,
                                 "last_termination": {**CRASHED, "reason": "OOMKilled"}})]},
     ("DEGRADED", "OOMKilled")),
    # An init step that succeeded has no more effect, a failing step does.
    ({**WELL, "pods": [pod("a", CRASHING, init_containers=[{"name": "i", "state": "terminated"}])]},
     ("ERROR", "CrashLoopBackOff")),
    ({**WELL, "pods": [pod("a", RUNNING, init_containers=[
        {"name": "i", "state": "terminated", "exit_code": 2, "signal": 0}])]},
     ("DEGRADED", "Error")),
])  # fmt: skip
def test_health_is_derived(fields: Any, expected: tuple[str, str]) -> None:
    assert verdict(**fields) == expected


def test_the_reporters_word_stands() -> None:
    assert verdict(health_status="HEALTHY", replicas_desired=3) == ("HEALTHY", "")


def test_containers_are_added_up_from_pods() -> None:
    pods = [pod("a", {**RUNNING, "restart_count": 2}), pod("b", CRASHING)]

    record = read(replicas_desired=2, replicas_ready=1, pods=pods, containers=[TEMPLATE])

    assert record.containers == (ContainerRecord("app", "app:1", 9, "waiting", False),)


def test_containers_without_pods_are_stored_as_sent() -> None:
    record = read(**WELL, containers=[{**TEMPLATE, "restart_count": 3, "state": "running"}])

    assert record.containers == (ContainerRecord("app", "app:1", 3, "running", False),)


def test_figures_are_the_reporters() -> None:
    record = read(**WELL, pods=[], cpu_requests_millicores=5, memory_used_bytes=7)

    assert (record.figures["cpu_requests_millicores"], record.figures["memory_used_bytes"]) == (
        5,
        7,
    )
    assert record.figures["cpu_used_millicores"] is None
    assert json.dumps(record.labels) == "{}"
