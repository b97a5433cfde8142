"""From raw Kubernetes objects, as lists and watches give them, to the facts that are kept.

An object that cannot be placed (no uid, no name, no owner of ours) reduces to None.
"""

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from workloads.kubernetes.containers import container_facts
from workloads.kubernetes.facts import (
    DISRUPTION_TARGET,
    GATES_NOT_READY,
    MAX_IMAGE,
    RUNNING,
    SCHEDULING_GATED,
    TERMINATED,
    UNSCHEDULABLE,
    WAITING,
    Condition,
    ContainerFacts,
    PodFacts,
    PodKey,
    PodResources,
    TemplateContainer,
    Usage,
    WorkloadFacts,
    WorkloadKind,
)
from workloads.kubernetes.figures import MEASURED
from workloads.kubernetes.raw import (
    JsonObject,
    amount,
    child,
    children,
    count,
    integer,
    moment,
    text,
)
from workloads.kubernetes.resources import is_sidecar, pod_resources

# Pods of Jobs and the like are of no workload; leaving them out here keeps no tally of them.
_POD_OWNERS: Final = ("ReplicaSet", WorkloadKind.STATEFUL_SET, WorkloadKind.DAEMON_SET)
_REPLICASET_OWNERS: Final = (WorkloadKind.DEPLOYMENT,)
# A status can hold any text; a reason is a code. What is longer is cut to fit its column.
_REASON_LENGTH: Final = 128


def reduce_pod(raw: JsonObject) -> PodFacts | None:
    """Reduce a Pod; None when no ReplicaSet, StatefulSet or DaemonSet controls it."""
    metadata, spec, status = child(raw, "metadata"), child(raw, "spec"), child(raw, "status")
    owner_uid = _controller(metadata, _POD_OWNERS)
    if owner_uid is None:
        return None
    scheduling = _scheduling(status)
    active = text(status, "phase") not in {"Succeeded", "Failed"}
    return PodFacts(
        key=PodKey(sys.intern(text(metadata, "namespace")), text(metadata, "name")),
        owner_uid=sys.intern(owner_uid),
        active=active,
        live=active and not metadata.get("deletionTimestamp"),
        unschedulable=scheduling == UNSCHEDULABLE,
        held=_held(status, scheduling),
        containers=_shared_containers(tuple(_container_statuses(spec, status))),
        resources=_shared_resources(pod_resources(spec, status)),
    )


def reduce_replicaset(raw: JsonObject) -> tuple[str, str] | None:
    """Reduce a ReplicaSet to its uid and that of its Deployment; None when it has none."""
    metadata = child(raw, "metadata")
    uid, owner_uid = text(metadata, "uid"), _controller(metadata, _REPLICASET_OWNERS)
    return (sys.intern(uid), sys.intern(owner_uid)) if uid and owner_uid else None


def reduce_pod_metrics(raw: JsonObject) -> tuple[PodKey, Usage] | None:
    """Reduce a PodMetrics to what its containers use together."""
    metadata = child(raw, "metadata")
    key = PodKey(sys.intern(text(metadata, "namespace")), text(metadata, "name"))
    if not all(key):
        return None
    containers = [child(container, "usage") for container in children(raw, "containers")]
    return key, tuple(
        sum(amount(usage, figure.resource) or 0 for usage in containers) for figure in MEASURED
    )


def reduce_workload(raw: JsonObject, kind: WorkloadKind) -> WorkloadFacts | None:
    """Reduce a Deployment, StatefulSet or DaemonSet; a list's items do not say which they are."""
    metadata, spec, status = child(raw, "metadata"), child(raw, "spec"), child(raw, "status")
    uid, namespace, name = (text(metadata, key) for key in ("uid", "namespace", "name"))
    if not (uid and namespace and name):
        return None
    desired, ready, available, updated = _replicas(kind, spec, status)
    update = child(spec, "updateStrategy")
    labels = child(metadata, "labels")
    return WorkloadFacts(
        kind=kind,
        namespace=sys.intern(namespace),
        name=name,
        uid=sys.intern(uid),  # which its pods say, too
        labels={
            sys.intern(key): sys.intern(text(labels, key))
            for key, value in labels.items()
            if isinstance(value, str)
        },
        created_at=moment(metadata, "creationTimestamp"),
        deleting=bool(metadata.get("deletionTimestamp")),
        generation=integer(metadata, "generation") or 0,
        observed_generation=integer(status, "observedGeneration"),
        desired=desired,
        ready=ready,
        available=available,
        updated=updated,
        # Only Deployments tell, from Kubernetes 1.33 on; `replicas` counts none that end.
        replacements_wait=count(status, "terminatingReplicas") > 0
        and count(status, "replicas") < desired,
        paused=spec.get("paused") is True,
        on_delete=text(update, "type") == "OnDelete",
        partition=count(child(update, "rollingUpdate"), "partition"),
        conditions=_shared_conditions(
            tuple(
                (sys.intern(text(condition, "type")), _condition(condition))
                for condition in children(status, "conditions")
            )
        ),
        containers=tuple(_template_containers(child(child(spec, "template"), "spec"))),
    )


