"""What one pod takes of a node, as the scheduler counts it.

Source: `PodRequests` and `PodLimits` of k8s.io/component-helpers/resource, and KEPs 753 (sidecar
containers), 688 (overhead) and 2837 (resources of a whole pod).
"""

from typing import Final

from workloads.kubernetes.facts import PodResources
from workloads.kubernetes.raw import JsonObject, amount, child, children, text

REQUESTS: Final = "requests"
LIMITS: Final = "limits"


def is_sidecar(init_container: JsonObject) -> bool:
    """Tell an init container that stays for the life of its pod from a step that ends."""
    return text(init_container, "restartPolicy") == "Always"


def pod_resources(spec: JsonObject) -> PodResources:
    """Add up a pod's `spec`, in nanos of cores and of bytes."""
    return PodResources(
        cpu_requests=_effective(spec, REQUESTS, "cpu"),
        memory_requests=_effective(spec, REQUESTS, "memory"),
        cpu_limits=_effective(spec, LIMITS, "cpu"),
        memory_limits=_effective(spec, LIMITS, "memory"),
    )


def _effective(spec: JsonObject, side: str, resource: str) -> int:
    # 1. What the pod states as a whole replaces what its containers add up to.
    total = amount(child(child(spec, "resources"), side), resource)
    if total is None:
        total = _of_containers(spec, side, resource)
    # 2. Overhead comes on top, but limits nothing that is not limited.
    overhead = amount(child(spec, "overhead"), resource) or 0
    return total if side == LIMITS and total == 0 else total + overhead


def _of_containers(spec: JsonObject, side: str, resource: str) -> int:
    """Take the dearest moment of a pod's life: one of its init steps, or running in full."""
    sidecars = 0
    dearest_step = 0
    for container in children(spec, "initContainers"):
        own = amount(child(child(container, "resources"), side), resource) or 0
        if is_sidecar(container):
            sidecars += own
        else:
            dearest_step = max(dearest_step, own + sidecars)
    running = sidecars
    for container in children(spec, "containers"):
        running += amount(child(child(container, "resources"), side), resource) or 0
    return max(running, dearest_step)
