"""A simulated kubelet for the agent's pods. Each pod is a process with the mounts of the pod.

The command of the image runs with the arguments stored in the API server. The API server issues
real tokens, which are bound to the pod and renewed when the kubelet would renew them.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.deployment.test_container import arguments
from tests.support.installation import ROOT
from tools.live_kubernetes.access import Account
from tools.live_kubernetes.plane import ControlPlane

Object = dict[str, Any]

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
# Tokens are renewed after this share of their lifetime, as by the kubelet.
_RENEWED_AFTER = 0.8
# Runs in a user and mount namespace, which allows mounting without root. $@ is the command.
_ENTER = 'mount -t tmpfs tmpfs /run\n{mounts}\nexec "$@"'


class AgentPods(threading.Thread):
    """A thread that runs every pod in the agent's namespace, and stops deleted pods."""

    def __init__(self, plane: ControlPlane, account: Account, log: Path) -> None:
        super().__init__(name="agent-pods", daemon=True)
        self._plane, self._account, self._log = plane, account, log
        self._api = plane.api()
        self._stopping = threading.Event()
        self._running: dict[str, _Pod] = {}
        #: The exit statuses of the stopped processes.
        self.ended: list[int] = []

    @property
    def names(self) -> list[str]:
        return [pod.name for pod in self._running.values()]

    def run(self) -> None:
        while not self._stopping.wait(0.5):
            # The processes continue while the API server is stopped.
            with contextlib.suppress(OSError, ValueError):
                self._tend()

    def poll(self) -> int | None:
        """Return the exit status of a process that has ended by itself, or None."""
        found = (pod.process.poll() for pod in self._running.values())
        return next((status for status in found if status is not None), None)

    def send_signal(self, number: int, /) -> None:
        if number == signal.SIGTERM:
            self._stopping.set()
            self.join(60)
        for pod in self._running.values():
            pod.process.send_signal(number)

    def wait(self, timeout: float | None = None) -> int:
        return max((pod.process.wait(timeout) for pod in self._running.values()), default=0)

    def _tend(self) -> None:
        pods = self._api.items(f"/api/v1/namespaces/{self._account.namespace}/pods")
        there = {
            pod["metadata"]["uid"]: pod
            for pod in pods
            if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        }
        for uid in self._running.keys() - there.keys():
            process = self._running.pop(uid).process
            process.send_signal(signal.SIGTERM)
            self.ended.append(process.wait(60))
        for uid in there.keys() - self._running.keys():
            self._running[uid] = _Pod(self._plane, self._account, there[uid], self._log)
        for pod in self._running.values():
            pod.renew_tokens()


class _Pod:
    """A pod. Its volumes are directories, and its container is a process."""

    def __init__(self, plane: ControlPlane, account: Account, pod: Object, log: Path) -> None:
        self.name: str = pod["metadata"]["name"]
        self._api, self._account, self._pod = plane.api(), account, pod
        self._directory = plane.directory / pod["metadata"]["uid"]
        self._renewals: dict[Path, float] = {}
        (container,) = pod["spec"]["containers"]
        mounts = {self._directory / "account": _ACCOUNT}
        mounts |= {self._directory / m["name"]: m["mountPath"] for m in container["volumeMounts"]}
        for source in mounts:
            source.mkdir(parents=True)
        (self._directory / "account/ca.crt").write_bytes(plane.certificate.read_bytes())
        self.renew_tokens()
        (entry,) = arguments("ENTRYPOINT", -2)
        _python, *command = json.loads(entry)
        enter = _ENTER.format(mounts="\n".join(_mounted(*mount) for mount in mounts.items()))
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [
                    *("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", enter, "sh"),
                    *(sys.executable, *command, *container["args"]),
                ],
                cwd=ROOT,
                env={
                    "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
                    "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                    "KUBERNETES_SERVICE_PORT": str(plane.port),
                },
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def renew_tokens(self) -> None:
        """Write new tokens if they are due."""
        self._renew(self._directory / "account/token", {"expirationSeconds": 3607})
        for volume in self._pod["spec"]["volumes"]:
            for source in volume.get("projected", {}).get("sources", []):
                wanted = source["serviceAccountToken"]
                spec = {
                    "audiences": [wanted["audience"]],
                    "expirationSeconds": wanted["expirationSeconds"],
                }
                self._renew(self._directory / volume["name"] / wanted["path"], spec)

    def _renew(self, path: Path, spec: Object) -> None:
        if time.monotonic() < self._renewals.get(path, 0):
            return
        metadata = self._pod["metadata"]
        bound = {
            "kind": "Pod",
            "apiVersion": "v1",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        new = path.with_suffix(".new")
        new.write_text(self._account.token(self._api, boundObjectRef=bound, **spec))
        new.replace(path)
        self._renewals[path] = time.monotonic() + spec["expirationSeconds"] * _RENEWED_AFTER


def _mounted(source: Path, target: str) -> str:
    target = shlex.quote(target)
    return f"mkdir -p {target}; mount --bind {shlex.quote(str(source))} {target}"
