"""The objects of Kubernetes 1.21 to 1.34, each release with the fields that it has.

A field that a release does not know is absent from its objects, or ignored by its scheduler; the
verdict and the sums of older servers' objects remain the same.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.workloads.snapshots import SnapshotBuilder
from workloads.kubernetes.facts import WorkloadKind

from .objects import CREATED, owned_by, raw_workload, status

AS_OF = datetime.fromisoformat(CREATED) + timedelta(hours=1)
RUNNING = {"phase": "Running", "containerStatuses": [status(ready=True)]}


def cpu(requests: str, limits: str = "") -> dict[str, Any]:
    stated = {"requests": {"cpu": requests}}
    return {"resources": stated | ({"limits": {"cpu": limits}} if limits else {})}


def app(requests: str = "1", **more: Any) -> dict[str, Any]:
    return {"name": "app", "image": "web:1", **cpu(requests), **more}


def mesh(**more: Any) -> dict[str, Any]:
    return {"name": "mesh", "image": "envoy:1", **cpu("500m"), **more}


def container_status(requests: str, **more: Any) -> dict[str, Any]:
    """A node's status of a container that was resized."""
    return status(ready=True, **cpu(requests), **more)


def resized(requests: str, *statuses: dict[str, Any], **more: Any) -> tuple[Any, Any]:
    return {"containers": [app(requests)]}, {
        "phase": "Running",
        "containerStatuses": [*statuses],
        **more,
    }


PENDING = {"type": "PodResizePending", "status": "True"}


# The release; spec and status of one pod; requests and limits of CPU in millicores.
@pytest.mark.parametrize(
    ("release", "spec", "pod", "requests", "limits"),
    [
        ("1.21", {"containers": [app()]}, RUNNING, 1000, 0),
        ("1.21", {"containers": [app("1"), mesh()]}, RUNNING, 1500, 0),
        ("1.21", {"containers": [app()], "initContainers": [mesh()]}, RUNNING, 1000, 0),
        # RuntimeClass and its overhead (KEP 688), stable since 1.24.
        ("1.24", {"containers": [app()], "overhead": {"cpu": "250m"}}, RUNNING, 1250, 0),
        # A server without sidecars (KEP 753) drops their restartPolicy; with them they add up.
        ("1.27", {"containers": [app()], "initContainers": [mesh()]}, RUNNING, 1000, 0),
        (
            *("1.28", {"containers": [app()], "initContainers": [mesh(restartPolicy="Always")]}),
            *(RUNNING, 1500, 0),
        ),
        # 1.34 gives restartPolicy to any container (KEP 5307); only Always stays beside the app.
        (
            *("1.34", {"containers": [app()], "initContainers": [mesh(restartPolicy="Never")]}),
            *(RUNNING, 1000, 0),
        ),
        # Resizing in place (KEP 1287): the larger of the requested and the allocated resources.
        ("1.27", *resized("1", container_status("2", allocatedResources={"cpu": "2"})), 2000, 0),
        ("1.27", *resized("3", container_status("2", allocatedResources={"cpu": "2"})), 3000, 0),
        (
            *("1.32", *resized("3", container_status("2"), resize="Deferred")),
            *(3000, 0),
        ),
        ("1.32", *resized("9", container_status("2"), resize="Infeasible"), 2000, 0),
        (
            *(
                "1.33",
                *resized(
                    "9", container_status("2"), conditions=[{**PENDING, "reason": "Infeasible"}]
                ),
            ),
            *(2000, 0),
        ),
        (
            *(
                "1.33",
                *resized(
                    "3", container_status("2"), conditions=[{**PENDING, "reason": "Deferred"}]
                ),
            ),
            *(3000, 0),
        ),
        ("1.34", *resized("2", container_status("2"), observedGeneration=2), 2000, 0),
        # Resources of a whole pod (KEP 2837), for those that it states.
        ("1.32", {"containers": [app()], **cpu("4", "6")}, RUNNING, 4000, 6000),
        (
            *("1.34", {"containers": [app("1"), mesh()], "overhead": {"cpu": "1"}, **cpu("2")}),
            *(RUNNING, 3000, 0),
        ),
    ],
)
def test_requests_and_limits_of_a_pod(
    release: str, spec: dict[str, Any], pod: dict[str, Any], requests: int, limits: int
) -> None:
    del release
    record = the_record(pods=[(spec, pod)])
    assert record.figures["cpu_requests_millicores"] == requests
    assert record.figures["cpu_limits_millicores"] == limits


def deployment(**status: Any) -> dict[str, Any]:
    return raw_workload(
        {"replicas": 2, "template": {"spec": {"containers": [app()]}}},
        {"observedGeneration": 3, **status},
    )


