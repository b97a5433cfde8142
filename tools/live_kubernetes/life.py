"""Make random changes in a cluster, in proportions that are chosen to find faults."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from typing import Any

from tools.live_kubernetes.api import Api, RefusedError
from tools.live_kubernetes.kubelet import BEHAVIOUR, Kubelets

Object = dict[str, Any]
PATHS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}
BEHAVIOURS = (
    *("ready",) * 8, "crash", "image", "starting", "restarted", "killed", "gates", "disrupted",
    "unschedulable", "gated",
)  # fmt: skip
_MOST_WORKLOADS = 90


class Life:
    """A generator of random changes to workloads, pods and namespaces."""

    def __init__(self, api: Api, kubelets: Kubelets, seed: int) -> None:
        self._api, self._kubelets = api, kubelets
        self._rng = random.Random(seed)
        self._namespaces = ["live-a", "live-b", "live-c"]
        self._made = 0
        self._workloads: dict[tuple[str, str, str], int] = {}
        self.actions = 0

    def begin(self, workloads: int) -> None:
        for namespace in self._namespaces:
            self._make_namespace(namespace)
        for _ in range(workloads):
            self._create()

    def go_on(self, seconds: float, pause: float = 0.15) -> None:
        """Make random changes for ``seconds``."""
        ends = time.monotonic() + seconds
        actions: tuple[Callable[[], None], ...] = (
            *(self._create,) * 4, *(self._scale,) * 5, *(self._roll_out,) * 5, self._pause,
            *(self._delete,) * 3, self._make_again, *(self._turn,) * 12, self._churn_namespace,
        )  # fmt: skip
        while time.monotonic() < ends:
            with contextlib.suppress(RefusedError):  # a conflict, or a deleted object
                self._rng.choice(actions)()
                self.actions += 1
            time.sleep(pause)

    def rest(self, seconds: float) -> None:
        """Wait until the cluster is stable, and then for ``seconds``."""
        quiet, deadline = 0, time.monotonic() + 120
        while quiet < 8 and time.monotonic() < deadline:
            time.sleep(0.5)
            quiet = 0 if self._kubelets.busy else quiet + 1
        time.sleep(seconds)

    def _path(self, kind: str, namespace: str, name: str = "") -> str:
        return f"/apis/apps/v1/namespaces/{namespace}/{PATHS[kind]}" + (f"/{name}" if name else "")

    def _make_namespace(self, name: str) -> None:
        self._api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])

    def _some(self) -> tuple[str, str, str]:
        return self._rng.choice(list(self._workloads))

    def _create(self, place: tuple[str, str, str] | None = None) -> None:
        if place is None:
            if len(self._workloads) >= _MOST_WORKLOADS:
                return self._delete()
            self._made += 1
            kind = self._rng.choices(list(PATHS), (6, 3, 1))[0]
            place = kind, self._rng.choice(self._namespaces), f"w-{self._made}"
        kind, namespace, name = place
        self._api.post(self._path(kind, namespace), self._manifest(kind, name))
        self._workloads[place] = 1
        return None

    def _manifest(self, kind: str, name: str) -> Object:
        labels = {"app": name}
        spec: Object = {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {BEHAVIOUR: self._behaviour()}},
                "spec": {"containers": [self._container(n) for n in self._rng.choice("12")]},
            },
        }
        if kind != "DaemonSet":
            spec["replicas"] = self._rng.randrange(5)
        if kind == "Deployment":
            spec["progressDeadlineSeconds"] = self._rng.choice((8, 600))
        else:
            strategy = self._rng.choice(("OnDelete", "RollingUpdate"))
            spec["updateStrategy"] = {"type": strategy}
        if kind == "StatefulSet":
            spec["serviceName"] = name
            spec["podManagementPolicy"] = self._rng.choice(("Parallel", "OrderedReady"))
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
        }

    def _container(self, name: str) -> Object:
        image = f"registry.example/app:{self._rng.randrange(100)}"
        requests = {"cpu": self._rng.choice(("100m", "0.25", "1")), "memory": "64Mi"}
        limits = self._rng.choice(({}, {"cpu": "2", "memory": "1Gi"}))
        return {
            "name": f"c{name}",
            "image": image,
            "resources": {"requests": requests, "limits": limits},
        }

    def _behaviour(self) -> str:
        return self._rng.choice(BEHAVIOURS)

    def _patch(self, kind: str, namespace: str, name: str, spec: Object) -> None:
        self._api.patch(self._path(kind, namespace, name), {"spec": spec})

    def _scale(self) -> None:
        kind, namespace, name = self._some()
        if kind != "DaemonSet":
            self._patch(kind, namespace, name, {"replicas": self._rng.randrange(6)})

    def _roll_out(self) -> None:
        kind, namespace, name = self._some()
        template: Object = {
            "metadata": {"annotations": {BEHAVIOUR: self._behaviour()}},
            "spec": {"containers": [self._container("1")]},
        }
        self._patch(kind, namespace, name, {"template": template})

    def _pause(self) -> None:
        kind, namespace, name = self._some()
        if kind == "Deployment":
            self._patch(kind, namespace, name, {"paused": self._rng.random() < 0.5})

    def _delete(self) -> None:
        place = self._some()
        del self._workloads[place]
        policy = self._rng.choice(("Background", "Foreground"))
        self._api.delete(self._path(*place), propagationPolicy=policy)

    def _make_again(self) -> None:
        """Delete a workload, and immediately recreate it with the same name."""
        place = self._some()
        self._api.delete(self._path(*place), propagationPolicy="Background")
        del self._workloads[place]
        self._create(place)

    def _turn(self) -> None:
        """Make some pods in a namespace crash or recover, or evict or delete them."""
        pods = self._api.items(f"/api/v1/namespaces/{self._rng.choice(self._namespaces)}/pods")
        for pod in self._rng.sample(pods, min(3, len(pods))):
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            if self._rng.random() < 0.15:
                self._api.delete(path)
            else:
                # Evict single pods only: a controller would replace evicted pods forever.
                behaviour = self._rng.choice((*BEHAVIOURS, "evicted"))
                self._api.patch(path, {"metadata": {"annotations": {BEHAVIOUR: behaviour}}})

    def _churn_namespace(self) -> None:
        """Create a namespace with a workload, or delete a namespace with its contents."""
        extra = [n for n in self._namespaces if n.startswith("live-x")]
        if len(extra) < 3:
            self._made += 1
            name = f"live-x{self._made}"
            self._make_namespace(name)
            self._namespaces.append(name)
            self._create(("Deployment", name, f"w-{self._made}"))
        else:
            removed = extra[0]
            self._namespaces.remove(removed)
            self._api.delete(f"/api/v1/namespaces/{removed}")
            self._workloads = {p: n for p, n in self._workloads.items() if p[1] != removed}
