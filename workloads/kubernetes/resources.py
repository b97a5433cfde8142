"""The resources that a pod reserves on a node, as the scheduler computes them.

Sources: `PodRequests` and `PodLimits` of k8s.io/component-helpers/resource 0.36, as the scheduler
calls them; kubernetes#140047 for Kubernetes 1.37 and later; KEPs 753 (sidecar containers), 688
(overhead), 1287 and 5419 (in-place resize) and 2837 (pod-level resources).
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from workloads.kubernetes.facts import PodResources
from workloads.kubernetes.figures import LIMITS, REQUESTS, RESERVED
from workloads.kubernetes.raw import JsonObject, amount, child, children, conditions, text

_ALLOCATED: Final = "allocatedResources"
#: The node can perform the resize later (Deferred) or never (Infeasible).
DEFERRED: Final = "Deferred"
INFEASIBLE: Final = "Infeasible"


class ServerVersion(NamedTuple):
    """The version of an API server, which selects the scheduler's formula."""

    major: int = 0
    minor: int = 0


#: The version of a server that reports no version.
UNKNOWN_VERSION: Final = ServerVersion()
# From this version on, the scheduler uses the largest sum over the containers of a resized pod.
# Older versions use the sum of the largest amount of each container.
_LARGEST_SUM: Final = ServerVersion(1, 37)

#: Returns the amounts of a container, by resource.
_Amounts: TypeAlias = Callable[[JsonObject], JsonObject]


def is_sidecar(init_container: JsonObject) -> bool:
    """Return whether an init container runs for the life of its pod."""
    return text(init_container, "restartPolicy") == "Always"


def resize_pending(status: JsonObject, conditions_of: Mapping[str, JsonObject]) -> str:
    """Read the reason why a node does not resize a pod: Deferred, Infeasible or "".

    The reason is in `status.resize` up to Kubernetes 1.32, and in a condition in later versions.
    """
    found = conditions_of.get("PodResizePending")
    why = text(status, "resize") if found is None else text(found, "reason")
    return why if why in (DEFERRED, INFEASIBLE) else ""


def pod_resources(
    spec: JsonObject, status: JsonObject, server: ServerVersion = UNKNOWN_VERSION
) -> PodResources:
    """Return the resources that a pod reserves.

    While a pod is resized, the larger of the desired and the current amount counts.
    """
    pod = _Pod(spec, status, by_largest_sum=server >= _LARGEST_SUM)
    return tuple(pod.total(figure.side, figure.resource) for figure in RESERVED)


class _Pod:
    """A pod, and the status of its containers by name."""

    def __init__(self, spec: JsonObject, status: JsonObject, *, by_largest_sum: bool) -> None:
        self._spec, self._status = spec, status
        self._by_largest_sum = by_largest_sum
        self._statuses = {
            text(container_status, "name"): container_status
            for statuses in ("containerStatuses", "initContainerStatuses")
            for container_status in children(status, statuses)
        }
        # If the node can never perform the resize, the desired amount does not count.
        self._infeasible = resize_pending(status, conditions(status)) == INFEASIBLE

    def total(self, side: str, resource: str) -> int:
        # 1. Amounts of the whole pod replace the sum over its containers.
        total = self._of_whole(side, resource)
        if total is None:
            total = self._of_containers(side, resource)
        # 2. The overhead is added, except to the limits of a pod without limits.
        overhead = amount(child(self._spec, "overhead"), resource) or 0
        return total if side == LIMITS and total == 0 else total + overhead

    def _of_whole(self, side: str, resource: str) -> int | None:
        stated = amount(child(child(self._spec, "resources"), side), resource)
        if stated is None or not isinstance(self._status.get("resources"), dict):
            return stated
        return self._larger(stated, self._status, side, resource)

    def _of_containers(self, side: str, resource: str) -> int:
        if not self._by_largest_sum:
            return self._add_up(
                lambda container: self._of_container(container, side, resource),
                lambda step: amount(_stated(step, side), resource) or 0,
            )
        # A node resizes either all containers of a pod or none.
        sums: list[_Amounts] = [lambda container: self._actual(container, side)]
        if side == REQUESTS:
            sums.append(self._allocated)
        if not self._infeasible:
            sums.append(lambda container: _stated(container, side))
        return max(self._sum(amounts, resource) for amounts in sums)

    def _sum(self, amounts: _Amounts, resource: str) -> int:
        def of_container(container: JsonObject) -> int:
            return amount(amounts(container), resource) or 0

        return self._add_up(of_container, of_container)

    def _add_up(
        self, of_container: Callable[[JsonObject], int], of_step: Callable[[JsonObject], int]
    ) -> int:
        """Return the larger of the most expensive init step and the running containers."""
        sidecars = 0
        dearest_step = 0
        for container in children(self._spec, "initContainers"):
            if is_sidecar(container):
                sidecars += of_container(container)
            else:
                dearest_step = max(dearest_step, of_step(container) + sidecars)
        running = sidecars + sum(map(of_container, children(self._spec, "containers")))
        return max(running, dearest_step)

    def _allocated(self, container: JsonObject) -> JsonObject:
        container_status = self._statuses.get(text(container, "name"), {})
        if isinstance(container_status.get(_ALLOCATED), dict):
            return child(container_status, _ALLOCATED)
        return {} if self._infeasible else _stated(container, REQUESTS)

    def _actual(self, container: JsonObject, side: str) -> JsonObject:
        container_status = child(self._statuses.get(text(container, "name"), {}), "resources")
        if isinstance(container_status.get(side), dict):
            return child(container_status, side)
        if side == REQUESTS:
            return self._allocated(container)
        return {} if self._infeasible else _stated(container, side)

    def _of_container(self, container: JsonObject, side: str, resource: str) -> int:
        stated = amount(_stated(container, side), resource)
        container_status = self._statuses.get(text(container, "name"), {})
        if not isinstance(container_status.get("resources"), dict):
            return stated or 0
        return self._larger(stated, container_status, side, resource)

    def _larger(
        self, stated: int | None, container_status: JsonObject, side: str, resource: str
    ) -> int:
        amounts = [] if self._infeasible else [stated]
        amounts.append(amount(child(child(container_status, "resources"), side), resource))
        if side == REQUESTS:
            amounts.append(amount(child(container_status, _ALLOCATED), resource))
        return max((found for found in amounts if found is not None), default=0)


def _stated(container: JsonObject, side: str) -> JsonObject:
    return child(child(container, "resources"), side)
