"""Convert an item of a report into a record, with its reported or derived health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from workloads.kubernetes.containers import container_facts
from workloads.kubernetes.facts import (
    TERMINATED,
    Condition,
    PodFacts,
    PodKey,
    TemplateContainer,
    WorkloadFacts,
    WorkloadKind,
)
from workloads.kubernetes.figures import FIGURES
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.raw import INT32_MAX
from workloads.kubernetes.records import ContainerRecord, WorkloadRecord, workload_record
from workloads.kubernetes.tally import PodTally

if TYPE_CHECKING:
    import datetime as dt

    from workloads.kubernetes.facts import ContainerFacts
    from workloads.reporting.wire import Item
    from workloads.reporting.wire_pods import Pod, PodContainer

_ENDED: Final = {"Succeeded", "Failed"}


def record_of(item: Item, as_of: dt.datetime) -> WorkloadRecord:
    """Return the record of an item that was observed at `as_of` (aware)."""
    if item.health_status is not None or item.replicas_desired is None:
        return WorkloadRecord(
            **_unchanged_fields(item),
            replicas_desired=item.replicas_desired or 0,
            replicas_ready=item.replicas_ready,
            replicas_available=_available(item),
            health_status=item.health_status or HealthStatus.UNSPECIFIED,
            status_reason=item.status_reason,
            containers=_containers(item),
        )
    pods = PodTally()
    for pod in item.pods or ():
        pods.add(_pod(pod))
    derived = workload_record(_facts(item), pods, as_of=as_of, usage_known=False)
    # The containers are derived from the pods or, without pods, come from the item.
    containers = _containers(item) if item.pods is None else derived.containers
    return msgspec.structs.replace(derived, **_unchanged_fields(item), containers=containers)


def _unchanged_fields(item: Item) -> dict[str, Any]:
    """Return the fields that are stored unchanged."""
    return {
        "kind": item.kind,
        "namespace": item.namespace,
        "name": item.name,
        "uid": item.uid or "",
        "labels": item.labels,
        "figures": {figure.name: getattr(item, figure.name) for figure in FIGURES},
    }


def _available(item: Item) -> int:
    """Return the available replicas, which StatefulSets report from Kubernetes 1.22 on."""
    if item.replicas_available is not None:
        return item.replicas_available
    return item.replicas_ready if item.kind is WorkloadKind.STATEFUL_SET else 0


def _containers(item: Item) -> tuple[ContainerRecord, ...]:
    return tuple(
        [
            ContainerRecord(c.name, c.image, c.restart_count, c.state, c.ready, tuple(c.running))
            for c in item.containers
        ]
    )


def _facts(item: Item) -> WorkloadFacts:
    desired = item.replicas_desired or 0
    # Without `replicas_updated`, assume that all replicas are updated.
    updated = desired if item.replicas_updated is None else item.replicas_updated
    # If only `generation` is present, the controller has not written a status yet.
    observed = 0 if item.generation is None else item.observed_generation
    total = item.replicas_total if item.kind is WorkloadKind.DEPLOYMENT else None
    deadline = item.progress_deadline_seconds
    unavailable = (c for c in item.conditions if (c.type, c.status) == ("Available", "False"))
    return WorkloadFacts(
        kind=item.kind,
        namespace=item.namespace,
        name=item.name,
        created_at=item.created_at,
        unavailable_since=next((c.last_transition_at for c in unavailable), None),
        # Kubernetes' maximum means no deadline.
        progress_deadline=None if deadline == INT32_MAX else deadline,
        deleting=item.deleting,
        generation=item.generation or 0,
        observed_generation=observed,
        desired=desired,
        ready=item.replicas_ready,
        available=_available(item),
        updated=updated,
        surplus=max((total or 0) - updated, 0),
        paused=item.paused,
        on_delete=item.on_delete,
        partition=item.partition,
        conditions={c.type: Condition(c.status, c.reason) for c in item.conditions},
        containers=tuple(TemplateContainer(c.name, c.image) for c in item.containers),
    )


def _pod(pod: Pod) -> PodFacts:
    active = pod.phase not in _ENDED
    live = active and not pod.deleting and pod.deleted_at is None
    ready = live and bool(pod.containers) and all(c.ready for c in pod.containers)
    # The time in the report that comes closest to ``PodFacts.since``.
    since = pod.created_at if live or not active else pod.deleted_at
    steps = [_container(step) for step in pod.init_containers]
    containers = [_container(container) for container in pod.containers]
    return PodFacts(
        key=PodKey("", pod.name),
        owner_uid="",
        active=active,
        live=live,
        ready=ready,
        unschedulable=pod.unschedulable,
        failed=pod.reason if pod.phase == "Failed" else "",
        since=None if ready else since,
        # Omit init containers that succeeded, which no longer affect the pod.
        containers=(*containers, *(s for s in steps if s.state != TERMINATED or s.failing)),
    )


def _container(container: PodContainer) -> ContainerFacts:
    last = container.last_termination
    return container_facts(
        name=container.name,
        state=container.state,
        reason=container.reason,
        exit_code=container.exit_code,
        signal=container.signal,
        ready=container.ready,
        restarts=container.restart_count,
        last_reason=last.reason if last else "",
        last_finished_at=last.finished_at if last else None,
        image=container.image,
        image_id=container.image_id,
    )
