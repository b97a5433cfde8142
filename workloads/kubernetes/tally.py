"""The sums over the pods of a workload."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from workloads.kubernetes.facts import (
    RUNNING,
    TERMINATED,
    WAITING,
    ContainerFacts,
    PodFacts,
    Usage,
)
from workloads.kubernetes.figures import MEASURED, RESERVED

# From best to worst. "" is a container that no pod reports yet.
_STATES: Final = ("", RUNNING, WAITING, TERMINATED)


@dataclass(slots=True)
class ContainerTally:
    """The sums over the containers with the same name in a workload's live pods."""

    restarts: int = 0
    ready: int = 0
    state: str = ""
    running: set[str] = field(default_factory=set)

    def add(self, container: ContainerFacts) -> None:
        """Add a container with this name. `state` becomes the worst state of all."""
        self.restarts += container.restarts
        self.ready += container.ready
        self.state = max(self.state, container.state, key=_STATES.index)
        if container.running:
            self.running.add(container.running)


@dataclass(slots=True)
class PodTally:
    """The sums over all pods of a workload, for its health and figures.

    `measured` counts the pods with metrics, and `failed` the Failed pods by reason. `reserved` and
    `used` are sums in nanos, in the order of the figures, over pods that are not Succeeded or
    Failed. The fields from `live` on only include live pods: `failing` counts containers by reason;
    `held`, `starting` and `resizing` count pods by reason; and `broken` counts pods whose
    containers all fail. Each `…_since` is the earliest time of these pods. `restarts` contains the
    end of the last run of each restarted container, and whether the run ran out of memory. Because
    a node's clock may be fast, only the rules, which know the time of the report, can select recent
    restarts.
    """

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
            self.containers.setdefault(container.name, ContainerTally()).add(container)
            _count(self.failing, container.failing)
            if container.restarted_at is not None:
                self.restarts.append((container.restarted_at, container.out_of_memory))


def most_frequent(reasons: Counter[str]) -> str:
    """Return the most frequent reason, or "".

    Among equally frequent reasons, the first in alphabetical order wins.
    """
    return min(reasons, key=lambda reason: (-reasons[reason], reason), default="")


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
