"""What one pod takes of a node, as the scheduler counts it.

Source: `PodRequests` and `PodLimits` of k8s.io/component-helpers/resource (0.36) as the scheduler
calls them, and KEPs 753 (sidecar containers), 688 (overhead), 1287 and 5419 (resizing in place) and
2837 (resources of a whole pod).
"""

from typing import Final

from workloads.kubernetes.facts import PodResources
from workloads.kubernetes.figures import LIMITS, REQUESTS, RESERVED
from workloads.kubernetes.raw import JsonObject, amount, child, children, text

_ALLOCATED: Final = "allocatedResources"
_INFEASIBLE: Final = "Infeasible"


def is_sidecar(init_container: JsonObject) -> bool:
    """Tell an init container that stays for the life of its pod from a step that ends."""
    return text(init_container, "restartPolicy") == "Always"


def pod_resources(spec: JsonObject, status: JsonObject) -> PodResources:
    """Add up what a pod reserves.

    While a pod is resized, the larger of what it is to have and what it has counts.
    """
    pod = _Pod(spec, status)
    return tuple(pod.total(figure.side, figure.resource) for figure in RESERVED)


class _Pod:
    """A pod, and what its node says of its containers by name."""

    def __init__(self, spec: JsonObject, status: JsonObject) -> None:
        self._spec, self._status = spec, status
        self._said = {
            text(said, "name"): said
            for statuses in ("containerStatuses", "initContainerStatuses")
            for said in children(status, statuses)
            if isinstance(said.get("resources"), dict)
        }
        # A resize that this node can never fulfil: what was asked for reserves nothing. Up to
        # Kubernetes 1.32 `status.resize` tells it, since then a condition.
        self._infeasible = text(status, "resize") == _INFEASIBLE or any(
            text(condition, "type") == "PodResizePending"
            and text(condition, "reason") == _INFEASIBLE
            for condition in children(status, "conditions")
        )

    def total(self, side: str, resource: str) -> int:
        # 1. What the pod states as a whole replaces what its containers add up to.
        total = self._of_whole(side, resource)
        if total is None:
            total = self._of_containers(side, resource)
        # 2. Overhead comes on top, but limits nothing that is not limited.
        overhead = amount(child(self._spec, "overhead"), resource) or 0
        return total if side == LIMITS and total == 0 else total + overhead

    def _of_whole(self, side: str, resource: str) -> int | None:
        stated = amount(child(child(self._spec, "resources"), side), resource)
        if stated is None or not isinstance(self._status.get("resources"), dict):
            return stated
        return self._larger(stated, self._status, side, resource)

    def _of_containers(self, side: str, resource: str) -> int:
        """Take the dearest moment of a pod's life: one of its init steps, or running in full."""
        sidecars = 0
        dearest_step = 0
        for container in children(self._spec, "initContainers"):
            if is_sidecar(container):
                sidecars += self._of_container(container, side, resource)
            else:
                step = amount(child(child(container, "resources"), side), resource) or 0
                dearest_step = max(dearest_step, step + sidecars)
        running = sidecars
        for container in children(self._spec, "containers"):
            running += self._of_container(container, side, resource)
        return max(running, dearest_step)

    def _of_container(self, container: JsonObject, side: str, resource: str) -> int:
        stated = amount(child(child(container, "resources"), side), resource)
        said = self._said.get(text(container, "name"))
        return (stated or 0) if said is None else self._larger(stated, said, side, resource)

    def _larger(self, stated: int | None, said: JsonObject, side: str, resource: str) -> int:
        amounts = [] if self._infeasible else [stated]
        amounts.append(amount(child(child(said, "resources"), side), resource))
        if side == REQUESTS:
            amounts.append(amount(child(said, _ALLOCATED), resource))
        return max((found for found in amounts if found is not None), default=0)
