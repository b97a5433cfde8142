"""The facts about a cluster's objects that health and figures need.

Only counts, amounts, names and images come from `spec`. Environment values, commands and volumes
are never copied, because they often contain secrets. A collector reduces raw objects to facts. An
agent's report may contain facts directly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeAlias

from workloads.kubernetes.figures import RESERVED

RUNNING: Final = "running"
WAITING: Final = "waiting"
TERMINATED: Final = "terminated"

#: Maximum characters of an image name. Kubernetes has no limit. The limits of registries are lower.
MAX_IMAGE: Final = 2048
#: Kubernetes' own limits: a namespace is a DNS label, a name a DNS subdomain (RFC 1123).
MAX_NAMESPACE: Final = 63
MAX_NAME: Final = 253
MAX_UID: Final = 64
#: Maximum characters of a reason: a code and an optional detail.
MAX_STATUS_REASON: Final = 1024

UNSCHEDULABLE: Final = "Unschedulable"
# Kubernetes' reasons why a pod is not ready, or will not stay ready, although no container fails.
SCHEDULING_GATED: Final = "SchedulingGated"
GATES_NOT_READY: Final = "ReadinessGatesNotReady"
DISRUPTION_TARGET: Final = "DisruptionTarget"
NODE_LOST: Final = "NodeLost"
# Reasons why a container of a new pod has not started.
STARTING_REASONS: Final = frozenset({"ContainerCreating", "PodInitializing"})


class WorkloadKind(StrEnum):
    """The kinds of workload that a collector reads."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    DAEMON_SET = "DaemonSet"


class PodKey(NamedTuple):
    """The key that joins a pod with its metrics."""

    namespace: str
    name: str


#: The resources that a pod reserves on a node, in nanos, in the order of ``figures.RESERVED``.
PodResources: TypeAlias = tuple[int, ...]
#: The resources that the containers of a pod use, in nanos, in the order of ``figures.MEASURED``.
Usage: TypeAlias = tuple[int, ...]


class MeasuredPods(Protocol):
    """The measured usage of the pods of a cluster."""

    def get(self, key: PodKey, /) -> Usage | None:
        """Return the usage of a pod, or None if it was not measured."""


NO_RESOURCES: Final[PodResources] = (0,) * len(RESERVED)


class Condition(NamedTuple):
    """An entry of `status.conditions`, without its type."""

    status: str
    reason: str


class TemplateContainer(NamedTuple):
    """A container of a workload's pod template."""

    name: str
    image: str


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """A container of a pod.

    `failing` is the reason why the container counts as failing, or empty. `restarted_at` is the end
    of the last run of a restarted container, with any exit code: after a failed liveness probe, a
    container that terminates gracefully exits with 0. `out_of_memory` is true if that run ended
    because the container ran out of memory. `running` is the image reference with its digest, or
    empty if the digest is unknown.
    """

    name: str
    state: str
    ready: bool = False
    restarts: int = 0
    failing: str = ""
    restarted_at: datetime | None = None
    out_of_memory: bool = False
    running: str = ""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod, under the uid of the object that controls it.

    `active` means that the phase is not Succeeded or Failed. `live` means active and not being
    deleted. `held` is the reason why the pod is not ready, or will not stay ready, although no
    container fails. `starting` is the reason why its containers have not started. `failed` is the
    reason of a Failed pod, such as Evicted. `resize` is the state of an in-place resize that the
    node does not perform. `containers` excludes init containers that succeeded.

    The meaning of `since` depends on the state of the pod: when it became unready, should have
    terminated, or failed. `since` is None for a ready pod, so that ready pods share their facts.
    """

    key: PodKey
    owner_uid: str
    active: bool = True
    live: bool = True
    ready: bool = False
    unschedulable: bool = False
    held: str = ""
    starting: str = ""
    failed: str = ""
    resize: str = ""
    since: datetime | None = None
    containers: tuple[ContainerFacts, ...] = ()
    resources: PodResources = NO_RESOURCES


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """A Deployment, StatefulSet or DaemonSet.

    `observed_generation` is None if the controller has never written a status. Both generations are
    0 if the reporter does not send them. A missing `created_at` counts as long ago. `changed_at` is
    the last write to the object other than a controller's status update. `unavailable_since` is the
    transition of the condition Available to False. `progress_deadline` is in seconds, or None
    without a deadline. `surplus` counts the replicas of a Deployment that are not updated.
    `revision_pending` is true if a StatefulSet's current revision differs from its update revision,
    and None if unknown. `replacements_wait` is true while fewer pods exist than desired because
    other pods are terminating. `is_readable` is false if the object could not be reduced, so that
    only its identity is known.
    """

    kind: WorkloadKind
    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    changed_at: datetime | None = None
    unavailable_since: datetime | None = None
    progress_deadline: int | None = None
    deleting: bool = False
    generation: int = 0
    observed_generation: int | None = 0
    is_readable: bool = True
    desired: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    surplus: int = 0
    revision_pending: bool | None = None
    replacements_wait: bool = False
    paused: bool = False
    on_delete: bool = False
    partition: int = 0
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    containers: tuple[TemplateContainer, ...] = ()
