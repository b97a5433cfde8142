"""A simulated kubelet for the pods of the chart. Each container is a process.

The process has the command, settings, Secrets and volumes of the container, on a read-only file
system. Probes and hooks run as declared. The pod with the address 10.244.0.7 listens on
127.244.0.7.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from tests.deployment.test_container import arguments
from tests.support.installation import ROOT
from tools.live_kubernetes.api import RefusedError
from tools.live_kubernetes.kubelet import NODES, now
from tools.live_kubernetes.plane import ControlPlane
from tools.live_kubernetes.pod_probes import Probe

Object = dict[str, Any]

# Runs in a user and mount namespace, which allows mounting without root. $@ is the command.
_ENTER = '{mounts}\nmount -o remount,bind,ro /\nexec "$@"'


def loopback(address: str) -> str:
    """Return the loopback address of a pod. Kubernetes rejects loopback endpoints."""
    return f"127.{address.partition('.')[2]}"


class ChartPods(threading.Thread):
    """A thread that runs the pods in a namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        super().__init__(name="chart-pods", daemon=True)
        self._plane, self._api = plane, plane.api()
        self.path = f"/api/v1/namespaces/{namespace}"
        self._addresses = itertools.count(2)
        self._stopping = threading.Event()
        self._pods: dict[str, Pod] = {}

    @property
    def pods(self) -> list[Pod]:
        """Return all pods that have been started."""
        return list(self._pods.values())

    def run(self) -> None:
        while not self._stopping.wait(0.2):
            with contextlib.suppress(OSError, ValueError):
                for pod in self._api.items(f"{self.path}/pods"):
                    self._tend(pod)

    def stop(self) -> None:
        """Stop all pods."""
        self._stopping.set()
        self.join(30)
        for pod in self.pods:
            pod.leave()
        for pod in self.pods:
            pod.join(90)

    def _tend(self, pod: Object) -> None:
        metadata = pod["metadata"]
        uid = metadata["uid"]
        if uid not in self._pods:
            number = next(self._addresses)
            target = {"apiVersion": "v1", "kind": "Node", "name": NODES[number % len(NODES)]}
            self._api.post(
                f"{self.path}/pods/{metadata['name']}/binding",
                {"metadata": {"name": metadata["name"]}, "target": target},
            )
            self._pods[uid] = Pod(self._plane, self.path, pod, f"10.244.0.{number}")
            self._pods[uid].start()
        if metadata.get("deletionTimestamp"):
            self._pods[uid].leave()


