"""Reduce raw Kubernetes objects, from lists and watches, to facts.

An object without a uid, a name or a known owner reduces to None. If the reduction of an object
raises an exception, its name is logged, and the other objects are still reduced.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

import structlog

from workloads.kubernetes.facts import (
    MAX_IMAGE,
    MAX_NAME,
    MAX_NAMESPACE,
    MAX_UID,
    NODE_LOST,
    UNSCHEDULABLE,
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
from workloads.kubernetes.pod_status import (
    read_containers,
    read_hold,
    read_scheduling,
    read_starting,
)
from workloads.kubernetes.raw import (
    INT32_MAX,
    JsonObject,
    amount,
    child,
    children,
    conditions,
    controller_uid,
    count,
    integer,
    moment,
    reason,
    text,
    without_nul,
)
from workloads.kubernetes.resources import (
    UNKNOWN_VERSION,
    ServerVersion,
    is_sidecar,
    pod_resources,
    resize_pending,
)

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger("workloads.kubernetes")

# Pods with other owners, such as Jobs, do not belong to a workload and need no tally.
_POD_OWNERS: Final = ("ReplicaSet", WorkloadKind.STATEFUL_SET, WorkloadKind.DAEMON_SET)
_REPLICASET_OWNERS: Final = (WorkloadKind.DEPLOYMENT,)


def _logged(
    reduce: Callable[Concatenate[JsonObject, P], T | None],
) -> Callable[Concatenate[JsonObject, P], T | None]:
    """Wrap a function to return None for an object that it cannot reduce, and log the reason."""

    @wraps(reduce)
    def reduced(raw: JsonObject, /, *args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return reduce(raw, *args, **kwargs)
        except Exception:
            metadata = child(raw, "metadata")
            log.exception(
                "object_unreadable",
                namespace=text(metadata, "namespace")[:MAX_NAMESPACE],
                name=text(metadata, "name")[:MAX_NAME],
            )
            return None

    return reduced


@_logged
def reduce_pod(raw: JsonObject, server: ServerVersion = UNKNOWN_VERSION) -> PodFacts | None:
    """Reduce a Pod; return None unless a ReplicaSet, StatefulSet or DaemonSet controls it."""
    metadata, spec, status = child(raw, "metadata"), child(raw, "spec"), child(raw, "status")
    owner_uid = controller_uid(metadata, _POD_OWNERS)
    if owner_uid is None:
        return None
    phase, conditions_of = text(status, "phase"), conditions(status)
    active = phase not in {"Succeeded", "Failed"}
    live = active and not metadata.get("deletionTimestamp")
    readiness = conditions_of.get("Ready", {})
    ready = live and text(readiness, "status") == "True"
    scheduling = read_scheduling(conditions_of)
    held = read_hold(status, conditions_of, scheduling)
    if ready:
        since = None
    elif live or phase == "Failed":
        moments = moment(metadata, "creationTimestamp"), moment(readiness, "lastTransitionTime")
        # A kubelet's clock may be slow. A pod cannot be unready for longer than it exists.
        since = max(filter(None, moments), default=None)
    else:
        since = moment(metadata, "deletionTimestamp")
    resize = resize_pending(status, conditions_of)
    return PodFacts(
        key=PodKey(sys.intern(text(metadata, "namespace")), text(metadata, "name")),
        owner_uid=sys.intern(owner_uid),
        active=active,
        live=live,
        ready=ready,
        unschedulable=scheduling == UNSCHEDULABLE,
        held=held,
        starting="" if ready else read_starting(status),
        failed=reason(status) if phase == "Failed" else "",
        resize=f"Resize{resize}" if resize else "",
        since=since,
        containers=_shared_containers(
            tuple(read_containers(spec, status, is_lost=held == NODE_LOST))
        ),
        resources=_shared_resources(pod_resources(spec, status, server)),
    )


@_logged
def reduce_replicaset(raw: JsonObject) -> tuple[str, str] | None:
    """Reduce a ReplicaSet to its uid and its Deployment's uid; None without a Deployment."""
    metadata = child(raw, "metadata")
    uid, owner_uid = text(metadata, "uid"), controller_uid(metadata, _REPLICASET_OWNERS)
    return (sys.intern(uid), sys.intern(owner_uid)) if uid and owner_uid else None


@_logged
def reduce_pod_metrics(raw: JsonObject) -> tuple[PodKey, Usage] | None:
    """Reduce a PodMetrics object to the sums over its containers."""
    metadata = child(raw, "metadata")
    key = PodKey(sys.intern(text(metadata, "namespace")), text(metadata, "name"))
    if not all(key):
        return None
    containers = [child(container, "usage") for container in children(raw, "containers")]
    return key, tuple(
        sum(amount(usage, figure.resource) or 0 for usage in containers) for figure in MEASURED
    )


def reduce_workload(raw: JsonObject, kind: WorkloadKind) -> WorkloadFacts | None:
    """Reduce a Deployment, StatefulSet or DaemonSet. `kind` is missing in the items of a list.

    If the object cannot be reduced, return its identity, so that its row is not deleted.
    """
    metadata = child(raw, "metadata")
    uid, namespace, name = (text(metadata, key) for key in ("uid", "namespace", "name"))
    limits = (uid, MAX_UID), (namespace, MAX_NAMESPACE), (name, MAX_NAME)
    if not all(0 < len(value) <= most for value, most in limits):
        return None
    facts = _workload_facts(raw, kind, uid, namespace, name)
    return facts or WorkloadFacts(kind, namespace, name, uid, is_readable=False)