ALL = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2}
ONE = {"readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1}
NONE_AVAILABLE = [{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}]


# The release, the status of a Deployment of two, the verdict.
@pytest.mark.parametrize(
    ("release", "deployment_status", "verdict"),
    [
        ("1.21", ALL, ("HEALTHY", "")),
        ("1.21", {"replicas": 2, **ONE}, ("DEGRADED", "ReplicasNotReady")),
        ("1.32", {"replicas": 1, **ONE}, ("DEGRADED", "ReplicasNotReady")),
        (
            *("1.32", {"conditions": NONE_AVAILABLE}),
            *[("ERROR", "MinimumReplicasUnavailable")],
        ),
        # Pods that end (KEP 3973) take the place of those that are still to be made.
        ("1.33", {**ALL, "terminatingReplicas": 0}, ("HEALTHY", "")),
        ("1.33", {**ALL, "terminatingReplicas": 2}, ("HEALTHY", "")),
        (
            *("1.33", {"replicas": 1, "terminatingReplicas": 1, **ONE}),
            *[("DEGRADED", "ReplicasTerminating")],
        ),
        (
            *("1.34", {"terminatingReplicas": 2, "conditions": NONE_AVAILABLE}),
            *[("ERROR", "ReplicasTerminating")],
        ),
        # All wanted pods exist: the rollout waits for them.
        (
            *("1.34", {"replicas": 2, "terminatingReplicas": 1, **ONE}),
            *[("DEGRADED", "ReplicasNotReady")],
        ),
        (
            *("1.34", {"replicas": 1, "terminatingReplicas": None, **ONE}),
            *[("DEGRADED", "ReplicasNotReady")],
        ),
    ],
)
def test_health_of_a_deployment_matches(
    release: str, deployment_status: dict[str, Any], verdict: tuple[str, str]
) -> None:
    del release
    record = the_record(deployment(**deployment_status))
    assert (record.health_status, record.status_reason) == verdict


def unscheduled(reason: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    return {"phase": "Pending", "conditions": [condition]}


WITH_MESH = {"containers": [app()], "initContainers": [mesh(restartPolicy="Always")]}
RUNS = {"startedAt": CREATED}


# The release, spec and status of the single pod, which is not ready, the verdict.
@pytest.mark.parametrize(
    ("release", "spec", "pod", "reason"),
    [
        ("1.21", {"containers": [app()]}, unscheduled("Unschedulable"), "Unschedulable"),
        # A gate (KEP 3521) keeps the scheduler from looking: no node was found wanting.
        (
            *("1.27", {"containers": [app()], "schedulingGates": [{"name": "example.com/quota"}]}),
            *(unscheduled("SchedulingGated"), "SchedulingGated"),
        ),
        # A sidecar that fails keeps its pod from being ready, as any container.
        (
            *("1.29", WITH_MESH),
            {
                "phase": "Running",
                "containerStatuses": [status(ready=True)],
                "initContainerStatuses": [
                    status("mesh", state={"waiting": {"reason": "CrashLoopBackOff"}})
                ],
            },
            "CrashLoopBackOff",
        ),
        # A pod that is only not ready yet is no failure, and its node is not lost.
        (
            *("1.29", WITH_MESH),
            {
                "phase": "Running",
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
                ],
                "containerStatuses": [status(ready=True)],
                "initContainerStatuses": [
                    status("mesh", ready=False, started=True, state={"running": RUNS})
                ],
            },
            "NoReadyReplicas",
        ),
    ],
)
def test_reason_without_ready_pods_matches(
    release: str, spec: dict[str, Any], pod: dict[str, Any], reason: str
) -> None:
    del release
    assert the_record(deployment(), [(spec, pod)]).status_reason == reason


@pytest.mark.parametrize("ready", [True, False])
def test_a_sidecar_is_ready_like_any_container(*, ready: bool) -> None:
    raw = raw_workload({"replicas": 1, "template": {"spec": WITH_MESH}}, {"observedGeneration": 3})
    pod = {**RUNNING, "initContainerStatuses": [status("mesh", ready=ready)]}
    record = the_record(raw, [(WITH_MESH, pod)])
    assert [(c.name, c.ready) for c in record.containers] == [("app", True), ("mesh", ready)]


def the_record(raw: dict[str, Any] | None = None, pods: Any = ()) -> Any:
    """Return the record of a Deployment with these pods, in a snapshot of raw objects."""
    builder = SnapshotBuilder()
    builder.add_workload(raw or deployment(**ALL), WorkloadKind.DEPLOYMENT)
    builder.add_replicaset({"metadata": {"uid": "owner", **owned_by("Deployment", "u")}})
    for number, (spec, pod_status) in enumerate(pods):
        metadata = {"namespace": "demo", "name": f"app-{number}", **owned_by("ReplicaSet")}
        builder.add_pod({"metadata": metadata, "spec": spec, "status": pod_status})
    (record,) = builder.records(AS_OF)
    return record
