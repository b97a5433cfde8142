"""What is kept of a cluster's objects: exactly what health and figures need.

Nothing here comes from `spec` except counts, amounts, names and images: environment values,
commands and volumes are never copied, because they often hold secrets. A collector reduces raw
objects to these; a report of an agent may fill them directly.
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

#: Of an image's name. Kubernetes has no limit for it, and a registry's are shorter.
MAX_IMAGE: Final = 2048
#: Kubernetes' own limits: a namespace is a DNS label, a name a DNS subdomain (RFC 1123).
MAX_NAMESPACE: Final = 63
MAX_NAME: Final = 253
MAX_UID: Final = 64
#: A code, and a detail after it.
MAX_STATUS_REASON: Final = 1024

UNSCHEDULABLE: Final = "Unschedulable"
# Why a pod is not ready, or will not stay ready, although no container fails; Kubernetes' words.
SCHEDULING_GATED: Final = "SchedulingGated"
GATES_NOT_READY: Final = "ReadinessGatesNotReady"
DISRUPTION_TARGET: Final = "DisruptionTarget"
NODE_LOST: Final = "NodeLost"
# Why a container of a new pod has not started yet.
STARTING_REASONS: Final = frozenset({"ContainerCreating", "PodInitializing"})


class WorkloadKind(StrEnum):
    """The kinds of workload that are followed."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    DAEMON_SET = "DaemonSet"


class PodKey(NamedTuple):
    """What joins a pod with its metrics."""

    namespace: str
    name: str


#: What one pod takes of a node, in nanos, in the order of ``figures.RESERVED``.
PodResources: TypeAlias = tuple[int, ...]
#: What the containers of one pod use, in nanos, in the order of ``figures.MEASURED``.
Usage: TypeAlias = tuple[int, ...]


class MeasuredPods(Protocol):
    """What the pods of a cluster use, where it was measured."""

    def get(self, key: PodKey, /) -> Usage | None:
        """Return what a pod uses; None when it was not measured."""


NO_RESOURCES: Final[PodResources] = (0,) * len(RESERVED)


class Condition(NamedTuple):
    """One entry of `status.conditions`, without its type."""

    status: str
    reason: str


class TemplateContainer(NamedTuple):
    """A container that every pod of a workload is to have."""

    name: str
    image: str


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """One container of one pod.

    `failing` is the reason for which it counts as failing, or empty. `restarted_at` is the end of
    its last run, if it has been restarted since, whatever its exit code: a container that ends
    gracefully after a failed liveness probe exits with 0. `out_of_memory` is why that run ended.
    `running` is a reference to its image with the digest, or empty while that is not known.
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
    """One pod, under the uid of the object that controls it.

    `active` is neither Succeeded nor Failed; `live` is active and not being deleted. `held` is the
    reason why it is not ready, or will not stay ready, although no container fails. `starting` is
    the reason why its containers have not started. `failed` is the reason of a Failed pod, such as
    Evicted. `resize` is the state of a resize in place that its node does not perform. Init
    containers that have succeeded are left out of the containers.

    `since` depends on the state of the pod: since when it is not ready, until when it should have
    terminated, or when it failed. It is None for a ready pod, so that ready pods share their facts.
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
    """One Deployment, StatefulSet or DaemonSet.

    `observed_generation` is None when its controller has never written a status. A reporter that
    knows nothing of generations leaves both at 0. `created_at` None counts as long ago.
    `changed_at` is the last write to the object by anything but a controller's status update.
    `unavailable_since` is the transition of the condition Available to False.
    `progress_deadline` is in seconds, None without a deadline. `surplus` counts the replicas of a
    Deployment that are not updated. `revision_pending` says whether a StatefulSet's current
    revision differs from its update revision, None if unknown. `replacements_wait` is true while
    fewer pods exist than desired because others are still terminating. `is_readable` is false if
    the object could not be reduced: nothing but its identity is known then.
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
