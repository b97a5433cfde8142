"""Generate the objects of a large cluster, without creating them through the API server."""

from __future__ import annotations

import copy
import random
import uuid
from collections.abc import Iterator
from typing import Any

from tools.live_kubernetes.metrics_api import MetricsApi, usage
from tools.live_kubernetes.plane import ControlPlane

_NAMESPACES = 100
_MOMENT = "2026-11-20T00:00:00Z"
Object = dict[str, Any]


def objects(workloads: int, replicas: int) -> Iterator[tuple[str, Object]]:
    """Yield keys and values for etcd: Deployments, each with its ReplicaSet and pods."""
    for number in range(workloads):
        namespace, name = namespace_of(number, workloads), f"w-{number:06d}"
        deployment = made("apps/v1", "Deployment", namespace, name, None)
        deployment["spec"] = {**spec(name), "replicas": replicas}
        counts = {"replicas", "readyReplicas", "availableReplicas", "updatedReplicas"}
        deployment["status"] = {**dict.fromkeys(counts, replicas), "observedGeneration": 1}
        yield f"/registry/deployments/{namespace}/{name}", deployment
        owner = deployment["metadata"]["uid"]
        replicaset = made(
            "apps/v1", "ReplicaSet", namespace, f"{name}-1", ("Deployment", name, owner)
        )
        replicaset["spec"] = {**spec(name), "replicas": replicas}
        yield f"/registry/replicasets/{namespace}/{name}-1", replicaset
        owner = replicaset["metadata"]["uid"]
        for replica in range(replicas):
            pod = made("v1", "Pod", namespace, pod_name(name, replica),
                       ("ReplicaSet", f"{name}-1", owner))  # fmt: skip
            yield f"/registry/pods/{namespace}/{pod['metadata']['name']}", {**pod, **_running(name)}


def made(
    version: str, kind: str, namespace: str, name: str, owner: tuple[str, str, str] | None
) -> Object:
    metadata: Object = {
        "name": name, "namespace": namespace, "uid": str(uuid.uuid4()), "generation": 1,
        "creationTimestamp": _MOMENT, "labels": {"app": name},
        # Managed fields are the largest part of real objects.
        "managedFields": [{
            "manager": "kubelet", "operation": "Update", "apiVersion": version, "time": _MOMENT,
            "fieldsType": "FieldsV1", "fieldsV1": {f"f:field-{n}": {} for n in range(60)},
        }],
    }  # fmt: skip
    if owner:
        kind_of_owner, name_of_owner, uid = owner
        metadata["ownerReferences"] = [{
            "apiVersion": "apps/v1", "kind": kind_of_owner, "name": name_of_owner, "uid": uid,
            "controller": True, "blockOwnerDeletion": True,
        }]  # fmt: skip
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def spec(name: str) -> Object:
    return {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": copy.deepcopy(_POD_SPEC)},
    }


_POD_SPEC: Object = {
    "containers": [{
        "name": "app", "image": "registry.example/app:1.0",
        "env": [{"name": f"VARIABLE_{n}", "value": "x" * 20} for n in range(10)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
    }],
}  # fmt: skip


def _running(name: str) -> Object:
    state = {"running": {"startedAt": _MOMENT}}
    container = {
        "name": "app", "image": "registry.example/app:1.0", "imageID": "", "ready": True,
        "restartCount": 0, "state": state, "lastState": {},
    }  # fmt: skip
    conditions = [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]
    return {
        "spec": {**_POD_SPEC, "nodeName": "node-a"},
        "status": {
            "phase": "Running", "conditions": conditions, "containerStatuses": [container],
        },
    }  # fmt: skip


class MadeUsage(MetricsApi):
    """A metrics API whose usage is near the figure in a pod's name, and differs at each reading."""

    def __init__(self, plane: ControlPlane, workloads: int, replicas: int) -> None:
        super().__init__(plane.api(), plane.directory)
        self._names = [
            (namespace_of(number, workloads), pod_name(f"w-{number:06d}", replica))
            for number in range(workloads)
            for replica in range(replicas)
        ]

    def measured(self, where: str) -> list[Any]:  # noqa: ARG002 - only called for all
        return [_pod_metrics(namespace, name) for namespace, name in self._names]


def _pod_metrics(namespace: str, name: str) -> Object:
    millicores, mebibytes = usage(name)
    amounts = {
        "cpu": f"{int(millicores * 1_000_000 * random.uniform(0.7, 1.3))}n",
        "memory": f"{int(mebibytes * 1024 * random.uniform(0.98, 1.02))}Ki",
    }
    return {
        "metadata": {
            "name": name, "namespace": namespace, "creationTimestamp": _MOMENT,
            "labels": {"app": name[:8]},
        },
        "timestamp": _MOMENT, "window": "30s", "containers": [{"name": "app", "usage": amounts}],
    }  # fmt: skip


def namespace_of(number: int, workloads: int) -> str:
    return f"team-{number * _NAMESPACES // workloads:03d}"


def pod_name(workload: str, replica: int) -> str:
    return f"{workload}-1-{replica:05d}"
