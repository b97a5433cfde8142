"""Examples of requests and responses in the OpenAPI document."""

from typing import Any, Final

CLUSTER: Final[dict[str, Any]] = {
    "id": "01941f29-7c00-7f4a-8576-ad8ac4247500",
    "name": "edge-1",
    "uid": "229cb448-7af2-40c4-bf31-ace29c1771bb",
    "report_interval_seconds": 60,
    "health_status": "DEGRADED",
    "workload_counts": {"total": 3, "healthy": 2, "degraded": 1, "error": 0, "unspecified": 0},
    "last_report_at": "2026-11-21T09:00:05.000000Z",
    "last_received_at": "2026-11-21T09:00:05.214907Z",
    "last_snapshot_at": "2026-11-21T09:00:00.000000Z",
    "collection": {
        "status": "FAILING",
        "last_success_at": "2026-11-21T09:00:05.214907Z",
        "lag_seconds": 61,
        "failing_since": "2026-11-21T09:00:35.100231Z",
        "last_error_at": "2026-11-21T09:01:05.317710Z",
        "last_error_reason": "FORBIDDEN",
        "last_error_resource": "pods",
        "last_error_message": '403: pods is forbidden: User "collector" cannot list resource',
        "collector_version": "sync_workloads",
    },
    "created_at": "2025-01-01T00:00:00.000000Z",
    "updated_at": "2025-01-01T00:00:00.000000Z",
}
_DIGEST: Final = "sha256:9c1e4e8a2f5d7b3c6a0f1d2e3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e"
_CONTAINER: Final = {
    "name": "cache",
    "image": "registry.example.com/cache:6.29",
    "restart_count": 0,
    "state": "running",
    "ready": True,
    "running": [f"registry.example.com/cache:6.29@{_DIGEST}"],
}
_FIGURES: Final = {
    "replicas_desired": 2,
    "replicas_ready": 1,
    "replicas_available": 1,
    "cpu_requests_millicores": 250,
    "cpu_limits_millicores": 500,
    "cpu_used_millicores": 94,
    "memory_requests_bytes": 67108864,
    "memory_limits_bytes": 134217728,
    "memory_used_bytes": 59043156,
    "ephemeral_storage_requests_bytes": 1073741824,
}
_PLACE: Final = {"namespace": "shop", "name": "cache", "kind": "Deployment"}
_ITEM: Final[dict[str, Any]] = {
    **_PLACE,
    "labels": {"team": "data", "app.kubernetes.io/name": "cache"},
    "health_status": "DEGRADED",
    "status_reason": "ReplicasNotReady",
    **_FIGURES,
    "containers": [_CONTAINER],
}
WORKLOAD: Final[dict[str, Any]] = {
    "id": "01941f29-7c00-7d56-a897-96df982259c5",
    "cluster_id": CLUSTER["id"],
    "cluster_name": CLUSTER["name"],
    **_ITEM,
    "last_updated_at": "2026-11-21T09:00:05.000000Z",
}
MANAGED_WORKLOAD: Final = {
    **WORKLOAD,
    "managed": True,
    "managed_by": [
        {
            "state_id": "01941f29-7c00-719e-8289-09881617432c",
            "component_id": "01941f29-7c00-7b2d-9f0e-2b1f8c1d5a10",
            "environment_id": "01941f29-7c00-7c55-8f4c-6d1e2a9b7c31",
            "address": "kubernetes_deployment_v1.cache",
            "joined_by": "METADATA_UID",
        }
    ],
}
TRANSITION: Final = {
    "number": 2,
    "type": "CHANGED",
    "at": "2026-11-21T09:00:05.000000Z",
    "from_health_status": "HEALTHY",
    "to_health_status": "DEGRADED",
    "status_reason": "ReplicasNotReady",
}
AVAILABILITY: Final = {
    "since": "2026-11-14T09:00:05.000000Z",
    "until": "2026-11-21T09:00:05.000000Z",
    "healthy_ratio": 0.9375,
    "healthy_seconds": 540000.0,
    "degraded_seconds": 27000.0,
    "error_seconds": 9000.0,
    "unspecified_seconds": 0.0,
    "unobserved_seconds": 28800.0,
}
IMAGE: Final = {
    "registry": "registry.example.com",
    "repository": "registry.example.com/cache",
    "tag": "6.29",
    "digest": _DIGEST,
    "workloads": 12,
    "clusters": 3,
}
SNAPSHOT: Final = {
    "reported_at": "2026-11-21T09:00:00Z",
    "cluster_uid": CLUSTER["uid"],
    "report_interval_seconds": 60,
    "workloads": [_ITEM],
}
DELTA: Final = {
    "reported_at": "2026-11-21T09:00:05Z",
    "upserts": [_ITEM],
    "deletes": [{"namespace": "shop", "name": "cart", "kind": "Deployment"}],
}
FAILURE: Final = {
    "reason": CLUSTER["collection"]["last_error_reason"],
    "resource": "pods",
    "message": CLUSTER["collection"]["last_error_message"],
}
APPLIED: Final = {
    "report": {
        "cluster_id": CLUSTER["id"],
        "cluster_name": CLUSTER["name"],
        "reported_at": "2026-11-21T09:00:05.000000Z",
        "created": 0,
        "updated": 1,
        "deleted": 1,
        "unchanged": 0,
    }
}
_SUMS: Final = {"workloads": 1, "workloads_measured": 1, **_FIGURES}
_MANAGED: Final = {"workloads_managed": 1, "workloads_unmanaged": 0}
_TOTAL: Final = {
    "by_health_status": {
        "WORKLOAD_HEALTH_STATUS_UNSPECIFIED": 0,
        "HEALTHY": 0,
        "DEGRADED": 1,
        "ERROR": 0,
    },
    **_SUMS,
}
_GROUP: Final = {"kind": "Deployment", "health_status": "DEGRADED", **_SUMS}
SUMMARY: Final = {
    "summary": {
        "total": {**_TOTAL, **_MANAGED},
        "groups": [{"namespace": "shop", **_GROUP, **_MANAGED}],
    }
}
FLEET_SUMMARY: Final = {
    "summary": {
        "total": {**_TOTAL, **_MANAGED},
        "groups": [{"cluster_id": CLUSTER["id"], **_GROUP, **_MANAGED}],
    }
}
