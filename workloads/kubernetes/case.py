"""The input of the health rules: a workload at the moment of a report."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from workloads.kubernetes.facts import Condition, WorkloadFacts, WorkloadKind
from workloads.kubernetes.tally import PodTally

# The minimum grace period of an unavailable workload or an unready pod, and the maximum age of a
# recent restart. Both periods include their last moment.
GRACE: Final = timedelta(seconds=300)
RESTART_WINDOW: Final = timedelta(seconds=600)
# The time within which a controller should observe a change.
OBSERVATION_DELAY: Final = timedelta(seconds=10)

#: A reason of the condition Progressing that counts with any status.
PROGRESS_DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"


@dataclass(frozen=True, slots=True)
class Case:
    """A workload, its pods and the time of the report, in the terms of the rule table."""

    workload: WorkloadFacts
    pods: PodTally
    as_of: datetime

    def condition(self, kind: str) -> Condition:
        return self.workload.conditions.get(kind, Condition("", ""))

    def no_pod_ready(self) -> bool:
        """Return whether no pod is ready. The controller's count may lag behind the pods."""
        return self.workload.ready == 0 and self.pods.ready == 0

    def down(self) -> bool:
        return self.no_pod_ready() and self.workload.desired > 0

    def some_missing(self) -> bool:
        return min(self.workload.ready, self.workload.available) < self.workload.desired

    def fewer_live(self) -> bool:
        return self.pods.live < self.workload.desired

    def behind(self) -> bool:
        observed = self.workload.observed_generation
        return observed is not None and observed < self.workload.generation

    def overlooked(self) -> bool:
        changed = self.workload.changed_at
        return self.behind() and (changed is None or self.as_of - changed > OBSERVATION_DELAY)

    def refused(self) -> bool:
        """Return whether the controller reports a reason why a rollout cannot begin."""
        progressing = self.condition("Progressing")
        return (
            self.workload.kind is WorkloadKind.DEPLOYMENT
            and progressing.status == "False"
            and progressing.reason not in ("", PROGRESS_DEADLINE_EXCEEDED)
        )

    def deadline_exceeded(self) -> bool:
        return (
            self.workload.kind is WorkloadKind.DEPLOYMENT
            and self.condition("Progressing").reason == PROGRESS_DEADLINE_EXCEEDED
        )

    def replica_failure(self) -> bool:
        return self.condition("ReplicaFailure").status == "True"

    def all_failing(self) -> bool:
        return 0 < self.pods.live == self.pods.broken

    # The grace period of all rules.

    def grace(self) -> timedelta:
        """Return the grace period: at least the progress deadline of a rollout."""
        progressing = self.condition("Progressing")
        rolling_out = (
            progressing.status == "True" and progressing.reason != "NewReplicaSetAvailable"
        )
        deadline = self.workload.progress_deadline if rolling_out else None
        return max(GRACE, timedelta(seconds=deadline or 0))

    def unavailable_since(self) -> datetime | None:
        """Return the start of the unavailability, as precisely as the objects allow."""
        workload, pods = self.workload, self.pods
        return (
            self._credible(workload.unavailable_since)
            or self._credible(pods.unready_since)
            or pods.terminating_since  # a deadline, possibly hours in the future
            or self._credible(pods.failed_since)
            or (workload.changed_at if self.behind() else None)
            or workload.created_at
        )

    def _credible(self, moment: datetime | None) -> datetime | None:
        """Return a time, or None if it is far after the report because of a kubelet's clock."""
        return moment if moment is not None and moment - self.as_of <= GRACE else None

    def past_grace(self, since: datetime | None) -> bool:
        created = self.workload.created_at
        begin = max(since, created) if since and created else since
        return begin is None or self.as_of - begin > self.grace()

    def needs_help(self) -> bool:
        """Return whether the workload has been unavailable for longer than the grace period."""
        return self.past_grace(self.unavailable_since())

    def stuck(self) -> bool:
        """Return whether a pod has not become ready within the grace period."""
        since = self.pods.unready_since
        return since is not None and self.past_grace(since)

    def stuck_terminating(self) -> bool:
        since = self.pods.terminating_since
        return since is not None and self.as_of - since > GRACE

    def recent_restarts(self) -> list[bool]:
        """Return, for each recent restart, whether the container ran out of memory.

        A run that ended after the report comes from a node with a fast clock, and is ignored.
        """
        return [
            out_of_memory
            for ended, out_of_memory in self.pods.restarts
            if timedelta(0) <= self.as_of - ended <= RESTART_WINDOW
        ]

    def update_pending(self, partition: int = 0) -> bool:
        if self.workload.revision_pending is False:  # the current revision is the update revision
            return False
        return self.workload.updated < self.workload.desired - partition

    def updating(self) -> bool:
        return self.update_pending(self.workload.partition) or self.workload.surplus > 0

    def waits_for_deletions(self) -> bool:
        return self.workload.on_delete and self.update_pending()
