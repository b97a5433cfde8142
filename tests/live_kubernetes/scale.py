"""How much a large cluster costs: ``python -m tests.live_kubernetes.scale``.

The objects are put into etcd directly, as an API server would have stored them: to create 15,000
Deployments with 150,000 pods would take an hour. The API server and the collector are real.
"""

from __future__ import annotations

import argparse
import base64
import copy
import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import urllib3

from tests.live_kubernetes.build import binaries, cache_directory
from tests.live_kubernetes.plane import ControlPlane, control_plane
from tests.server import ROOT, LiveServer

_BATCH = 400
_NAMESPACES = 100
_MOMENT = "2026-11-20T00:00:00Z"
Object = dict[str, Any]


def main() -> int:
    """Fill a cluster, follow it, and print what that takes."""
    parser = argparse.ArgumentParser(prog="python -m tests.live_kubernetes.scale")
    parser.add_argument("--workloads", type=int, default=15_000)
    parser.add_argument("--pods", type=int, default=150_000)
    options = parser.parse_args()
    with (
        control_plane(binaries(cache_directory()), controllers=False) as plane,
        tempfile.TemporaryDirectory(prefix="infra-live-") as directory,
    ):
        plane.stop("apiserver")
        started = time.monotonic()
        count = fill(plane, options.workloads, options.pods // options.workloads)
        print(f"{count} objects in etcd after {time.monotonic() - started:.0f} s", flush=True)
        started = time.monotonic()
        plane.start_api_server()
        print(f"API server ready after {time.monotonic() - started:.0f} s, "
              f"{megabytes(plane.pid('apiserver'))} MB", flush=True)  # fmt: skip
        service = LiveServer(Path(directory))
        service.prepare()
        try:
            collect(plane, service)
        finally:
            service.close()
    return 0


def fill(plane: ControlPlane, workloads: int, replicas: int) -> int:
    """Put the objects into etcd; return how many."""
    pool = urllib3.PoolManager(retries=False)
    count = 0
    batch: list[Object] = []

    def flush() -> None:
        body = {"success": [{"request_put": put} for put in batch]}
        answer = pool.request("POST", f"http://127.0.0.1:{plane.etcd_port}/v3/kv/txn", json=body)
        assert answer.status == 200, answer.data
        batch.clear()

    for key, value in objects(workloads, replicas):
        batch.append({"key": encoded(key), "value": encoded(json.dumps(value))})
        count += 1
        if len(batch) == _BATCH:
            flush()
    flush()
    return count


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def objects(workloads: int, replicas: int) -> Iterator[tuple[str, Object]]:
    """Yield keys of etcd and what stands there: a Deployment, its ReplicaSet and its pods."""
    for number in range(workloads):
        namespace, name = f"team-{number * _NAMESPACES // workloads:03d}", f"w-{number:06d}"
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
            pod = made("v1", "Pod", namespace, f"{name}-1-{replica:05d}",
                       ("ReplicaSet", f"{name}-1", owner))  # fmt: skip
            yield f"/registry/pods/{namespace}/{pod['metadata']['name']}", {**pod, **_running(name)}


def made(
    version: str, kind: str, namespace: str, name: str, owner: tuple[str, str, str] | None
) -> Object:
    metadata: Object = {
        "name": name, "namespace": namespace, "uid": str(uuid.uuid4()), "generation": 1,
        "creationTimestamp": _MOMENT, "labels": {"app": name},
        # Most of a real object is such.
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


def collect(plane: ControlPlane, service: LiveServer) -> None:
    """Register the cluster, read it once, and follow it through some changes."""
    code = "from workloads.models import Cluster; Cluster.objects.create(name='large')"
    service.manage("shell", "--no-imports", "-c", code)
    kubeconfig = plane.kubeconfig(service.directory / "kubeconfig")
    for options in (("--once",), ("--watch", "--interval", "60")):
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "manage.py", "sync_workloads", "--cluster", "large", "--json",
             "--kubeconfig", str(kubeconfig), *options],
            cwd=ROOT, env=service.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline().decode().strip()
        print(f"{' '.join(options)}: first report after {time.monotonic() - started:.0f} s: {line}")
        print(f"    memory {megabytes(process.pid)} MB, at most {megabytes(process.pid, 'VmHWM')}",
              flush=True)  # fmt: skip
        if "--watch" in options:
            for _ in range(2):
                line = process.stdout.readline().decode().strip()
                print(f"    then {line}: {megabytes(process.pid)} MB, "
                      f"at most {megabytes(process.pid, 'VmHWM')}", flush=True)  # fmt: skip
            process.terminate()
        process.wait(60)


def megabytes(pid: int, what: str = "VmRSS") -> int:
    """Return a process's memory; 0 when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition(f"{what}:")[2].split()[0]) // 1024 if what in status else 0


if __name__ == "__main__":
    sys.exit(main())
