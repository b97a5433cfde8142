"""``GET /api/v1/clusters/{cluster_id}/workloads:summary``."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.conftest import ClientWith, error_reason
from tests.workloads.records import apply, record, report
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster

FIGURES = {
    "replicas_desired": 2, "replicas_ready": 2, "replicas_available": 2,
    "cpu_requests_millicores": 200, "cpu_limits_millicores": 400, "cpu_used_millicores": 31,
    "memory_requests_bytes": 268435456, "memory_limits_bytes": 536870912,
    "memory_used_bytes": 190000000, "ephemeral_storage_requests_bytes": 1073741824,
}  # fmt: skip


def summary(client: Any, cluster: Cluster, **query: str) -> Any:
    response = client.get(f"/api/v1/clusters/{cluster.pk}/workloads:summary", query)
    assert response.status_code == 200
    return response.json()["summary"]


def times(count: int) -> dict[str, int]:
    return {name: count * figure for name, figure in FIGURES.items()}


def counts(number: int, *, measured: int) -> dict[str, int]:
    """Return the counts of workloads of which no state knows."""
    return {
        "workloads": number,
        "workloads_measured": measured,
        "workloads_managed": 0,
        "workloads_unmanaged": number,
    }


def test_counts_and_sums(client_with: ClientWith, cluster: Cluster) -> None:
    apply(cluster, report(
        0, record("a"), record("b"), record("c", health_status=HealthStatus.ERROR),
        record("d", kind=WorkloadKind.DAEMON_SET),
        record("e", namespace="bank", cpu_used_millicores=None, memory_used_bytes=None),
    ))  # fmt: skip

    answer = summary(client_with("cluster:read"), cluster)

    unmeasured = {**FIGURES, "cpu_used_millicores": None, "memory_used_bytes": None}
    measured = {"cpu_used_millicores": 4 * 31, "memory_used_bytes": 4 * 190000000}
    assert answer == {
        "total": {
            **counts(5, measured=4),
            "by_health_status": {
                "WORKLOAD_HEALTH_STATUS_UNSPECIFIED": 0, "HEALTHY": 4, "DEGRADED": 0, "ERROR": 1
            },
            **times(5),
            **measured,
        },
        "groups": [
            {"namespace": "bank", "kind": "Deployment", "health_status": "HEALTHY",
             **counts(1, measured=0), **unmeasured},
            {"namespace": "shop", "kind": "DaemonSet", "health_status": "HEALTHY",
             **counts(1, measured=1), **FIGURES},
            {"namespace": "shop", "kind": "Deployment", "health_status": "ERROR",
             **counts(1, measured=1), **FIGURES},
            {"namespace": "shop", "kind": "Deployment", "health_status": "HEALTHY",
             **counts(2, measured=2), **times(2)},
        ],
    }  # fmt: skip


def test_summary_covers_the_filter(client_with: ClientWith, cluster: Cluster) -> None:
    apply(cluster, report(0, record("a"), record("b", namespace="bank")))

    answer = summary(client_with("cluster:read"), cluster, filter="field['namespace'] = 'bank'")

    assert answer["total"]["workloads"] == 1
    assert [group["namespace"] for group in answer["groups"]] == ["bank"]


def test_summary_of_an_empty_cluster_is_zero(client_with: ClientWith, cluster: Cluster) -> None:
    answer = summary(client_with("cluster:read"), cluster)

    assert answer["groups"] == []
    assert answer["total"]["workloads"] == 0
    assert answer["total"]["cpu_used_millicores"] is None


@pytest.mark.parametrize(
    ("measured", "missing"),
    [("cpu_used_millicores", "memory_used_bytes"), ("memory_used_bytes", "cpu_used_millicores")],
)
def test_summary_accepts_a_single_measured_figure(
    client_with: ClientWith, cluster: Cluster, measured: str, missing: str
) -> None:
    apply(cluster, report(0, record("a", **{measured: 7, missing: None})))

    answer = summary(client_with("cluster:read"), cluster)

    for sums in (answer["total"], *answer["groups"]):
        assert (sums[measured], sums[missing]) == (7, None)
        assert sums["workloads_measured"] == 1


def test_sums_may_be_wider_than_64_bits(client_with: ClientWith, cluster: Cluster) -> None:
    widest = 2**63 - 1
    apply(cluster, report(0, *(record(n, memory_limits_bytes=widest) for n in "abc")))

    answer = summary(client_with("cluster:read"), cluster)

    assert answer["total"]["memory_limits_bytes"] == pytest.approx(3 * widest, rel=1e-9)


@pytest.mark.parametrize("size", [3, 60])
def test_summary_is_a_single_query(client_with: ClientWith, cluster: Cluster, size: int) -> None:
    apply(cluster, report(0, *(record(f"w-{n}", namespace=f"n-{n}") for n in range(size))))
    client = client_with("cluster:read")
    summary(client, cluster)

    with CaptureQueriesContext(connection) as queries:
        summary(client, cluster)

    # Token, cluster, and the summary.
    assert len(queries) == 3


def test_unknown_cluster_is_not_found(client_with: ClientWith) -> None:
    response = client_with("cluster:read").get(f"/api/v1/clusters/{uuid.uuid4()}/workloads:summary")

    assert (response.status_code, error_reason(response)) == (404, "CLUSTER_NOT_FOUND")


def test_scope_is_required(client_with: ClientWith, cluster: Cluster) -> None:
    response = client_with("cluster:write").get(f"/api/v1/clusters/{cluster.pk}/workloads:summary")

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_a_misspelt_filter_is_refused(client_with: ClientWith, cluster: Cluster) -> None:
    """It would add up the whole cluster."""
    path = f"/api/v1/clusters/{cluster.pk}/workloads:summary"

    response = client_with("cluster:read").get(path, {"fliter": "field['kind'] = 'DaemonSet'"})

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    assert "did you mean 'filter'?" in response.json()["error"]["message"]
