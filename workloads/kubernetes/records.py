"""Convert the facts of a workload and its pods into a record, as stored and returned."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import structlog
from msgspec import Struct

from workloads.kubernetes.facts import TemplateContainer, WorkloadFacts, WorkloadKind
from workloads.kubernetes.figures import MEASURED, RESERVED
from workloads.kubernetes.health import HealthStatus, derive_health
from workloads.kubernetes.tally import ContainerTally, PodTally

log = structlog.get_logger("workloads.kubernetes")

#: The reason of a workload whose object or pods could not be evaluated.
UNREADABLE: Final = "Unreadable"
#: Maximum images per container. The pods of a workload run one image, or two during a rollout.
MAX_RUNNING: Final = 20


# Not tracked by the garbage collector, because no instance can be part of a cycle.
class ContainerRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """A container of a workload's template, with its status in all live pods.

    `state` is the worst of running, waiting and terminated, and "" while no pod reports a state.
    `running` contains sorted references, with digests, to the images that the pods run. It contains
    several references during a rollout, or after a tag has moved. The JSON omits an empty
    `running`.
    """

    name: str
    image: str
    restart_count: int
    state: str
    ready: bool
    running: tuple[str, ...] = ()


class WorkloadRecord(Struct, frozen=True, gc=False):
    """A workload as in the API, without the ids that the service assigns.

    `figures` maps names to amounts, rounded up. Usage is None if it is not measured.
    """

    kind: WorkloadKind
    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    health_status: HealthStatus
    status_reason: str
    replicas_desired: int
    replicas_ready: int
    replicas_available: int
    figures: Mapping[str, int | None]
    containers: tuple[ContainerRecord, ...]


class EvaluatedRecords(Sequence[WorkloadRecord]):
    """The records of workloads. `judge` creates each record during iteration.

    Records are not kept, because they require more memory than facts.
    """

    def __init__(
        self, facts: Sequence[WorkloadFacts], judge: Callable[[WorkloadFacts], WorkloadRecord]
    ) -> None:
        self._facts, self._judge = facts, judge

    def __len__(self) -> int:
        return len(self._facts)

    def __getitem__(self, index: Any) -> Any:
        return self._judge(self._facts[index])


def workload_record(
    workload: WorkloadFacts, pods: PodTally, *, as_of: datetime, usage_known: bool
) -> WorkloadRecord:
    """Return the record of a workload and its pods, or an unreadable record after an exception.

    See ``_joined`` for the arguments.
    """
    if not workload.is_readable:
        return _unreadable(workload)
    try:
        return _joined(workload, pods, as_of=as_of, usage_known=usage_known)
    except Exception:
        log.exception(
            "workload_unreadable",
            kind=workload.kind.value,
            namespace=workload.namespace,
            name=workload.name,
        )
        return _unreadable(workload)


def _joined(
    workload: WorkloadFacts, pods: PodTally, *, as_of: datetime, usage_known: bool
) -> WorkloadRecord:
    """Return the record of a workload and its pods.

    `usage_known` is true if the cluster has metrics. Without metrics, or if no pod is measured, the
    usage is unknown, not zero. A workload without pods has a usage of zero.
    """
    usage_known = usage_known and (pods.measured > 0 or pods.live + pods.terminating == 0)
    health = derive_health(workload, pods, as_of)
    reserved = {f.name: f.shown(nanos) for f, nanos in zip(RESERVED, pods.reserved, strict=True)}
    used = {
        f.name: f.shown(nanos) if usage_known else None
        for f, nanos in zip(MEASURED, pods.used, strict=True)
    }
    return WorkloadRecord(
        kind=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        uid=workload.uid,
        labels=workload.labels,
        health_status=health.status,
        status_reason=health.reason,
        replicas_desired=workload.desired,
        replicas_ready=workload.ready,
        replicas_available=workload.available,
        figures={**reserved, **used},
        containers=tuple(_container(container, pods) for container in workload.containers),
    )


def _unreadable(workload: WorkloadFacts) -> WorkloadRecord:
    """Return the record of an unreadable workload, which contains only its identity."""
    unknown: dict[str, int | None] = dict.fromkeys((f.name for f in RESERVED), 0)
    return WorkloadRecord(
        kind=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        uid=workload.uid,
        labels={},
        health_status=HealthStatus.UNSPECIFIED,
        status_reason=UNREADABLE,
        replicas_desired=0,
        replicas_ready=0,
        replicas_available=0,
        figures=unknown | dict.fromkeys(f.name for f in MEASURED),
        containers=(),
    )


def _container(template: TemplateContainer, pods: PodTally) -> ContainerRecord:
    tally = pods.containers.get(template.name, ContainerTally())
    return ContainerRecord(
        name=template.name,
        image=template.image,
        restart_count=tally.restarts,
        state=tally.state,
        ready=0 < pods.live == tally.ready,
        running=tuple(sorted(tally.running)[:MAX_RUNNING]),
    )
