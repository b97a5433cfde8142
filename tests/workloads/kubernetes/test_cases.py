"""Objects of public bug reports of other tools, each with the expected workload."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.snapshots import SnapshotBuilder
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.records import WorkloadRecord
from workloads.kubernetes.reduce import reduce_pod_metrics

CASES = {
    path.stem: json.loads(path.read_text())
    for path in (Path(__file__).parent / "cases").glob("*.json")
}


def record_of(case: dict[str, Any], as_of: str | None = None) -> WorkloadRecord:
    metrics = case["metrics"]
    builder = SnapshotBuilder(
        None if metrics is None else dict(filter(None, map(reduce_pod_metrics, metrics)))
    )
    builder.add_workload(case["workload"], WorkloadKind(case["workload"]["kind"]))
    for replicaset in case["replicasets"]:
        builder.add_replicaset(replicaset)
    for pod in case["pods"]:
        builder.add_pod(pod)
    (record,) = builder.records(datetime.fromisoformat(as_of or case["as_of"]))
    assert isinstance(record, WorkloadRecord)
    return record


@pytest.mark.parametrize("name", sorted(CASES))
def test_expected_health_is_derived(name: str) -> None:
    record, expect = record_of(CASES[name]), CASES[name]["expect"]
    verdict = (record.health_status.value, record.status_reason)

    assert record.health_status.value in expect.get("health_status", [verdict[0]])
    assert list(verdict) != expect.get("not")
    reasons = expect.get("reason_has", [""])
    assert any(reason in record.status_reason for reason in reasons)
    assert not any(reason in record.status_reason for reason in expect.get("reason_not", []))
    assert record.containers[0].ready == expect.get("container_ready", record.containers[0].ready)
    assert record.figures | expect.get("figures", {}) == record.figures


EXACT = {
    "a01-recreate-rollout": ("DEGRADED", "MinimumReplicasUnavailable"),
    "a02-scale-from-zero": ("DEGRADED", "MinimumReplicasUnavailable"),
    "a03-statefulset-restart": ("DEGRADED", "RolloutInProgress"),
    "a04-declared-deadline": ("DEGRADED", "MinimumReplicasUnavailable"),
    "a05-surge-unschedulable": ("DEGRADED", "Unschedulable"),
    "a06-surge-unschedulable-2h": ("DEGRADED", "Unschedulable"),
    "a07-exit-0-restarts": ("DEGRADED", "RestartsIncreasing"),
    "a08-node-lost": ("ERROR", "NodeLost"),
    "a09-statefulset-stuck-terminating": ("ERROR", "ReplicasTerminating"),
    "a10-unmeasured": ("HEALTHY", ""),
    "a11-daemonset-evicted": ("ERROR", "Evicted"),
    "a12-old-replicas-remain": ("HEALTHY", "RolloutInProgress"),
    "a13-autoscaler-15s": ("DEGRADED", "Unschedulable"),
    "a14-ready-not-available": ("DEGRADED", "ReplicasNotAvailable"),
    "a15-node-clock-ahead": ("HEALTHY", ""),
}


def test_derived_health_is_exact() -> None:
    found = {name: record_of(case) for name, case in CASES.items()}
    assert {
        name: (record.health_status.value, record.status_reason) for name, record in found.items()
    } == EXACT


@pytest.mark.parametrize(
    ("name", "as_of"),
    [
        ("a01-recreate-rollout", "2026-09-01T12:04:41Z"),  # 301 s after the transition
        ("a02-scale-from-zero", "2026-09-01T12:04:53Z"),
        ("a03-statefulset-restart", "2026-09-01T12:04:51Z"),
        ("a04-declared-deadline", "2026-09-01T12:24:01Z"),  # 1801 s
        ("a13-autoscaler-15s", "2026-09-01T12:04:46Z"),
    ],
)
def test_the_grace_ends(name: str, as_of: str) -> None:
    last_moment = datetime.fromisoformat(as_of).replace(microsecond=0)
    before = last_moment.timestamp() - 1
    assert record_of(CASES[name], as_of).health_status == "ERROR"
    in_grace = datetime.fromtimestamp(before, tz=last_moment.tzinfo).isoformat()
    assert record_of(CASES[name], in_grace).health_status == "DEGRADED"


def test_down_for_two_hours_with_young_pods_is_an_error() -> None:
    case = json.loads(json.dumps(CASES["a02-scale-from-zero"]))
    case["workload"]["status"]["conditions"][0]["lastTransitionTime"] = "2026-09-01T10:00:00Z"

    record = record_of(case)

    assert (record.health_status.value, record.status_reason) == (
        "ERROR",
        "MinimumReplicasUnavailable",
    )


def test_a_part_of_the_pods_is_measured() -> None:
    case = json.loads(json.dumps(CASES["a10-unmeasured"]))
    case["metrics"][0]["metadata"]["name"] = "0"

    assert record_of(case).figures["cpu_used_millicores"] == 50


def test_workload_without_pods_has_zero_usage() -> None:
    record = record_of(CASES["a10-unmeasured"] | {"pods": []})

    assert record.figures["cpu_used_millicores"] == 0