@_logged
def _workload_facts(
    raw: JsonObject, kind: WorkloadKind, uid: str, namespace: str, name: str
) -> WorkloadFacts | None:
    metadata, spec, status = child(raw, "metadata"), child(raw, "spec"), child(raw, "status")
    desired, ready, available, updated = _replicas(kind, spec, status)
    update, labels = child(spec, "updateStrategy"), child(metadata, "labels")
    conditions_of = conditions(status)
    return WorkloadFacts(
        kind=kind,
        namespace=sys.intern(namespace),
        name=name,
        uid=sys.intern(uid),  # shared with its pods
        labels={
            sys.intern(without_nul(key)): sys.intern(text(labels, key))
            for key, value in labels.items()
            if isinstance(value, str)
        },
        created_at=moment(metadata, "creationTimestamp"),
        changed_at=_changed_at(metadata),
        unavailable_since=_unavailable_since(conditions_of.get("Available", {})),
        progress_deadline=_progress_deadline(spec),
        deleting=bool(metadata.get("deletionTimestamp")),
        generation=integer(metadata, "generation") or 0,
        observed_generation=integer(status, "observedGeneration"),
        desired=desired,
        ready=ready,
        available=available,
        updated=updated,
        surplus=_surplus(kind, status),
        revision_pending=_revision_pending(status),
        # Only Deployments have this field, from Kubernetes 1.33 on. `replicas` excludes terminating
        # pods.
        replacements_wait=count(status, "terminatingReplicas") > 0
        and count(status, "replicas") < desired,
        paused=spec.get("paused") is True,
        on_delete=text(update, "type") == "OnDelete",
        partition=count(child(update, "rollingUpdate"), "partition"),
        conditions=_shared_conditions(
            tuple((sys.intern(kind), _condition(found)) for kind, found in conditions_of.items())
        ),
        containers=tuple(_template_containers(child(child(spec, "template"), "spec"))),
    )


# Most pods of a workload have equal facts. A watching collector stores equal facts only once, which
# halves the memory.
@lru_cache(maxsize=8192)
def _shared_containers(containers: tuple[ContainerFacts, ...]) -> tuple[ContainerFacts, ...]:
    return containers


# The conditions of most workloads are equal, too.
@lru_cache(maxsize=8192)
def _shared_conditions(named: tuple[tuple[str, Condition], ...]) -> Mapping[str, Condition]:
    return dict(named)


@lru_cache(maxsize=8192)
def _shared_resources(resources: PodResources) -> PodResources:
    return resources


def _changed_at(metadata: JsonObject) -> datetime | None:
    """Read the time of the last write to an object, except to its status."""
    written = (
        moment(field, "time")
        for field in children(metadata, "managedFields")
        if text(field, "subresource") != "status"
    )
    return max((found for found in written if found is not None), default=None)


def _unavailable_since(available: JsonObject) -> datetime | None:
    is_unavailable = text(available, "status") == "False"
    return moment(available, "lastTransitionTime") if is_unavailable else None


def _progress_deadline(spec: JsonObject) -> int | None:
    seconds = count(spec, "progressDeadlineSeconds")
    return seconds if 0 < seconds < INT32_MAX else None  # the maximum means no limit


def _surplus(kind: WorkloadKind, status: JsonObject) -> int:
    """Count the replicas of a Deployment that a rollout has not replaced yet."""
    if kind is not WorkloadKind.DEPLOYMENT:
        return 0
    return max(count(status, "replicas") - count(status, "updatedReplicas"), 0)


def _revision_pending(status: JsonObject) -> bool | None:
    """Return whether the revisions of a StatefulSet differ; None if a revision is missing."""
    current, update = text(status, "currentRevision"), text(status, "updateRevision")
    return current != update if current and update else None


def _replicas(
    kind: WorkloadKind, spec: JsonObject, status: JsonObject
) -> tuple[int, int, int, int]:
    """Read desired, ready, available and updated replicas."""
    if kind is WorkloadKind.DAEMON_SET:
        return (
            count(status, "desiredNumberScheduled"),
            count(status, "numberReady"),
            count(status, "numberAvailable"),
            count(status, "updatedNumberScheduled"),
        )
    ready = count(status, "readyReplicas")
    # StatefulSets report available replicas from Kubernetes 1.22 on.
    without = ready if kind is WorkloadKind.STATEFUL_SET else 0
    return (
        count(spec, "replicas", default=1),
        ready,
        count(status, "availableReplicas", default=without),
        count(status, "updatedReplicas"),
    )


def _template_containers(spec: JsonObject) -> Iterator[TemplateContainer]:
    """Yield the containers that run for the life of a pod, sidecars last."""
    for container in children(spec, "containers"):
        yield _template_container(container)
    for container in children(spec, "initContainers"):
        if is_sidecar(container):
            yield _template_container(container)


def _condition(raw: JsonObject) -> Condition:
    return Condition(sys.intern(text(raw, "status")), reason(raw))


def _template_container(raw: JsonObject) -> TemplateContainer:
    return TemplateContainer(
        sys.intern(text(raw, "name")), sys.intern(text(raw, "image")[:MAX_IMAGE])
    )
