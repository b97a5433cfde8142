"""The facts of a cluster, from which reports are derived."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from workloads.collector.client import Resource
from workloads.collector.outages import Outages
from workloads.collector.pods import PodTable
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.raw import child, text
from workloads.kubernetes.records import EvaluatedRecords, workload_record
from workloads.kubernetes.reduce import reduce_replicaset, reduce_workload
from workloads.kubernetes.resources import UNKNOWN_VERSION
from workloads.kubernetes.tally import PodTally
from workloads.reporting.reports import Place

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from workloads.kubernetes.facts import MeasuredPods, WorkloadFacts
    from workloads.kubernetes.raw import JsonObject
    from workloads.kubernetes.records import WorkloadRecord
    from workloads.kubernetes.resources import ServerVersion

WORKLOADS: Final = {
    WorkloadKind.DEPLOYMENT: Resource("/apis/apps/v1/deployments"),
    WorkloadKind.STATEFUL_SET: Resource("/apis/apps/v1/statefulsets"),
    WorkloadKind.DAEMON_SET: Resource("/apis/apps/v1/daemonsets"),
}
REPLICASETS: Final = Resource("/apis/apps/v1/replicasets", metadata_only=True)
PODS: Final = Resource("/api/v1/pods")
_KINDS: Final = {resource.name: kind for kind, resource in WORKLOADS.items()}


class _WorkloadTable:
    """The facts of a kind of workload by uid."""

    def __init__(self, kind: WorkloadKind) -> None:
        self._kind = kind
        self._facts: dict[str, WorkloadFacts] = {}

    def put(self, raw: JsonObject) -> set[str]:
        """Store a new or changed object, and return the affected uids."""
        touched = self.remove(raw)
        facts = reduce_workload(raw, self._kind)
        if facts is not None:
            self._facts[facts.uid] = facts
            touched.add(facts.uid)
        return touched

    def remove(self, raw: JsonObject) -> set[str]:
        """Remove an object, and return the affected uids."""
        uid = _uid(raw)
        return set() if self._facts.pop(uid, None) is None else {uid}

    def of(self, uid: str) -> Iterator[WorkloadFacts]:
        """Yield the workload with this uid if it has this kind."""
        if (facts := self._facts.get(uid)) is not None:
            yield facts

    def all(self) -> Iterable[WorkloadFacts]:
        return self._facts.values()


class _ReplicaSetTable:
    """The Deployment of each ReplicaSet and the ReplicaSets of each Deployment, by uid."""

    def __init__(self) -> None:
        self.deployment_of: dict[str, str] = {}
        # A short list needs half the memory of a dictionary. A Deployment rarely has more than ten.
        self._replicasets: dict[str, list[str]] = {}

    def put(self, raw: JsonObject) -> set[str]:
        """Store a new or changed object, and return the affected Deployments."""
        touched = self.remove(raw)
        link = reduce_replicaset(raw)
        if link is not None:
            uid, deployment = link
            self.deployment_of[uid] = deployment
            self._replicasets.setdefault(deployment, []).append(uid)
            touched.add(deployment)
        return touched

    def remove(self, raw: JsonObject) -> set[str]:
        """Remove an object, and return the affected Deployments."""
        uid = _uid(raw)
        deployment = self.deployment_of.pop(uid, None)
        if deployment is None:
            return set()
        members = self._replicasets[deployment]
        members.remove(uid)
        if not members:
            del self._replicasets[deployment]
        return {deployment}

    def of(self, deployment: str) -> Iterable[str]:
        return self._replicasets.get(deployment, ())


class Mirror:
    """The state of a cluster. Lists fill it, watches update it, and reports read it.

    Pods are joined by the uid of their controller, never by labels, because selectors of different
    workloads may overlap. The controller must be in the namespace of the pod: permission to create
    pods in one namespace must not affect workloads in another.
    """

    def __init__(self) -> None:
        # The tables by resource. A resource is cluster-wide, or belongs to a namespace.
        self._workloads: dict[Resource, _WorkloadTable] = {}
        self._replicasets: dict[Resource, _ReplicaSetTable] = {}
        self._pods: dict[Resource, PodTable] = {}
        self._lock = threading.Lock()
        # The uids of workloads, and of owners of pods, that have changed since the last report.
        self._touched: set[str] = set()
        # Each workload as last reported, by uid.
        self._reported: dict[str, WorkloadFacts] = {}
        self._outages = Outages()
        # Whether a list replaced a table after the last snapshot. Deltas do not contain the
        # changes in such a list.
        self.is_refilled = False

    def fill(
        self,
        resource: Resource,
        objects: Iterable[JsonObject],
        server: ServerVersion = UNKNOWN_VERSION,
    ) -> None:
        """Replace a table with a complete list. An incomplete list changes nothing.

        The preceding watch may have missed changes, which only the next snapshot contains. `server`
        is the version of the API server.
        """
        tables, new = self._role(resource, server)
        table = new()
        for raw in objects:
            table.put(raw)
        with self._lock:
            self.is_refilled = True
            tables[resource] = table

    def change(self, resource: Resource, event: str, raw: JsonObject) -> None:
        """Apply a watch event. A bookmark changes nothing."""
        with self._lock:
            tables, new = self._role(resource)
            table = tables.setdefault(resource, new())
            if event == "DELETED":
                self._touched |= table.remove(raw)
            elif event in ("ADDED", "MODIFIED"):
                self._touched |= table.put(raw)

    def snapshot(self, as_of: dt.datetime, usage: MeasuredPods | None) -> Sequence[WorkloadRecord]:
        """Return a record for every workload, evaluated during iteration.

        A snapshot also evaluates unchanged workloads, because some rules depend only on the time.
        It may include changes that arrive during the iteration. The next delta contains these
        changes again.
        """
        with self._lock:
            self.is_refilled = False
            self._touched.clear()
            facts = tuple(f for table in self._workloads.values() for f in table.all())
            self._reported = {one.uid: one for one in facts}
            self._outages.keep(self._reported)

        def judge(facts: WorkloadFacts) -> WorkloadRecord:
            with self._lock:
                return self._record(facts, as_of, usage)

        return EvaluatedRecords(facts, judge)

    def delta(
        self, as_of: dt.datetime, usage: MeasuredPods | None
    ) -> tuple[list[WorkloadRecord], frozenset[Place]]:
        """Return the changes since the last report: workloads, and places of deleted workloads."""
        with self._lock:
            uids = {self._workload_of(uid) for uid in self._touched}
            self._touched.clear()
            there = [f for uid in uids for table in self._workloads.values() for f in table.of(uid)]
            deleted = {_place(self._reported.pop(uid)) for uid in uids if uid in self._reported}
            self._reported.update((facts.uid, facts) for facts in there)
            if deleted:  # a recreated workload has two uids and the same place
                deleted.difference_update(map(_place, self._reported.values()))
            records = [self._record(facts, as_of, usage) for facts in there]
        return records, frozenset(deleted)

    def _role(
        self, resource: Resource, server: ServerVersion = UNKNOWN_VERSION
    ) -> tuple[dict[Resource, Any], Callable[[], Any]]:
        """Return the tables of a resource, and the constructor of a new table."""
        if resource.name == PODS.name:
            return self._pods, partial(PodTable, server)
        if resource.name == REPLICASETS.name:
            return self._replicasets, _ReplicaSetTable
        return self._workloads, partial(_WorkloadTable, _KINDS[resource.name])

    def _workload_of(self, uid: str) -> str:
        """Return the uid of a ReplicaSet's Deployment, or the uid itself for other owners."""
        owners = (table.deployment_of.get(uid) for table in self._replicasets.values())
        return next(filter(None, owners), uid)

    def _record(
        self, facts: WorkloadFacts, as_of: dt.datetime, usage: MeasuredPods | None
    ) -> WorkloadRecord:
        owners: Iterable[str] = [facts.uid]
        if facts.kind is WorkloadKind.DEPLOYMENT:
            owners = [uid for table in self._replicasets.values() for uid in table.of(facts.uid)]
        tally = PodTally()
        for owner in owners:
            for table in self._pods.values():
                for key, pod in table.of(facts.namespace, owner):
                    tally.add(pod, usage.get(key) if usage is not None else None)
        facts = self._outages.remember(facts, tally, as_of)
        return workload_record(facts, tally, as_of=as_of, usage_known=usage is not None)


def _uid(raw: JsonObject) -> str:
    return text(child(raw, "metadata"), "uid")


def _place(facts: WorkloadFacts) -> Place:
    return Place(facts.namespace, facts.name, facts.kind.value)
