"""The sums over the pods of a workload.

Memory does not contain all pods of a cluster: each pod is added to the tally of the object that
controls it, and then dropped. Memory grows with the number of workloads, not pods. A tally also
contains the end of the last run of each restarted container.
"""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from workloads.kubernetes.facts import (
    RUNNING,
    TERMINATED,
    WAITING,
    ContainerFacts,
    MeasuredPods,
    PodFacts,
    Usage,
)
from workloads.kubernetes.figures import MEASURED, RESERVED

# From best to worst. "" is a container that no pod reports yet.
_STATES: Final = ("", RUNNING, WAITING, TERMINATED)
_RANK: Final = {state: rank for rank, state in enumerate(_STATES)}


@dataclass(slots=True)
class ContainerTally:
    """The sums over the containers with the same name in a workload's live pods."""

    restarts: int = 0
    ready: int = 0
    state: str = ""
    running: frozenset[str] = frozenset()

    def add(self, restarts: int, ready: int, state: str, running: Set[str]) -> None:
        """Add containers with this name. `state` becomes the worst state of all."""
        self.restarts += restarts
        self.ready += ready
        if _RANK[state] > _RANK[self.state]:
            self.state = state
        # Pods usually run the same image. Avoid a new object in this case.
        if not running <= self.running:
            self.running |= running


@dataclass(slots=True)
class PodTally:
    """The sums over all pods of a workload, for its health and figures.

    `pods` counts all pods, `measured` the pods with metrics, and `failed` the Failed pods by
    reason. `reserved` and `used` are sums in nanos, in the order of the figures, over pods that are
    not Succeeded or Failed. The fields from `live` on only include live pods: `failing` counts
    containers by reason; `held`, `starting` and `resizing` count pods by reason; and `broken`
    counts pods whose containers all fail. Each `…_since` is the earliest time of these pods.
    `restarts` contains the end of the last run of each restarted container, and whether the run ran
    out of memory. Because a node's clock may be fast, only the rules, which know the time of the
    report, can select recent restarts.
    """

    pods: int = 0
    measured: int = 0
    reserved: list[int] = field(default_factory=lambda: [0] * len(RESERVED))
    used: list[int] = field(default_factory=lambda: [0] * len(MEASURED))
    terminating: int = 0
    terminating_since: datetime | None = None
    failed: Counter[str] = field(default_factory=Counter)
    failed_since: datetime | None = None
    live: int = 0
    ready: int = 0
    unready_since: datetime | None = None
    broken: int = 0
    unschedulable: int = 0
    failing: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    starting: Counter[str] = field(default_factory=Counter)
    resizing: Counter[str] = field(default_factory=Counter)
    restarts: list[tuple[datetime, bool]] = field(default_factory=list)
    containers: dict[str, ContainerTally] = field(default_factory=dict)

    def add(self, pod: PodFacts, usage: Usage | None = None) -> None:
        """Add a pod, with its metrics if available."""
        self.pods += 1
        if not pod.active:
            _count(self.failed, pod.failed)
            self.failed_since = _earlier(self.failed_since, pod.since)
            return
        _add(self.reserved, pod.resources)
        if usage is not None:
            self.measured += 1
            _add(self.used, usage)
        if not pod.live:
            self.terminating += 1
            self.terminating_since = _earlier(self.terminating_since, pod.since)
            return
        self.live += 1
        self.ready += pod.ready
        self.unready_since = _earlier(self.unready_since, pod.since)
        self.unschedulable += pod.unschedulable
        _count(self.held, pod.held)
        _count(self.starting, pod.starting)
        _count(self.resizing, pod.resize)
        self.broken += bool(pod.containers) and all(c.failing for c in pod.containers)
        for container in pod.containers:
            self._add_container(container)

    def merge(self, other: "PodTally") -> None:
        """Add the pods of another tally, because a Deployment may have several ReplicaSets."""
        self.pods += other.pods
        self.measured += other.measured
        _add(self.reserved, other.reserved)
        _add(self.used, other.used)
        self.terminating += other.terminating
        self.terminating_since = _earlier(self.terminating_since, other.terminating_since)
        self.failed.update(other.failed)
        self.failed_since = _earlier(self.failed_since, other.failed_since)
        self.live += other.live
        self.ready += other.ready
        self.unready_since = _earlier(self.unready_since, other.unready_since)
        self.broken += other.broken
        self.unschedulable += other.unschedulable
        self.failing.update(other.failing)
        self.held.update(other.held)
        self.starting.update(other.starting)
        self.resizing.update(other.resizing)
        self.restarts += other.restarts
        for name, theirs in other.containers.items():
            self._container(name).add(theirs.restarts, theirs.ready, theirs.state, theirs.running)

    def _add_container(self, container: ContainerFacts) -> None:
        running = {container.running} if container.running else frozenset()
        tally = self._container(container.name)
        tally.add(container.restarts, container.ready, container.state, running)
        _count(self.failing, container.failing)
        if container.restarted_at is not None:
            self.restarts.append((container.restarted_at, container.out_of_memory))

    def _container(self, name: str) -> ContainerTally:
        return self.containers.setdefault(name, ContainerTally())


def most_frequent(reasons: Counter[str]) -> str:
    """Return the most frequent reason, or "".

    Among equally frequent reasons, the first in alphabetical order wins.
    """
    return min(reasons, key=lambda reason: (-reasons[reason], reason), default="")


def tally_pods(pods: Iterable[PodFacts], usage: MeasuredPods | None = None) -> PodTally:
    """Sum the pods of a workload."""
    tally = PodTally()
    for pod in pods:
        tally.add(pod, usage.get(pod.key) if usage is not None else None)
    return tally


def _add(sums: list[int], amounts: Sequence[int]) -> None:
    for at, amount in enumerate(amounts):
        sums[at] += amount


def _count(reasons: Counter[str], reason: str) -> None:
    if reason:
        reasons[reason] += 1


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    if one is None or other is None:
        return one or other
    return min(one, other)
