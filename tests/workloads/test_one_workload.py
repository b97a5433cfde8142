"""``GET /api/v1/clusters/{cluster_id}/workloads/{id}``."""

from __future__ import annotations

import uuid

import pytest

from tests.conftest import ClientWith, error_reason
from tests.workloads.conftest import NewWorkload
from tests.workloads.records import apply, record, report, stored
from workloads.models import Cluster


def test_workload_is_returned(client_with: ClientWith, cluster: Cluster) -> None:
    apply(cluster, report(0, record()))
    apply(cluster, report(60, record()))
    (row,) = stored(cluster).values()

    response = client_with("cluster:read").get(f"/api/v1/clusters/{cluster.pk}/workloads/{row.pk}")

    assert response.status_code == 200
    assert response.json() == {
        "workload": {
            "id": str(row.pk),
            "cluster_id": str(cluster.pk),
            "cluster_name": cluster.name,
            "namespace": "shop",
            "name": "web",
            "kind": "Deployment",
            "labels": {"app": "web"},
            "health_status": "HEALTHY",
            "status_reason": "",
            "replicas_desired": 2,
            "replicas_ready": 2,
            "replicas_available": 2,
            "cpu_requests_millicores": 200,
            "cpu_limits_millicores": 400,
            "cpu_used_millicores": 31,
            "memory_requests_bytes": 268435456,
            "memory_limits_bytes": 536870912,
            "memory_used_bytes": 190000000,
            "ephemeral_storage_requests_bytes": 1073741824,
            "containers": [
                {
                    "name": "app",
                    "image": "registry.example/web:1",
                    "restart_count": 0,
                    "state": "running",
                    "ready": True,
                }
            ],
            "last_updated_at": "2026-11-20T12:01:00.000000Z",
            "managed": False,
            "managed_by": [],
        }
    }


@pytest.mark.parametrize("workload_id", [str(uuid.UUID(int=1)), "nonsense"])
def test_unknown_workload_is_not_found(
    client_with: ClientWith, cluster: Cluster, workload_id: str
) -> None:
    client = client_with("cluster:read")

    response = client.get(f"/api/v1/clusters/{cluster.pk}/workloads/{workload_id}")

    assert (response.status_code, error_reason(response)) == (404, "WORKLOAD_NOT_FOUND")


def test_workload_of_another_cluster_is_not_found(
    client_with: ClientWith, workload: NewWorkload
) -> None:
    other = Cluster.objects.create(name="other")
    client = client_with("cluster:read")

    response = client.get(f"/api/v1/clusters/{other.pk}/workloads/{workload().pk}")

    assert (response.status_code, error_reason(response)) == (404, "WORKLOAD_NOT_FOUND")


def test_token_bound_to_another_cluster_is_refused(
    client_with: ClientWith, cluster: Cluster, workload: NewWorkload
) -> None:
    client = client_with("cluster:read", bound_cluster_id=uuid.uuid4())

    response = client.get(f"/api/v1/clusters/{cluster.pk}/workloads/{workload().pk}")

    assert (response.status_code, error_reason(response)) == (404, "CLUSTER_NOT_FOUND")


def test_scope_is_required(client_with: ClientWith, cluster: Cluster) -> None:
    client = client_with("cluster:write")

    response = client.get(f"/api/v1/clusters/{cluster.pk}/workloads/{uuid.uuid4()}")

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