# Pods of one workload are mostly alike; whoever keeps their facts, to follow a watch, keeps one
# copy of what is equal, in half the memory.
@lru_cache(maxsize=8192)
def _shared_containers(containers: tuple[ContainerFacts, ...]) -> tuple[ContainerFacts, ...]:
    return containers


# So are the conditions of most workloads.
@lru_cache(maxsize=8192)
def _shared_conditions(named: tuple[tuple[str, Condition], ...]) -> Mapping[str, Condition]:
    return dict(named)


@lru_cache(maxsize=8192)
def _shared_resources(resources: PodResources) -> PodResources:
    return resources


def _controller(metadata: JsonObject, kinds: tuple[str, ...]) -> str | None:
    """Read the uid of the one owner that controls an object, when it is of these kinds."""
    for owner in children(metadata, "ownerReferences"):
        if owner.get("controller") is True:
            return text(owner, "uid") or None if text(owner, "kind") in kinds else None
    return None


def _scheduling(status: JsonObject) -> str:
    """Read why a pod has no node; "" when it has one, or nobody has looked for one yet."""
    for condition in children(status, "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "status") == "False":
            return _reason(condition)
    return ""


def _held(status: JsonObject, scheduling: str) -> str:
    """Read why a pod is not ready, or will not stay so, though none of its containers fails."""
    if scheduling == SCHEDULING_GATED:
        return scheduling
    gates = ""
    for condition in children(status, "conditions"):
        kind, value = text(condition, "type"), text(condition, "status")
        if kind == DISRUPTION_TARGET and value == "True":
            return DISRUPTION_TARGET
        if kind == "Ready" and value == "False" and _reason(condition) == GATES_NOT_READY:
            gates = GATES_NOT_READY
    return gates


def _replicas(
    kind: WorkloadKind, spec: JsonObject, status: JsonObject
) -> tuple[int, int, int, int]:
    """Read desired, ready, available and updated."""
    if kind is WorkloadKind.DAEMON_SET:
        return (
            count(status, "desiredNumberScheduled"),
            count(status, "numberReady"),
            count(status, "numberAvailable"),
            count(status, "updatedNumberScheduled"),
        )
    ready = count(status, "readyReplicas")
    # StatefulSets have told what is available only since Kubernetes 1.22.
    without = ready if kind is WorkloadKind.STATEFUL_SET else 0
    return (
        count(spec, "replicas", default=1),
        ready,
        count(status, "availableReplicas", default=without),
        count(status, "updatedReplicas"),
    )


def _template_containers(spec: JsonObject) -> Iterator[TemplateContainer]:
    """Read the containers that stay for the life of a pod: sidecars too, after the others."""
    for container in children(spec, "containers"):
        yield _template_container(container)
    for container in children(spec, "initContainers"):
        if is_sidecar(container):
            yield _template_container(container)


def _condition(raw: JsonObject) -> Condition:
    return Condition(sys.intern(text(raw, "status")), _reason(raw))


def _template_container(raw: JsonObject) -> TemplateContainer:
    return TemplateContainer(
        sys.intern(text(raw, "name")), sys.intern(text(raw, "image")[:MAX_IMAGE])
    )


def _container_statuses(spec: JsonObject, status: JsonObject) -> Iterator[ContainerFacts]:
    # As the pod asks for them: what a status calls an image is one of the names that a node knows.
    images = {
        text(container, "name"): text(container, "image")
        for key in ("containers", "initContainers")
        for container in children(spec, key)
    }
    for container in children(status, "containerStatuses"):
        yield _container(container, images)
    sidecars = {text(c, "name") for c in children(spec, "initContainers") if is_sidecar(c)}
    for container in children(status, "initContainerStatuses"):
        facts = _container(container, images)
        ended_well = facts.state == TERMINATED and not facts.failing
        if not ended_well or facts.name in sidecars:
            yield facts


def _container(raw: JsonObject, images: Mapping[str, str]) -> ContainerFacts:
    state, detail = _state(child(raw, "state"))
    last = child(child(raw, "lastState"), TERMINATED)
    name = sys.intern(text(raw, "name"))
    return container_facts(
        name=name,
        state=state,
        reason=_reason(detail),
        exit_code=integer(detail, "exitCode") or 0,
        signal=integer(detail, "signal") or 0,
        ready=raw.get("ready") is True,
        restarts=count(raw, "restartCount"),
        last_reason=_reason(last),
        last_exit_code=integer(last, "exitCode") or 0,
        last_finished_at=moment(last, "finishedAt"),
        image=images.get(name, ""),
        image_id=text(raw, "imageID"),
    )


def _state(state: JsonObject) -> tuple[str, JsonObject]:
    """Read a ContainerState: its only member. By its definition, none means waiting."""
    for name in (RUNNING, TERMINATED):
        if isinstance(state.get(name), dict):
            return name, child(state, name)
    return WAITING, child(state, WAITING)


def _reason(parent: JsonObject) -> str:
    return sys.intern(text(parent, "reason")[:_REASON_LENGTH])
