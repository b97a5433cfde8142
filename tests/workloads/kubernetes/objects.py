"""Raw Kubernetes objects, as small as they can be."""

from typing import Any

CREATED = "2026-11-21T01:43:38Z"
SECRET = "hunter2"


def owned_by(kind: str, uid: str = "owner") -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "uid": uid, "controller": True}]}


def raw_pod(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "demo", "name": "app-x", **owned_by("ReplicaSet")},
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "env": [{"name": "PASSWORD", "value": SECRET}],
                    "resources": {"requests": {"cpu": "100m"}},
                }
            ]
        },
        "status": {"phase": "Running", **status},
    }


def status(name: str = "app", **fields: Any) -> dict[str, Any]:
    return {"name": name, "state": {"running": {"startedAt": CREATED}}, "lastState": {}} | fields


def raw_workload(spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {
            "uid": "u",
            "namespace": "demo",
            "name": "app",
            "labels": {"app": "web", "odd": 1},
            "creationTimestamp": CREATED,
            "generation": 3,
        },
        "spec": spec,
        "status": status,
    }
