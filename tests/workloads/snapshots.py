"""The records of a cluster from raw objects, as in the collector's snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workloads.collector.mirror import PODS, REPLICASETS, WORKLOADS, Mirror
from workloads.kubernetes.tally import PodTally

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Sequence

    from workloads.kubernetes.facts import MeasuredPods, PodFacts, WorkloadKind
    from workloads.kubernetes.records import WorkloadRecord


class SnapshotBuilder:
    """A mirror that is filled with raw objects in any order."""

    def __init__(self, usage: MeasuredPods | None = None) -> None:
        self._mirror, self._usage = Mirror(), usage

    def add_workload(self, raw: dict[str, Any], kind: WorkloadKind) -> None:
        self._mirror.change(WORKLOADS[kind], "ADDED", raw)

    def add_replicaset(self, raw: dict[str, Any]) -> None:
        self._mirror.change(REPLICASETS, "ADDED", raw)

    def add_pod(self, raw: dict[str, Any]) -> None:
        self._mirror.change(PODS, "ADDED", raw)

    def records(self, as_of: dt.datetime) -> Sequence[WorkloadRecord]:
        return self._mirror.snapshot(as_of, self._usage)


def tally_pods(pods: Iterable[PodFacts], usage: MeasuredPods | None = None) -> PodTally:
    """Return the sums over the pods of a workload."""
    tally = PodTally()
    for pod in pods:
        tally.add(pod, None if usage is None else usage.get(pod.key))
    return tally
