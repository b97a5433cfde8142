"""The pods of one workload, added up.

A cluster's pods are read once and never held together: each is added to the tally of the object
that controls it and dropped, so that memory grows with the number of workloads and not of pods.
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

# From best to worst; "" is a container of which no pod says anything yet.
_STATES: Final = ("", RUNNING, WAITING, TERMINATED)
_RANK: Final = {state: rank for rank, state in enumerate(_STATES)}


@dataclass(slots=True)
class ContainerTally:
    """The containers of one name, over a workload's live pods."""

    restarts: int = 0
    ready: int = 0
    state: str = ""
    running: frozenset[str] = frozenset()

    def add(self, restarts: int, ready: int, state: str, running: Set[str]) -> None:
        """Count more containers of this name; the state stays the worst of all."""
        self.restarts += restarts
        self.ready += ready
        if _RANK[state] > _RANK[self.state]:
            self.state = state
        # Mostly all pods run the same, and then nothing is made anew.
        if not running <= self.running:
            self.running |= running


@dataclass(slots=True)
class PodTally:
    """What health and figures need of all pods of one workload.

    Counts: `pods` is all of them and `measured` those with metrics. `reserved` and `used` are
    nanos in the order of the figures, of pods that are neither Succeeded nor Failed. All below
    `live` is of live pods only: `failing` counts containers by reason and `held` pods, `broken` is
    the pods of nothing but failing containers.
    """

    pods: int = 0
    measured: int = 0
    reserved: list[int] = field(default_factory=lambda: [0] * len(RESERVED))
    used: list[int] = field(default_factory=lambda: [0] * len(MEASURED))
    live: int = 0
    broken: int = 0
    unschedulable: int = 0
    failing: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    crashed_at: datetime | None = None
    out_of_memory_at: datetime | None = None
    containers: dict[str, ContainerTally] = field(default_factory=dict)

    def add(self, pod: PodFacts, usage: Usage | None = None) -> None:
        """Count one more pod, with its metrics when there are any."""
        self.pods += 1
        if not pod.active:
            return
        _add(self.reserved, pod.resources)
        if usage is not None:
            self.measured += 1
            _add(self.used, usage)
        if not pod.live:
            return
        self.live += 1
        self.unschedulable += pod.unschedulable
        if pod.held:
            self.held[pod.held] += 1
        self.broken += bool(pod.containers) and all(c.failing for c in pod.containers)
        for container in pod.containers:
            self._add_container(container)

    def merge(self, other: "PodTally") -> None:
        """Add the pods of another tally: a Deployment's are spread over its ReplicaSets."""
        self.pods += other.pods
        self.measured += other.measured
        _add(self.reserved, other.reserved)
        _add(self.used, other.used)
        self.live += other.live
        self.broken += other.broken
        self.unschedulable += other.unschedulable
        self.failing.update(other.failing)
        self.held.update(other.held)
        self.crashed_at = _later(self.crashed_at, other.crashed_at)
        self.out_of_memory_at = _later(self.out_of_memory_at, other.out_of_memory_at)
        for name, theirs in other.containers.items():
            self._container(name).add(theirs.restarts, theirs.ready, theirs.state, theirs.running)

    def most_frequent_failure(self) -> str:
        """Name the reason that most containers fail for, or "".

        Of equals it is the first in the alphabet, whatever order the pods came in.
        """
        return _most_frequent(self.failing)

    def most_frequent_hold(self) -> str:
        """Name what holds most pods, or ""; of equals as above."""
        return _most_frequent(self.held)

    def _add_container(self, container: ContainerFacts) -> None:
        running = {container.running} if container.running else frozenset()
        tally = self._container(container.name)
        tally.add(container.restarts, container.ready, container.state, running)
        if container.failing:
            self.failing[container.failing] += 1
        if container.crashed_at is not None:
            self.crashed_at = _later(self.crashed_at, container.crashed_at)
            if container.out_of_memory:
                self.out_of_memory_at = _later(self.out_of_memory_at, container.crashed_at)

    def _container(self, name: str) -> ContainerTally:
        return self.containers.setdefault(name, ContainerTally())


def tally_pods(pods: Iterable[PodFacts], usage: MeasuredPods | None = None) -> PodTally:
    """Add up the pods of one workload."""
    tally = PodTally()
    for pod in pods:
        tally.add(pod, usage.get(pod.key) if usage is not None else None)
    return tally


def _add(sums: list[int], amounts: Sequence[int]) -> None:
    for at, amount in enumerate(amounts):
        sums[at] += amount


def _most_frequent(reasons: Counter[str]) -> str:
    return min(reasons, key=lambda reason: (-reasons[reason], reason), default="")


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    if one is None or other is None:
        return one or other
    return max(one, other)
