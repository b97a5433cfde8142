from datetime import UTC, datetime
from typing import Any

from tests.workloads.snapshots import SnapshotBuilder
from workloads.kubernetes.facts import PodKey, WorkloadKind
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.quantities import NANOS
from workloads.kubernetes.records import ContainerRecord, WorkloadRecord

AS_OF = datetime(2026, 11, 21, 12, tzinfo=UTC)


def pod(name: str, owner: str, kind: str = "ReplicaSet", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "demo",
            "name": name,
            "labels": {"app": "shared"},
            "ownerReferences": [{"kind": kind, "uid": owner, "controller": True}],
        },
        "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "0.4m"}}}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "app", "state": {"running": {}}, "ready": True, "restartCount": 1}
            ],
        }
        | status,
    }


def deployment(name: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": name, "namespace": "demo", "name": name, "generation": 1},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "shared"}},
            "template": {"spec": {"containers": [{"name": "app", "image": "app:1"}]}},
        },
        "status": {"observedGeneration": 1, **status},
    }


def replicaset(uid: str, owner: str) -> dict[str, Any]:
    return {
        "metadata": {
            "uid": uid,
            "ownerReferences": [{"kind": "Deployment", "uid": owner, "controller": True}],
        }
    }


def test_deployment_has_only_the_pods_of_its_replicasets() -> None:
    builder = SnapshotBuilder({PodKey("demo", "a-1"): (1, 1)})
    builder.add_workload(
        deployment("web", readyReplicas=3, availableReplicas=3, updatedReplicas=3),
        WorkloadKind.DEPLOYMENT,
    )
    builder.add_replicaset(replicaset("old", "web"))
    builder.add_replicaset(replicaset("new", "web"))
    builder.add_replicaset(replicaset("idle", "web"))
    builder.add_replicaset({"metadata": {"uid": "bare"}})
    builder.add_pod(pod("a-1", "new"))
    builder.add_pod(pod("a-2", "new"))
    builder.add_pod(pod("a-3", "old"))
    # The same labels, but other owners.
    builder.add_pod(pod("b-1", "bare"))
    builder.add_pod(pod("c-1", "web", kind="Job"))
    assert list(builder.records(AS_OF)) == [
        WorkloadRecord(
            kind=WorkloadKind.DEPLOYMENT,
            namespace="demo",
            name="web",
            uid="web",
            labels={},
            health_status=HealthStatus.HEALTHY,
            status_reason="",
            replicas_desired=3,
            replicas_ready=3,
            replicas_available=3,
            # 3 times 0.4, rounded up once.
            figures={
                "cpu_requests_millicores": 2,
                "cpu_limits_millicores": 0,
                "cpu_used_millicores": 1,
                "memory_requests_bytes": 0,
                "memory_limits_bytes": 0,
                "memory_used_bytes": 1,
                "ephemeral_storage_requests_bytes": 0,
            },
            containers=(ContainerRecord("app", "app:1", 3, "running", True),),
        )
    ]


def test_asking_twice_counts_once() -> None:
    builder = SnapshotBuilder({PodKey("demo", "a-1"): (NANOS, 0)})
    builder.add_workload(deployment("web"), WorkloadKind.DEPLOYMENT)
    builder.add_replicaset(replicaset("new", "web"))
    builder.add_pod(pod("a-1", "new"))
    first = list(builder.records(AS_OF))
    assert list(builder.records(AS_OF)) == first
    assert first[0].figures["cpu_used_millicores"] == 1000


def test_a_container_is_ready_when_it_is_in_every_live_pod() -> None:
    builder = SnapshotBuilder(None)
    builder.add_workload(deployment("web"), WorkloadKind.DEPLOYMENT)
    builder.add_replicaset(replicaset("new", "web"))
    builder.add_pod(pod("a-1", "new"))
    builder.add_pod(pod("a-2", "new", containerStatuses=None))
    (record,) = builder.records(AS_OF)
    assert record.containers == (ContainerRecord("app", "app:1", 1, "running", False),)


def test_objects_without_identity_are_omitted() -> None:
    builder = SnapshotBuilder(None)
    builder.add_workload({}, WorkloadKind.DAEMON_SET)
    builder.add_pod({})
    builder.add_replicaset({})
    assert list(builder.records(AS_OF)) == []
