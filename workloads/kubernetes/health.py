"""Health of a workload: one pure function of one snapshot.

The rules are the table of docs/reference/workload-health.md, in its order; the first that matches
decides. The moment of the report is given, never read from a clock, so that the same report gives
the same verdict whenever it is replayed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from workloads.kubernetes import facts
from workloads.kubernetes.facts import Condition, WorkloadFacts, WorkloadKind
from workloads.kubernetes.tally import PodTally

# How long after its creation a workload may be without any ready replica, and how recent the last
# crash of a restarted container must be; both bounds belong to the interval.
STARTUP_GRACE: Final = timedelta(seconds=300)
RESTART_WINDOW: Final = timedelta(seconds=600)


class HealthStatus(StrEnum):
    """The wire values of `health_status`."""

    UNSPECIFIED = "WORKLOAD_HEALTH_STATUS_UNSPECIFIED"
    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    ERROR = "ERROR"


class Reason(StrEnum):
    """The codes of `status_reason` that the rules give by themselves.

    Others are handed on: the reason of a failing container or of a condition.
    """

    TERMINATING = "Terminating"
    NOT_OBSERVED = "NotObserved"
    GENERATION_NOT_OBSERVED = "GenerationNotObserved"
    SCALED_TO_ZERO = "ScaledToZero"
    NO_ELIGIBLE_NODES = "NoEligibleNodes"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    REPLICA_FAILURE = "ReplicaFailure"
    UNSCHEDULABLE = facts.UNSCHEDULABLE
    MINIMUM_REPLICAS_UNAVAILABLE = "MinimumReplicasUnavailable"
    NO_READY_REPLICAS = "NoReadyReplicas"
    SCHEDULING_GATED = facts.SCHEDULING_GATED
    READINESS_GATES_NOT_READY = facts.GATES_NOT_READY
    DISRUPTION_TARGET = facts.DISRUPTION_TARGET
    REPLICAS_TERMINATING = "ReplicasTerminating"
    REPLICAS_NOT_READY = "ReplicasNotReady"
    OOM_KILLED = "OOMKilled"
    RESTARTS_INCREASING = "RestartsIncreasing"
    DEPLOYMENT_PAUSED = "DeploymentPaused"
    ON_DELETE_UPDATE_PENDING = "OnDeleteUpdatePending"
    ROLLOUT_IN_PROGRESS = "RolloutInProgress"


@dataclass(frozen=True, slots=True)
class Health:
    """A verdict, and the number of the rule that gave it."""

    status: HealthStatus
    reason: str
    rule: int


@dataclass(frozen=True, slots=True)
class _Case:
    """One snapshot, in the words of the rule table."""

    workload: WorkloadFacts
    pods: PodTally
    as_of: datetime

    def none_ready(self) -> bool:
        return self.workload.ready == 0

    def behind(self) -> bool:
        observed = self.workload.observed_generation
        return observed is not None and observed < self.workload.generation

    def in_grace(self) -> HealthStatus:
        created = self.workload.created_at
        young = created is not None and self.as_of - created <= STARTUP_GRACE
        return HealthStatus.DEGRADED if young else HealthStatus.ERROR

    def in_grace_when_down(self) -> HealthStatus:
        down = self.none_ready() and self.workload.desired > 0
        return self.in_grace() if down else HealthStatus.DEGRADED

    def condition(self, kind: str) -> Condition:
        return self.workload.conditions.get(kind, Condition("", ""))

    def deadline_exceeded(self) -> bool:
        return (
            self.workload.kind is WorkloadKind.DEPLOYMENT
            and self.condition("Progressing").reason == Reason.PROGRESS_DEADLINE_EXCEEDED
        )

    def replica_failure(self) -> bool:
        return self.condition("ReplicaFailure").status == "True"

    def some_missing(self) -> bool:
        return min(self.workload.ready, self.workload.available) < self.workload.desired

    def all_failing(self) -> bool:
        return 0 < self.pods.live == self.pods.broken

    def recent(self, moment: datetime | None) -> bool:
        return moment is not None and self.as_of - moment <= RESTART_WINDOW

    def update_pending(self, partition: int = 0) -> bool:
        return self.workload.updated < self.workload.desired - partition


def _nothing_wanted(case: _Case) -> str:
    daemon = case.workload.kind is WorkloadKind.DAEMON_SET
    return Reason.NO_ELIGIBLE_NODES if daemon else Reason.SCALED_TO_ZERO


def _deadline(case: _Case) -> str:
    code, detail = Reason.PROGRESS_DEADLINE_EXCEEDED, _failure(case) or _unschedulable(case)
    return f"{code}: {detail}" if detail else code


def _replica_failure(case: _Case) -> str:
    return case.condition("ReplicaFailure").reason or Reason.REPLICA_FAILURE


def _failure(case: _Case) -> str:
    return case.pods.most_frequent_failure()


def _unschedulable(case: _Case) -> str:
    return Reason.UNSCHEDULABLE if case.pods.unschedulable else ""


def _unavailable(case: _Case) -> str:
    """Hand on why replicas are not available; the reason of a condition that is met is no cause."""
    condition = case.condition("Available")
    return "" if condition.status == "True" else condition.reason


def _replacements_wait(case: _Case) -> str:
    return Reason.REPLICAS_TERMINATING if case.workload.replacements_wait else ""


def _none_ready(case: _Case) -> str:
    said = (
        case.workload.kind is WorkloadKind.DEPLOYMENT
        and _unavailable(case) == Reason.MINIMUM_REPLICAS_UNAVAILABLE
    )
    unnamed = Reason.MINIMUM_REPLICAS_UNAVAILABLE if said else Reason.NO_READY_REPLICAS
    return case.pods.most_frequent_hold() or _replacements_wait(case) or unnamed


def _some_missing(case: _Case) -> str:
    return (
        _failure(case)
        or _unschedulable(case)
        or case.pods.most_frequent_hold()
        or _replacements_wait(case)
        or _unavailable(case)
        or Reason.REPLICAS_NOT_READY
    )


def _crash(case: _Case) -> str:
    killed = case.recent(case.pods.out_of_memory_at)
    return Reason.OOM_KILLED if killed else Reason.RESTARTS_INCREASING


@dataclass(frozen=True, slots=True)
class _Rule:
    number: int
    when: Callable[[_Case], bool]
    status: HealthStatus | Callable[[_Case], HealthStatus]
    reason: str | Callable[[_Case], str]


_OK, _BAD, _ERR = HealthStatus.HEALTHY, HealthStatus.DEGRADED, HealthStatus.ERROR

# fmt: off
_RULES: Final = (
    _Rule(1, lambda c: c.workload.deleting, _BAD, Reason.TERMINATING),
    _Rule(2, lambda c: c.workload.observed_generation is None, _Case.in_grace, Reason.NOT_OBSERVED),
    _Rule(3, _Case.behind, _Case.in_grace_when_down, Reason.GENERATION_NOT_OBSERVED),
    _Rule(4, lambda c: c.workload.desired == 0, _OK, _nothing_wanted),
    _Rule(5, _Case.deadline_exceeded, _ERR, _deadline),
    _Rule(6, lambda c: c.none_ready() and c.replica_failure(), _ERR, _replica_failure),
    _Rule(7, lambda c: c.none_ready() and bool(c.pods.failing), _ERR, _failure),
    _Rule(8, lambda c: c.none_ready() and c.pods.unschedulable > 0, _ERR, Reason.UNSCHEDULABLE),
    _Rule(9, _Case.none_ready, _Case.in_grace, _none_ready),
    _Rule(10, _Case.all_failing, _ERR, _failure),
    _Rule(11, _Case.some_missing, _BAD, _some_missing),
    _Rule(12, _Case.replica_failure, _BAD, _replica_failure),
    _Rule(13, lambda c: bool(c.pods.failing), _BAD, _failure),
    _Rule(14, lambda c: c.recent(c.pods.crashed_at), _BAD, _crash),
    _Rule(15, lambda c: c.workload.paused, _OK, Reason.DEPLOYMENT_PAUSED),
    _Rule(16, lambda c: c.workload.on_delete and c.update_pending(),
          _OK, Reason.ON_DELETE_UPDATE_PENDING),
    _Rule(17, lambda c: c.update_pending(c.workload.partition), _OK, Reason.ROLLOUT_IN_PROGRESS),
    _Rule(18, lambda _: True, _OK, ""),
)
# fmt: on


def derive_health(workload: WorkloadFacts, pods: PodTally, as_of: datetime) -> Health:
    """Judge a workload and its pods as they were at `as_of` (aware)."""
    case = _Case(workload, pods, as_of)
    rule = next(rule for rule in _RULES if rule.when(case))
    status, reason = rule.status, rule.reason
    return Health(
        status=status if isinstance(status, HealthStatus) else status(case),
        reason=str(reason if isinstance(reason, str) else reason(case)),
        rule=rule.number,
    )
