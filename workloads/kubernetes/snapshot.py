"""Build the records of all workloads from a single pass over the lists of a cluster."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from workloads.kubernetes.facts import MeasuredPods, WorkloadFacts, WorkloadKind
from workloads.kubernetes.raw import JsonObject
from workloads.kubernetes.records import EvaluatedRecords, WorkloadRecord, workload_record
from workloads.kubernetes.reduce import reduce_pod, reduce_replicaset, reduce_workload
from workloads.kubernetes.resources import UNKNOWN_VERSION, ServerVersion
from workloads.kubernetes.tally import PodTally


class SnapshotBuilder:
    """A builder that joins pods, ReplicaSets and workloads, added in any order.

    Pods are joined by namespace and `ownerReferences[controller=true].uid`, never by labels,
    because selectors of different workloads may overlap. The owner must be in the namespace of the
    pod: permission to create pods in one namespace must not affect workloads in another. Memory
    grows with the number of workloads and ReplicaSets, because each pod is dropped after it is
    added.

    `usage` contains the cluster's pod metrics, or None without a working metrics API. Set it before
    adding the first pod.
    """

    def __init__(self, usage: MeasuredPods | None = None) -> None:
        self.usage = usage
        self._tallies: dict[tuple[str, str], PodTally] = {}
        self._deployment_of: dict[str, str] = {}
        self._workloads: list[WorkloadFacts] = []

    def add_pod(self, raw: JsonObject, server: ServerVersion = UNKNOWN_VERSION) -> None:
        """Add a raw Pod to the object that controls it."""
        pod = reduce_pod(raw, server)
        if pod is not None:
            usage = self.usage.get(pod.key) if self.usage is not None else None
            owner = pod.key.namespace, pod.owner_uid
            self._tallies.setdefault(owner, PodTally()).add(pod, usage)

    def add_replicaset(self, raw: JsonObject) -> None:
        """Record the Deployment of a raw ReplicaSet."""
        link = reduce_replicaset(raw)
        if link is not None:
            uid, deployment_uid = link
            self._deployment_of[uid] = deployment_uid

    def add_workload(self, raw: JsonObject, kind: WorkloadKind) -> None:
        """Add a raw Deployment, StatefulSet or DaemonSet."""
        workload = reduce_workload(raw, kind)
        if workload is not None:
            self._workloads.append(workload)

    def records(self, as_of: datetime) -> EvaluatedRecords:
        """Return the records of all workloads at `as_of`, the time of the lists.

        Call this method last.
        """
        return EvaluatedRecords(self._workloads, partial(self._record, self._replicasets(), as_of))

    def _replicasets(self) -> Mapping[str, Sequence[str]]:
        """Return the uids of each Deployment's ReplicaSets."""
        found: dict[str, list[str]] = {}
        for uid, deployment in self._deployment_of.items():
            found.setdefault(deployment, []).append(uid)
        return found

    def _record(
        self,
        replicasets: Mapping[str, Sequence[str]],
        as_of: datetime,
        workload: WorkloadFacts,
    ) -> WorkloadRecord:
        owners: Sequence[str] = [workload.uid]
        if workload.kind is WorkloadKind.DEPLOYMENT:
            owners = replicasets.get(workload.uid, ())
        tally = PodTally()
        for uid in owners:
            if (of_owner := self._tallies.get((workload.namespace, uid))) is not None:
                tally.merge(of_owner)
        return workload_record(workload, tally, as_of=as_of, usage_known=self.usage is not None)
