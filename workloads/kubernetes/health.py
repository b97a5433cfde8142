"""The health of a workload: a pure function of a snapshot.

The rules match the table in docs/reference/workload-health.md, in the same order. The first
matching rule decides. The time of the report is an argument, so a replayed report has the same
result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from workloads.kubernetes import facts
from workloads.kubernetes.case import PROGRESS_DEADLINE_EXCEEDED as DEADLINE_EXCEEDED
from workloads.kubernetes.case import Case
from workloads.kubernetes.facts import WorkloadFacts, WorkloadKind
from workloads.kubernetes.tally import PodTally, most_frequent


class HealthStatus(StrEnum):
    """The values of `health_status` in the API."""

    UNSPECIFIED = "WORKLOAD_HEALTH_STATUS_UNSPECIFIED"
    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    ERROR = "ERROR"


class Reason(StrEnum):
    """The codes of `status_reason` that the rules define.

    Other codes come from Kubernetes: the reason of a failing container, a Failed pod or a
    condition.
    """

    TERMINATING = "Terminating"
    NOT_OBSERVED = "NotObserved"
    GENERATION_NOT_OBSERVED = "GenerationNotObserved"
    SCALED_TO_ZERO = "ScaledToZero"
    NO_ELIGIBLE_NODES = "NoEligibleNodes"
    PROGRESS_DEADLINE_EXCEEDED = DEADLINE_EXCEEDED
    REPLICA_FAILURE = "ReplicaFailure"
    UNSCHEDULABLE = facts.UNSCHEDULABLE
    MINIMUM_REPLICAS_UNAVAILABLE = "MinimumReplicasUnavailable"
    NO_READY_REPLICAS = "NoReadyReplicas"
    SCHEDULING_GATED = facts.SCHEDULING_GATED
    READINESS_GATES_NOT_READY = facts.GATES_NOT_READY
    DISRUPTION_TARGET = facts.DISRUPTION_TARGET
    NODE_LOST = facts.NODE_LOST
    REPLICAS_TERMINATING = "ReplicasTerminating"
    REPLICAS_NOT_READY = "ReplicasNotReady"
    REPLICAS_NOT_AVAILABLE = "ReplicasNotAvailable"
    OOM_KILLED = "OOMKilled"
    RESTARTS_INCREASING = "RestartsIncreasing"
    DEPLOYMENT_PAUSED = "DeploymentPaused"
    ON_DELETE_UPDATE_PENDING = "OnDeleteUpdatePending"
    ROLLOUT_IN_PROGRESS = "RolloutInProgress"


@dataclass(frozen=True, slots=True)
class Health:
    """The health, its reason, and the number of the rule that decided."""

    status: HealthStatus
    reason: str
    rule: int


def _in_grace(case: Case) -> HealthStatus:
    return HealthStatus.ERROR if case.needs_help() else HealthStatus.DEGRADED


def _in_grace_when_down(case: Case) -> HealthStatus:
    return _in_grace(case) if case.down() else HealthStatus.DEGRADED


def _error_when_down(case: Case) -> HealthStatus:
    return HealthStatus.ERROR if case.down() else HealthStatus.DEGRADED


def _no_replicas_desired(case: Case) -> str:
    daemon = case.workload.kind is WorkloadKind.DAEMON_SET
    return Reason.NO_ELIGIBLE_NODES if daemon else Reason.SCALED_TO_ZERO


def _failure(case: Case) -> str:
    return most_frequent(case.pods.failing)


def _waiting(case: Case) -> str:
    return Reason.UNSCHEDULABLE if case.pods.unschedulable else most_frequent(case.pods.held)


def _missing(case: Case) -> str:
    """Return the reason why pods are missing."""
    if case.workload.replacements_wait or (case.fewer_live() and case.pods.terminating):
        return Reason.REPLICAS_TERMINATING
    return most_frequent(case.pods.failed) if case.fewer_live() else ""


def _cause(case: Case) -> str:
    return _failure(case) or _waiting(case) or _missing(case)


def _deadline(case: Case) -> str:
    code, detail = Reason.PROGRESS_DEADLINE_EXCEEDED, _cause(case)
    return f"{code}: {detail}" if detail else code


def _replica_failure(case: Case) -> str:
    return case.condition("ReplicaFailure").reason or Reason.REPLICA_FAILURE


def _update(case: Case) -> str:
    """Return the reason for missing pods if an update replaces them or is paused, or ""."""
    if case.workload.paused and case.updating():
        return Reason.DEPLOYMENT_PAUSED
    if not case.workload.revision_pending:
        return ""
    if case.waits_for_deletions():
        return Reason.ON_DELETE_UPDATE_PENDING
    # With OnDelete, the current revision remains old even after all pods are updated.
    return "" if case.workload.on_delete else Reason.ROLLOUT_IN_PROGRESS


def _unavailable(case: Case) -> str:
    """Return the reason of the condition Available, or "" if the condition is true."""
    condition = case.condition("Available")
    return "" if condition.status == "True" else condition.reason


def _not_ready(case: Case) -> str:
    is_short_of_replicas = (
        case.workload.kind is WorkloadKind.DEPLOYMENT
        and _unavailable(case) == Reason.MINIMUM_REPLICAS_UNAVAILABLE
    )
    unnamed = (
        Reason.MINIMUM_REPLICAS_UNAVAILABLE if is_short_of_replicas else Reason.NO_READY_REPLICAS
    )
    return _cause(case) or _update(case) or unnamed


def _some_missing(case: Case) -> str:
    all_ready = case.workload.ready >= case.workload.desired
    unnamed = Reason.REPLICAS_NOT_AVAILABLE if all_ready else Reason.REPLICAS_NOT_READY
    return _cause(case) or _update(case) or _unavailable(case) or unnamed


def _stuck(case: Case) -> str:
    """Return the reason why another pod is not ready, unless the rollout is paused."""
    unnamed = "" if case.workload.paused else Reason.REPLICAS_NOT_READY
    return _waiting(case) or most_frequent(case.pods.starting) or unnamed


def _restart(case: Case) -> str:
    killed = any(case.recent_restarts())
    return Reason.OOM_KILLED if killed else Reason.RESTARTS_INCREASING


@dataclass(frozen=True, slots=True)
class _Rule:
    number: int
    when: Callable[[Case], bool]
    status: HealthStatus | Callable[[Case], HealthStatus]
    reason: str | Callable[[Case], str]


_OK, _BAD, _ERR = HealthStatus.HEALTHY, HealthStatus.DEGRADED, HealthStatus.ERROR

# fmt: off
_RULES: Final = (
    _Rule(1, lambda c: c.workload.deleting, _BAD, Reason.TERMINATING),
    _Rule(2, Case.refused, _error_when_down, lambda c: c.condition("Progressing").reason),
    _Rule(3, lambda c: c.workload.observed_generation is None, _in_grace, Reason.NOT_OBSERVED),
    _Rule(4, Case.overlooked, _in_grace_when_down, Reason.GENERATION_NOT_OBSERVED),
    _Rule(5, lambda c: c.workload.desired == 0, _OK, _no_replicas_desired),
    _Rule(6, Case.deadline_exceeded, _ERR, _deadline),
    _Rule(7, lambda c: c.no_pod_ready() and c.replica_failure(), _ERR, _replica_failure),
    _Rule(8, lambda c: c.no_pod_ready() and bool(c.pods.failing), _ERR, _failure),
    _Rule(9, Case.no_pod_ready, _in_grace, _not_ready),
    _Rule(10, Case.all_failing, _ERR, _failure),
    _Rule(11, Case.some_missing, _BAD, _some_missing),
    _Rule(12, Case.replica_failure, _BAD, _replica_failure),
    _Rule(13, lambda c: bool(c.pods.failing), _BAD, _failure),
    _Rule(14, lambda c: c.stuck() and bool(_stuck(c)), _BAD, _stuck),
    _Rule(15, lambda c: bool(c.recent_restarts()), _BAD, _restart),
    _Rule(16, lambda c: c.workload.paused, _OK, Reason.DEPLOYMENT_PAUSED),
    _Rule(17, Case.waits_for_deletions, _OK, Reason.ON_DELETE_UPDATE_PENDING),
    _Rule(18, Case.updating, _OK, Reason.ROLLOUT_IN_PROGRESS),
    _Rule(19, lambda c: bool(c.pods.resizing), _OK, lambda c: most_frequent(c.pods.resizing)),
    _Rule(20, Case.stuck_terminating, _OK, Reason.REPLICAS_TERMINATING),
    _Rule(21, lambda _: True, _OK, ""),
)
# fmt: on


def derive_health(workload: WorkloadFacts, pods: PodTally, as_of: datetime) -> Health:
    """Return the health of a workload and its pods at `as_of` (aware)."""
    case = Case(workload, pods, as_of)
    rule = next(rule for rule in _RULES if rule.when(case))
    status, reason = rule.status, rule.reason
    return Health(
        status=status if isinstance(status, HealthStatus) else status(case),
        reason=str(reason if isinstance(reason, str) else reason(case)),
        rule=rule.number,
    )