class Pod(threading.Thread):
    """A thread that runs the process of a pod with a single container."""

    def __init__(self, plane: ControlPlane, namespace: str, pod: Object, address: str) -> None:
        super().__init__(name=pod["metadata"]["name"], daemon=True)
        self._api, self._namespace, self.address = plane.api(), namespace, address
        self._path = f"{namespace}/pods/{self.name}"
        self.component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        self.spec: Object = pod["spec"]
        (self.container,) = self.spec["containers"]
        self._directory = plane.directory / pod["metadata"]["uid"]
        self.log = plane.directory / f"{self.name}.log"
        self._leaving = threading.Event()
        self._began = now()
        #: The failures after which a kubelet would restart or kill the container.
        self.faults: list[str] = []
        self.exit_status: int | None = None

    def leave(self) -> None:
        self._leaving.set()

    def run(self) -> None:
        process = self._start_container()
        if process is None:
            return
        probes = {
            name: Probe(self.container, name, loopback(self.address), self.execute)
            for name in ("startup", "readiness", "liveness")
        }
        ready = False
        self._report("Running", ready=ready)
        while not self._leaving.wait(0.1) and process.poll() is None:
            started = probes["startup"].passed()
            if probes["startup"].is_exhausted or (started and not probes["liveness"].passed()):
                self.faults.append("would be restarted")
                break
            if not started:
                continue
            if probes["readiness"].passed() != ready:
                ready = not ready
                self._report("Running", ready=ready)
        if process.poll() is None:
            self._terminate(process)
        self.exit_status = process.returncode
        if self._leaving.is_set():
            with contextlib.suppress(OSError):
                self._api.delete(self._path, gracePeriodSeconds=0)
        else:
            self._report("Failed" if process.returncode else "Succeeded", ready=False)

    def _start_container(self) -> subprocess.Popen[bytes] | None:
        """Start the container when its Secrets exist."""
        while not self._leaving.is_set():
            with contextlib.suppress(RefusedError):
                return self.execute(self.command())
            self._leaving.wait(1)
        self._api.delete(self._path, gracePeriodSeconds=0)
        return None

    def command(self) -> list[str]:
        """Return the command of the container, or else the command of the image."""
        given: list[str] = self.container.get("command") or json.loads(arguments("CMD")[0])
        return given

    def execute(
        self, command: list[str], stdout: int | None = None, stdin: IO[bytes] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a command in the container, like `kubectl exec`."""
        mounted = self.container["volumeMounts"]
        volumes = [(self._directory / m["name"], m["mountPath"]) for m in mounted]
        for source, _ in volumes:
            source.mkdir(parents=True, exist_ok=True)
        mounts = "mount -t tmpfs tmpfs /run\n" + "\n".join(_mounted(*each) for each in volumes)
        enter = _ENTER.format(mounts=mounts)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [
                    *("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", enter, "sh"),
                    *command,
                ],
                cwd=ROOT,
                env=self.environment(),
                stdin=stdin or subprocess.DEVNULL,
                stdout=stdout or log,
                stderr=subprocess.STDOUT,
            )

    def environment(self) -> dict[str, str]:
        """Return the settings of the image, overridden by the Secrets, then by the container."""
        python = Path(sys.executable).parent
        settings = {"PATH": f"{python}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
        for source in self.container["envFrom"]:
            settings |= self._secret(source["secretRef"]["name"])
        for entry in self.container["env"]:
            key = entry.get("valueFrom", {}).get("secretKeyRef")
            settings[entry["name"]] = (
                self._secret(key["name"])[key["key"]] if key else entry["value"]
            )
        return {**settings, "BIND": settings["BIND"].replace("0.0.0.0", loopback(self.address))}

    def _secret(self, name: str) -> dict[str, str]:
        data = self._api.get(f"{self._namespace}/secrets/{name}")["data"]
        return {key: base64.b64decode(value).decode() for key, value in data.items()}

    def _terminate(self, process: subprocess.Popen[bytes]) -> None:
        """Run preStop, send SIGTERM, and kill the process after the grace period."""
        deadline = time.monotonic() + self.spec["terminationGracePeriodSeconds"]
        hook = self.container.get("lifecycle", {}).get("preStop")
        if hook:
            self.execute(hook["exec"]["command"]).wait(deadline - time.monotonic())
        process.terminate()
        try:
            process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            self.faults.append("was killed after its grace period")
            process.kill()
            process.wait()

    def _report(self, phase: str, *, ready: bool) -> None:
        moment = now()
        conditions = [
            {
                "type": name,
                "status": str(ready or name == "PodScheduled"),
                "lastTransitionTime": moment,
            }
            for name in ("PodScheduled", "ContainersReady", "Ready")
        ]
        status = {
            "name": self.container["name"], "image": self.container["image"], "imageID": "",
            "ready": ready, "restartCount": 0, "state": {"running": {"startedAt": self._began}},
        }  # fmt: skip
        shown = {
            "phase": phase, "podIP": self.address, "podIPs": [{"ip": self.address}],
            "conditions": conditions, "containerStatuses": [status], "startTime": self._began,
        }  # fmt: skip
        with contextlib.suppress(OSError):  # the pod may have been deleted
            self._api.patch(f"{self._path}/status", {"status": shown})


def _mounted(source: Path, target: str) -> str:
    target = shlex.quote(target)
    return f"mkdir -p {target}; mount --bind {shlex.quote(str(source))} {target}"


def faults(pods: Iterable[Pod]) -> list[str]:
    """Return a message for each failure of a container."""
    found = [f"{pod.name}: {fault}" for pod in pods for fault in pod.faults]
    return found + [
        f"{pod.name}: exited with {pod.exit_status}"
        for pod in pods
        if pod.exit_status not in (None, 0)
    ]
