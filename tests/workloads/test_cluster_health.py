"""Health of a cluster, as ``GET /api/v1/clusters`` and ``/{id}`` show it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db.models import Value
from django.utils import timezone

from tests.conftest import ClientWith
from tests.workloads.kubernetes.test_cases import CASES, record_of
from tests.workloads.records import apply, record, report
from workloads.cluster_health import ClusterHealth, cluster_health, is_in_health
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


JUDGED = pytest.mark.parametrize(("age", "counts", "expected"), [
    (None, {}, "PENDING"),
    (0, {}, "HEALTHY"),
    (0, {"workloads_healthy": 3, "workloads_unspecified": 1}, "HEALTHY"),
    (0, {"workloads_healthy": 3, "workloads_degraded": 1}, "DEGRADED"),
    (0, {"workloads_degraded": 1, "workloads_error": 1}, "ERROR"),
    (180, {"workloads_error": 1}, "ERROR"),
    (180.001, {"workloads_error": 1}, "UNREACHABLE"),
    (-60, {}, "HEALTHY"),
])  # fmt: skip


@JUDGED
def test_health_is_derived(age: float | None, counts: dict[str, int], expected: str) -> None:
    received = None if age is None else NOW - dt.timedelta(seconds=age)
    cluster = Cluster(name="c", report_interval_seconds=60, last_received_at=received, **counts)

    assert cluster_health(cluster, NOW) == expected


@JUDGED
@pytest.mark.django_db
def test_health_condition_matches_the_computed_health(
    age: float | None, counts: dict[str, int], expected: str
) -> None:
    received = None if age is None else NOW - dt.timedelta(seconds=age)
    times = dict.fromkeys(("last_report_at", "last_received_at"), received)
    Cluster.objects.create(name="c", report_interval_seconds=60, **times, **counts)

    found = [
        h for h in ClusterHealth if Cluster.objects.filter(is_in_health(h, Value(NOW))).exists()
    ]
    assert found == [expected]


def shown(client_with: ClientWith, cluster: Cluster) -> dict[str, Any]:
    client = client_with("cluster:read")
    one = client.get(f"/api/v1/clusters/{cluster.pk}").json()["cluster"]
    (listed,) = client.get("/api/v1/clusters").json()["clusters"]
    # The second answer may be of the next second.
    listed["collection"]["lag_seconds"] = one["collection"]["lag_seconds"]
    assert listed == one
    return dict(one)


def test_before_the_first_report(client_with: ClientWith, cluster: Cluster) -> None:
    answer = shown(client_with, cluster)

    assert answer["health_status"] == "PENDING"
    assert answer["workload_counts"] == dict.fromkeys(
        ["total", "healthy", "degraded", "error", "unspecified"], 0
    )
    assert answer["last_received_at"] is None


def test_after_a_report(client_with: ClientWith, cluster: Cluster) -> None:
    bad = record("bad", health_status=HealthStatus.ERROR)
    apply(cluster, report(0, record("good"), bad, cluster_uid="mine"))

    answer = shown(client_with, cluster)

    assert answer["health_status"] == "ERROR"
    assert answer["workload_counts"] == {
        "total": 2, "healthy": 1, "degraded": 0, "error": 1, "unspecified": 0
    }  # fmt: skip
    assert answer["uid"] == "mine"
    assert answer["last_report_at"] == "2026-11-20T12:00:00.000000Z"


def test_cluster_is_unreachable_after_three_intervals(
    client_with: ClientWith, cluster: Cluster
) -> None:
    apply(cluster, report(0, record(health_status=HealthStatus.ERROR), interval_seconds=10))
    Cluster.objects.update(last_received_at=timezone.now() - dt.timedelta(seconds=31))

    answer = shown(client_with, cluster)

    assert answer["health_status"] == "UNREACHABLE"
    # Its workloads keep their last status.
    assert answer["workload_counts"]["error"] == 1


@pytest.mark.parametrize(
    ("case", "health"),
    [
        ("a01-recreate-rollout", "DEGRADED"),
        ("a02-scale-from-zero", "DEGRADED"),
        ("a03-statefulset-restart", "DEGRADED"),
        ("a08-node-lost", "ERROR"),
        ("a12-old-replicas-remain", "HEALTHY"),
    ],
)
@pytest.mark.django_db
def test_restarted_workload_does_not_give_the_cluster_an_error(
    client_with: ClientWith, cluster: Cluster, case: str, health: str
) -> None:
    apply(cluster, report(0, record_of(CASES[case])))

    assert shown(client_with, cluster)["health_status"] == health
