"""Simulated kubelets and a scheduler, which assign artificial nodes and a status to pods.

The annotation `live/behaviour`, which the test changes, determines the status of a pod.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
from typing import Any

from tools.live_kubernetes.api import Api

NODES = ("node-a", "node-b", "node-c")
BEHAVIOUR = "live/behaviour"
Object = dict[str, Any]


def now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelets(threading.Thread):
    """A thread that checks all pods twice per second, and patches pods with an old status."""

    def __init__(self, api: Api) -> None:
        super().__init__(name="kubelets", daemon=True)
        self._api = api
        self._stopping = threading.Event()
        self._next_node = 0
        #: The number of pods patched in the last round.
        self.busy = 0

    def make_nodes(self) -> None:
        self._api.apply(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in NODES
        )

    def run(self) -> None:
        while not self._stopping.wait(0.5):
            with contextlib.suppress(OSError, ValueError):
                self.busy = sum(self._tend(pod) for pod in self._api.items("/api/v1/pods"))

    def stop(self) -> None:
        self._stopping.set()
        self.join(30)

    def _tend(self, pod: Object) -> bool:
        metadata, status = pod["metadata"], pod.get("status", {})
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        behaviour = metadata.get("annotations", {}).get(BEHAVIOUR, "ready")
        with contextlib.suppress(OSError):  # the pod may have been deleted
            if metadata.get("deletionTimestamp"):
                self._api.delete(path, gracePeriodSeconds=0)
            elif status.get("phase") in ("Failed", "Succeeded"):
                return False
            elif behaviour in ("unschedulable", "gated"):
                return self._patch(path, pod, waiting_for_a_node(behaviour), behaviour)
            elif not pod["spec"].get("nodeName"):
                self._bind(path, pod)
            else:
                return self._patch(path, pod, run(pod, behaviour), behaviour)
            return True
        return True

    def _bind(self, path: str, pod: Object) -> None:
        node = _wanted_node(pod)
        if not node:
            self._next_node += 1
            node = NODES[self._next_node % len(NODES)]
        self._api.post(
            f"{path}/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": pod["metadata"]["name"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            },
        )

    def _patch(self, path: str, pod: Object, status: Object, behaviour: str) -> bool:
        """Patch the status unless it is current. The message of the status names the behaviour."""
        if pod.get("status", {}).get("message") == behaviour:
            return False
        text = {**status, "message": behaviour}
        # A merge patch replaces complete lists.
        self._api.patch(f"{path}/status", {"status": text})
        return True


def _wanted_node(pod: Object) -> str:
    """Return the node that the DaemonSet controller has chosen."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.get("nodeSelectorTerms", []):
        for field in term.get("matchFields", []):
            if field["key"] == "metadata.name":
                return str(field["values"][0])
    return ""


def waiting_for_a_node(behaviour: str) -> Object:
    reason = "Unschedulable" if behaviour == "unschedulable" else "SchedulingGated"
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    return {"phase": "Pending", "conditions": [condition]}


def run(pod: Object, behaviour: str) -> Object:
    """Return the status of a pod that has a node, according to its behaviour."""
    if behaviour == "evicted":
        return {"phase": "Failed", "reason": "Evicted"}
    ready = behaviour in ("ready", "restarted", "killed")
    moment = now()
    statuses = [
        _container(container["name"], container["image"], behaviour, moment, ready=ready)
        for container in pod["spec"]["containers"]
    ]
    reason = "ReadinessGatesNotReady" if behaviour == "gates" else "ContainersNotReady"
    conditions: list[Object] = [
        {"type": "PodScheduled", "status": "True"},
        {
            "type": "Ready",
            "status": str(ready),
            "lastTransitionTime": moment,
            **({} if ready else {"reason": reason}),
        },
    ]
    if behaviour == "disrupted":
        conditions.append({"type": "DisruptionTarget", "status": "True"})
    phase = "Pending" if behaviour in ("image", "starting") else "Running"
    return {"phase": phase, "conditions": conditions, "containerStatuses": statuses}


def _container(name: str, image: str, behaviour: str, moment: str, *, ready: bool) -> Object:
    state: Object = {"running": {"startedAt": moment}}
    last: Object = {}
    restarts = 0
    ended = {"exitCode": 1, "reason": "Error", "finishedAt": moment, "startedAt": moment}
    if behaviour == "crash":
        state, last = {"waiting": {"reason": "CrashLoopBackOff"}}, {"terminated": ended}
        restarts = 3
    elif behaviour == "image":
        state = {"waiting": {"reason": "ImagePullBackOff"}}
    elif behaviour == "starting":
        state = {"waiting": {"reason": "ContainerCreating"}}
    elif behaviour == "restarted":
        last, restarts = {"terminated": ended}, 1
    elif behaviour == "killed":
        last = {"terminated": {**ended, "exitCode": 137, "reason": "OOMKilled"}}
        restarts = 2
    return {
        "name": name,
        "image": image,
        "imageID": "",
        "ready": ready or behaviour in ("gates", "disrupted"),
        "restartCount": restarts,
        "state": state,
        "lastState": last,
    }
