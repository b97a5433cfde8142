"""Read the readiness and the containers of a pod from its raw status."""

import sys
from collections.abc import Iterator, Mapping

from workloads.kubernetes.containers import container_facts
from workloads.kubernetes.facts import (
    DISRUPTION_TARGET,
    GATES_NOT_READY,
    NODE_LOST,
    RUNNING,
    SCHEDULING_GATED,
    STARTING_REASONS,
    TERMINATED,
    WAITING,
    ContainerFacts,
)
from workloads.kubernetes.raw import (
    JsonObject,
    child,
    children,
    count,
    integer,
    moment,
    reason,
    text,
)
from workloads.kubernetes.resources import is_sidecar


def read_hold(status: JsonObject, conditions: Mapping[str, JsonObject], scheduling: str) -> str:
    """Return the reason why a pod is not (or will not stay) ready although no container fails."""
    if scheduling == SCHEDULING_GATED:
        return SCHEDULING_GATED
    readiness = conditions.get("Ready", {})
    not_ready = text(readiness, "status") in ("False", "Unknown")
    waits_for_gates = reason(readiness) == GATES_NOT_READY
    if not_ready and not waits_for_gates:
        # A kubelet reports a pod as not ready only because of its containers. If all containers are
        # ready, the report comes from the node controller, which has lost the node. An init
        # container is ready once it has succeeded, and a sidecar while its probe succeeds.
        containers = children(status, "containerStatuses")
        steps = children(status, "initContainerStatuses")
        all_ready = bool(containers) and all(c.get("ready") is True for c in containers + steps)
        if all_ready or reason(status) == NODE_LOST:
            return NODE_LOST
    if text(conditions.get(DISRUPTION_TARGET, {}), "status") == "True":
        return DISRUPTION_TARGET
    return GATES_NOT_READY if not_ready and waits_for_gates else ""


def read_scheduling(conditions: Mapping[str, JsonObject]) -> str:
    """Read why a pod has no node; "" if a node is assigned or the scheduler has not tried."""
    scheduled = conditions.get("PodScheduled", {})
    return reason(scheduled) if text(scheduled, "status") == "False" else ""


def read_starting(status: JsonObject) -> str:
    """Read the reason why a container has not started, or "" without a known reason."""
    reasons = {
        reason(child(child(container, "state"), WAITING))
        for key in ("containerStatuses", "initContainerStatuses")
        for container in children(status, key)
    }
    return min(reasons & STARTING_REASONS, default="")


def read_containers(
    spec: JsonObject, status: JsonObject, *, is_lost: bool
) -> Iterator[ContainerFacts]:
    """Yield the containers of a pod. Containers on a lost node are not ready."""
    # Use the image in the spec: the status may contain another name that the node knows.
    images = {
        text(container, "name"): text(container, "image")
        for key in ("containers", "initContainers")
        for container in children(spec, key)
    }
    for container in children(status, "containerStatuses"):
        yield _container(container, images, is_lost=is_lost)
    sidecars = {text(c, "name") for c in children(spec, "initContainers") if is_sidecar(c)}
    for container in children(status, "initContainerStatuses"):
        facts = _container(container, images, is_lost=is_lost)
        succeeded = facts.state == TERMINATED and not facts.failing
        if not succeeded or facts.name in sidecars:
            yield facts


def _container(raw: JsonObject, images: Mapping[str, str], *, is_lost: bool) -> ContainerFacts:
    state, detail = _state(child(raw, "state"))
    last = child(child(raw, "lastState"), TERMINATED)
    name = sys.intern(text(raw, "name"))
    return container_facts(
        name=name,
        state=state,
        reason=reason(detail),
        exit_code=integer(detail, "exitCode") or 0,
        signal=integer(detail, "signal") or 0,
        ready=raw.get("ready") is True and not is_lost,
        restarts=count(raw, "restartCount"),
        last_reason=reason(last),
        last_finished_at=moment(last, "finishedAt"),
        image=images.get(name, ""),
        image_id=text(raw, "imageID"),
    )


def _state(state: JsonObject) -> tuple[str, JsonObject]:
    """Read the only member of a ContainerState. By definition, an empty object means waiting."""
    for name in (RUNNING, TERMINATED):
        if isinstance(state.get(name), dict):
            return name, child(state, name)
    return WAITING, child(state, WAITING)
