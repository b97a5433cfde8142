"""What a watched cluster looks like now, as facts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from workloads.collector.listing import PODS, REPLICASETS, WORKLOADS
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.raw import child, text
from workloads.kubernetes.records import workload_record
from workloads.kubernetes.reduce import reduce_pod, reduce_replicaset, reduce_workload
from workloads.kubernetes.tally import tally_pods
from workloads.reporting.reports import Place

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from workloads.collector.client import Resource
    from workloads.kubernetes.facts import PodFacts, PodKey, Usage, WorkloadFacts
    from workloads.kubernetes.raw import JsonObject
    from workloads.kubernetes.records import WorkloadRecord

V = TypeVar("V")
# From an object to its group and its facts; None when it is of no interest.
_Reduce: TypeAlias = "Callable[[JsonObject], tuple[str, V] | None]"


class _Table(Generic[V]):
    """The facts of one resource by uid, in groups: a pod's group is the uid of its controller."""

    def __init__(self, reduce: _Reduce[V]) -> None:
        self._reduce = reduce
        self.group_of: dict[str, str] = {}
        self.groups: dict[str, dict[str, V]] = {}

    def put(self, raw: JsonObject) -> set[str]:
        """Take an object that is new or changed; return the groups that this changes."""
        touched = self.remove(raw)
        reduced = self._reduce(raw)
        if reduced is not None:
            group, value = reduced
            uid = _uid(raw)
            self.group_of[uid] = group
            self.groups.setdefault(group, {})[uid] = value
            touched.add(group)
        return touched

    def remove(self, raw: JsonObject) -> set[str]:
        """Drop an object; return the groups that this changes."""
        uid = _uid(raw)
        group = self.group_of.pop(uid, None)
        if group is None:
            return set()
        members = self.groups[group]
        del members[uid]
        if not members:
            del self.groups[group]
        return {group}

    def of(self, group: str) -> Iterable[V]:
        return self.groups.get(group, {}).values()


class Mirror:
    """Filled by lists, kept by watches of several threads, and read by the one that reports.

    One pod takes about half a kilobyte: what is equal in the pods of a workload is held once.
    """

    def __init__(self) -> None:
        # By resource, each of which is of the whole cluster or of one namespace.
        self._workloads: dict[Resource, _Table[WorkloadFacts]] = {}
        self._replicasets: dict[Resource, _Table[str]] = {}
        self._pods: dict[Resource, _Table[PodFacts]] = {}
        self._lock = threading.Lock()
        # The uids of workloads, and of owners of pods, whose facts are newer than the last report.
        self._touched: set[str] = set()
        # Where each workload was, by uid, when it was last reported.
        self._reported: dict[str, Place] = {}
        # Whether a list came after the last snapshot: what it changed, no delta tells.
        self.is_refilled = False

    def fill(self, resource: Resource, objects: Iterable[JsonObject]) -> None:
        """Put a whole list in the place of what was known; a list that breaks off changes nothing.

        The watch before it may have missed changes, which only the next snapshot finds.
        """
        tables, reduce = self._role(resource)
        table = _Table(reduce)
        for raw in objects:
            table.put(raw)
        with self._lock:
            self.is_refilled = True
            tables[resource] = table

    def change(self, resource: Resource, event: str, raw: JsonObject) -> None:
        """Take one event of a watch; a bookmark changes nothing."""
        with self._lock:
            tables, reduce = self._role(resource)
            table = tables.setdefault(resource, _Table(reduce))
            if event == "DELETED":
                self._touched |= table.remove(raw)
            elif event in ("ADDED", "MODIFIED"):
                self._touched |= table.put(raw)

    def snapshot(
        self, as_of: dt.datetime, usage: Mapping[PodKey, Usage] | None
    ) -> list[WorkloadRecord]:
        """Judge every workload as it is now; some rules change with time alone."""
        with self._lock:
            self.is_refilled = False
            self._touched.clear()
            self._reported = {facts.uid: _place(facts) for facts in self._all()}
            return [self._record(facts, as_of, usage) for facts in self._all()]

    def delta(
        self, as_of: dt.datetime, usage: Mapping[PodKey, Usage] | None
    ) -> tuple[list[WorkloadRecord], frozenset[Place]]:
        """Judge the workloads that have changed since the last report, and name those that went."""
        with self._lock:
            uids = {self._workload_of(uid) for uid in self._touched}
            self._touched.clear()
            there = [facts for uid in uids for facts in _members(self._workloads, uid)]
            gone = {self._reported.pop(uid) for uid in uids if uid in self._reported}
            self._reported.update((facts.uid, _place(facts)) for facts in there)
            records = [self._record(facts, as_of, usage) for facts in there]
        # One that was deleted and created again has two uids and one place.
        return records, frozenset(gone - set(self._reported.values()))

    def _role(self, resource: Resource) -> tuple[dict[Resource, _Table[Any]], _Reduce[Any]]:
        """Return the tables that a resource's is among, and what reduces its objects."""
        if resource.name == PODS.name:
            return self._pods, _reduce_pod
        if resource.name == REPLICASETS.name:
            return self._replicasets, _reduce_replicaset
        return self._workloads, _WORKLOAD_REDUCERS[resource.name]

    def _workload_of(self, uid: str) -> str:
        """Return the uid of a ReplicaSet's Deployment; of anything else its own."""
        owners = (table.group_of.get(uid) for table in self._replicasets.values())
        return next(filter(None, owners), uid)

    def _all(self) -> Iterator[WorkloadFacts]:
        for table in self._workloads.values():
            for members in table.groups.values():
                yield from members.values()

    def _record(
        self, facts: WorkloadFacts, as_of: dt.datetime, usage: Mapping[PodKey, Usage] | None
    ) -> WorkloadRecord:
        owners: Iterable[str] = [facts.uid]
        if facts.kind is WorkloadKind.DEPLOYMENT:
            owners = _members(self._replicasets, facts.uid)
        pods = (pod for owner in owners for pod in _members(self._pods, owner))
        tally = tally_pods(pods, usage)
        return workload_record(facts, tally, as_of=as_of, usage_known=usage is not None)


def _members(tables: Mapping[Resource, _Table[V]], group: str) -> Iterator[V]:
    for table in tables.values():
        yield from table.of(group)


def _uid(raw: JsonObject) -> str:
    return text(child(raw, "metadata"), "uid")


def _place(facts: WorkloadFacts) -> Place:
    return Place(facts.namespace, facts.name, facts.kind.value)


def _workload_reducer(kind: WorkloadKind) -> _Reduce[WorkloadFacts]:
    def reduce(raw: JsonObject) -> tuple[str, WorkloadFacts] | None:
        facts = reduce_workload(raw, kind)
        return None if facts is None else (facts.uid, facts)

    return reduce


def _reduce_replicaset(raw: JsonObject) -> tuple[str, str] | None:
    link = reduce_replicaset(raw)
    return None if link is None else (link[1], link[0])


def _reduce_pod(raw: JsonObject) -> tuple[str, PodFacts] | None:
    facts = reduce_pod(raw)
    return None if facts is None else (facts.owner_uid, facts)


_WORKLOAD_REDUCERS: Final = {
    resource.name: _workload_reducer(kind) for kind, resource in WORKLOADS.items()
}
