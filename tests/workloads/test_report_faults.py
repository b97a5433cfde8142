"""A response names the faults of a report, up to a limit, and the report is not stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.workloads.agent import Agent, nothing_is_stored, violations
from tests.workloads.records import delta_body, healthy, item, snapshot_body
from workloads.models import Cluster


@pytest.mark.parametrize(("head", "field", "reason"), [
    ([], "body", "INVALID"),
    ({}, "reported_at", "REQUIRED"),
    ({"reported_at": "2026-11-20T12:00:00Z"}, "workloads", "REQUIRED"),
    ({"reported_at": "2026-11-20T12:00:00", "workloads": []}, "reported_at", "INVALID_FORMAT"),
    ({"reported_at": "yesterday", "workloads": []}, "reported_at", "INVALID_FORMAT"),
    ({"reported_at": 1, "workloads": []}, "reported_at", "INVALID"),
    ({"reported_at": "2200-01-01T00:00:01Z", "workloads": []}, "reported_at", "OUT_OF_RANGE"),
    ({"reported_at": "9999-12-31T23:59:59-14:00", "workloads": []}, "reported_at", "OUT_OF_RANGE"),
    ({"reported_at": "0001-01-01T00:00:00+14:00", "workloads": []}, "reported_at", "OUT_OF_RANGE"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": {}}, "workloads", "INVALID"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": [], "more": 1}, "more", "UNKNOWN_FIELD"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": [], "cluster_uid": ""},
     "cluster_uid", "INVALID_FORMAT"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": [], "cluster_uid": "a" * 65},
     "cluster_uid", "OUT_OF_RANGE"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": [], "report_interval_seconds": 0},
     "report_interval_seconds", "OUT_OF_RANGE"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": [], "report_interval_seconds": 86401},
     "report_interval_seconds", "OUT_OF_RANGE"),
])  # fmt: skip
def test_faults_of_the_report(
    agent: Agent, cluster: Cluster, head: Any, field: str, reason: str
) -> None:
    assert violations(agent.put(json.dumps(head).encode())) == [(field, reason)]
    assert nothing_is_stored(cluster)


LONG_NAME = "a" * 254
CONTAINER = {"name": "app", "image": "app:1"}
POD = {"name": "web-1", "phase": "Running"}


@pytest.mark.parametrize(("fields", "field", "reason"), [
    ({"namespace": ""}, "namespace", "INVALID_FORMAT"),
    ({"namespace": "a" * 64}, "namespace", "OUT_OF_RANGE"),
    ({"namespace": "a.b"}, "namespace", "INVALID_FORMAT"),
    ({"namespace": None}, "namespace", "INVALID"),
    ({"name": "Web"}, "name", "INVALID_FORMAT"),
    ({"name": "web\n"}, "name", "INVALID_FORMAT"),
    ({"name": "-web"}, "name", "INVALID_FORMAT"),
    ({"name": LONG_NAME}, "name", "OUT_OF_RANGE"),
    ({"kind": "CronJob"}, "kind", "UNKNOWN_VALUE"),
    ({"uid": "a" * 65}, "uid", "OUT_OF_RANGE"),
    ({"uid": "a\0"}, "uid", "INVALID_FORMAT"),
    ({"labels": {"app": "a" * 64}}, "labels", "OUT_OF_RANGE"),
    ({"labels": {"a" * 64: "x"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"a" * 254 + "/x": "x"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"a" * 318: "x"}}, "labels", "OUT_OF_RANGE"),
    ({"labels": {"Upper/x": "x"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"a/b/c": "x"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"app": "two words"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"app": "a\0"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"app": 1}}, "labels", "INVALID"),
    ({"labels": {f"l{n}": "" for n in range(1001)}}, "labels", "OUT_OF_RANGE"),
    ({"labels": [["app", "web"]]}, "labels", "INVALID"),
    ({"health_status": "FINE"}, "health_status", "UNKNOWN_VALUE"),
    ({"status_reason": "a" * 1025}, "status_reason", "OUT_OF_RANGE"),
    ({"status_reason": "a\0"}, "status_reason", "INVALID_FORMAT"),
    ({"replicas_ready": -1}, "replicas_ready", "OUT_OF_RANGE"),
    ({"replicas_ready": 2**31}, "replicas_ready", "OUT_OF_RANGE"),
    ({"replicas_desired": 10**400}, "replicas_desired", "OUT_OF_RANGE"),
    ({"replicas_desired": 1.5}, "replicas_desired", "INVALID"),
    ({"replicas_desired": True}, "replicas_desired", "INVALID"),
    ({"cpu_used_millicores": -1}, "cpu_used_millicores", "OUT_OF_RANGE"),
    ({"memory_limits_bytes": 2**63}, "memory_limits_bytes", "OUT_OF_RANGE"),
    ({"memory_limits_bytes": "1Gi"}, "memory_limits_bytes", "INVALID"),
    ({"containers": [CONTAINER, {"name": "app"}]}, "containers.1.image", "REQUIRED"),
    ({"containers": [{**CONTAINER, "image": "a\0"}]}, "containers.0.image", "INVALID_FORMAT"),
    ({"containers": [{**CONTAINER, "image": "a" * 2049}]}, "containers.0.image", "OUT_OF_RANGE"),
    ({"containers": [{**CONTAINER, "state": "fine"}]}, "containers.0.state", "UNKNOWN_VALUE"),
    ({"containers": [{**CONTAINER, "env": []}]}, "containers.0.env", "UNKNOWN_FIELD"),
    ({"spec": {}}, "spec", "UNKNOWN_FIELD"),
    ({"pods": [POD]}, "pods", "INVALID"),
])  # fmt: skip
def test_faults_of_an_item_are_reported(
    agent: Agent, cluster: Cluster, fields: Any, field: str, reason: str
) -> None:
    """One faulty item makes the service reject the sound items beside it."""
    items = [healthy("sound"), {**healthy(), **fields}]

    assert violations(agent.put(snapshot_body(0, items))) == [(f"workloads.1.{field}", reason)]
    upserts = delta_body(0, upserts=items)
    assert violations(agent.patch(upserts)) == [(f"upserts.1.{field}", reason)]
    assert nothing_is_stored(cluster)


@pytest.mark.parametrize(("fields", "field", "reason"), [
    ({"status_reason": "Bad"}, "status_reason", "INVALID"),
    ({"pods": []}, "replicas_desired", "REQUIRED"),
    ({"replicas_desired": 1, "pods": [{"name": "web-1"}]}, "pods.0.phase", "REQUIRED"),
    ({"replicas_desired": 1, "created_at": "2026-01-01"}, "created_at", "INVALID_FORMAT"),
    ({"replicas_desired": 1, "pods": [{**POD, "containers": [{"name": "c", "state": "odd"}]}]},
     "pods.0.containers.0.state", "UNKNOWN_VALUE"),
    ({"replicas_desired": 1, "conditions": [{"type": "Available", "status": "Maybe"}]},
     "conditions.0.status", "UNKNOWN_VALUE"),
])  # fmt: skip
def test_invalid_health_fields_are_named(
    agent: Agent, fields: Any, field: str, reason: str
) -> None:
    body = snapshot_body(0, [item(**fields)])

    assert violations(agent.put(body)) == [(f"workloads.0.{field}", reason)]


@pytest.mark.parametrize("raw", [b"1", b'"x"', b"[]", b"null"])
def test_non_object_item_is_reported(agent: Agent, raw: bytes) -> None:
    body = snapshot_body(0, ["RAW"]).replace(b'"RAW"', raw)

    assert violations(agent.put(body)) == [("workloads.0", "INVALID")]


@pytest.mark.parametrize("raw", [
    b'{"namespace": "\xff"}', b'{"labels": ' + b"[" * 700 + b"]" * 700 + b"}",
])  # fmt: skip
def test_unreadable_item_is_reported(agent: Agent, raw: bytes) -> None:
    body = snapshot_body(0, ["RAW"]).replace(b'"RAW"', raw)

    assert violations(agent.put(body))[0][0].startswith("workloads.0")


def test_duplicate_workload_is_reported(agent: Agent, cluster: Cluster) -> None:
    body = snapshot_body(0, [healthy(), healthy("api"), healthy()])
    assert violations(agent.put(body)) == [("workloads.2", "DUPLICATE")]

    delta = delta_body(0, upserts=[healthy()], deletes=[item("api"), item()])
    assert violations(agent.patch(delta)) == [("deletes.1", "DUPLICATE")]
    assert nothing_is_stored(cluster)


def test_faults_of_a_deletion_are_reported(agent: Agent) -> None:
    delta = delta_body(0, deletes=[{"namespace": "shop"}, item(uid="x")])

    assert violations(agent.patch(delta)) == [
        ("deletes.0.name", "REQUIRED"),
        ("deletes.1.uid", "UNKNOWN_FIELD"),
    ]


def test_number_of_reported_faults_is_limited(agent: Agent, cluster: Cluster) -> None:
    body = snapshot_body(0, [healthy(f"w-{n}", replicas_ready=-1) for n in range(10_000)])

    response = agent.put(body)

    assert violations(response) == [
        (f"workloads.{n}.replicas_ready", "OUT_OF_RANGE") for n in range(100)
    ]
    assert response.json()["error"]["message"] == (
        "The report was rejected, and nothing was stored. The first of more than 100 faults: "
        "workloads.0.replicas_ready: Expected `int` >= 0."
    )
    assert nothing_is_stored(cluster)


def test_too_many_workloads_are_rejected(agent: Agent) -> None:
    body = snapshot_body(0, [{}] * 100_001)
    assert violations(agent.put(body)) == [("workloads", "OUT_OF_RANGE")]
