"""The rule table, a line at a time; each case says which rule is to decide."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from workloads.kubernetes.facts import Condition, WorkloadFacts, WorkloadKind
from workloads.kubernetes.health import Health, HealthStatus, derive_health
from workloads.kubernetes.tally import PodTally

AS_OF = datetime(2026, 11, 21, 12, tzinfo=UTC)
DEPLOYMENT, STATEFUL_SET, DAEMON_SET = WorkloadKind
HEALTHY, DEGRADED, ERROR = HealthStatus.HEALTHY, HealthStatus.DEGRADED, HealthStatus.ERROR
CRASH = Counter({"CrashLoopBackOff": 2, "Error": 1})
DEADLINE = {"Progressing": Condition("False", "ProgressDeadlineExceeded")}
REFUSED = {"ReplicaFailure": Condition("True", "FailedCreate")}
UNAVAILABLE = {"Available": Condition("False", "MinimumReplicasUnavailable")}

AVAILABLE = {"Available": Condition("True", "MinimumReplicasAvailable")}
HELD = Counter(DisruptionTarget=2, SchedulingGated=1)


def ago(seconds: float) -> datetime:
    return AS_OF - timedelta(seconds=seconds)


def workload(kind: WorkloadKind = DEPLOYMENT, **facts: Any) -> WorkloadFacts:
    """A workload of which 3 of 3 are ready, unless said otherwise."""
    given = {"desired": 3, "ready": 3, "available": 3, "updated": 3} | facts
    return WorkloadFacts(kind, "demo", "app", **given)


def down(kind: WorkloadKind = DEPLOYMENT, **facts: Any) -> WorkloadFacts:
    return workload(kind, ready=0, available=0, **facts)


CASES: list[tuple[int, WorkloadFacts, PodTally, HealthStatus, str]] = [
    # 1: deletion comes before all else.
    (1, workload(deleting=True), PodTally(), DEGRADED, "Terminating"),
    (1, down(deleting=True, observed_generation=None), PodTally(), DEGRADED, "Terminating"),
    # 2: never observed; the grace includes its last moment.
    (2, down(observed_generation=None, created_at=ago(0)), PodTally(), DEGRADED, "NotObserved"),
    (2, down(observed_generation=None, created_at=ago(300)), PodTally(), DEGRADED, "NotObserved"),
    (2, down(observed_generation=None, created_at=ago(300.001)), PodTally(), ERROR, "NotObserved"),
    (2, down(observed_generation=None, created_at=ago(-60)), PodTally(), DEGRADED, "NotObserved"),
    (2, down(observed_generation=None, created_at=None), PodTally(), ERROR, "NotObserved"),
    (2, workload(observed_generation=None, desired=0), PodTally(), ERROR, "NotObserved"),
    # 3: observed, but not the newest.
    (
        *(3, workload(generation=2, observed_generation=1), PodTally()),
        *(DEGRADED, "GenerationNotObserved"),
    ),
    (
        *(3, workload(generation=2, observed_generation=1, desired=0), PodTally()),
        *(DEGRADED, "GenerationNotObserved"),
    ),
    (
        *(3, down(generation=2, observed_generation=1, created_at=ago(300)), PodTally()),
        *(DEGRADED, "GenerationNotObserved"),
    ),
    (
        *(3, down(generation=2, observed_generation=1, created_at=ago(300.001)), PodTally()),
        *(ERROR, "GenerationNotObserved"),
    ),
    (
        *(3, down(generation=2, observed_generation=1, desired=1), PodTally()),
        *(ERROR, "GenerationNotObserved"),
    ),
    (
        *(3, down(generation=2, observed_generation=1, desired=0), PodTally()),
        *(DEGRADED, "GenerationNotObserved"),
    ),
    (18, workload(generation=2, observed_generation=2), PodTally(), HEALTHY, ""),
    (18, workload(generation=2, observed_generation=3), PodTally(), HEALTHY, ""),
    # 4: nothing wanted, whatever the conditions still say.
    (4, down(desired=0), PodTally(), HEALTHY, "ScaledToZero"),
    (4, down(STATEFUL_SET, desired=0), PodTally(), HEALTHY, "ScaledToZero"),
    (4, down(DAEMON_SET, desired=0), PodTally(), HEALTHY, "NoEligibleNodes"),
    (4, down(desired=0, conditions=DEADLINE), PodTally(failing=CRASH), HEALTHY, "ScaledToZero"),
    # 5: the deadline, also while some replicas are ready.
    (5, down(conditions=DEADLINE), PodTally(), ERROR, "ProgressDeadlineExceeded"),
    (
        *(5, workload(conditions=DEADLINE), PodTally(failing=CRASH)),
        *(ERROR, "ProgressDeadlineExceeded: CrashLoopBackOff"),
    ),
    (
        *(5, down(conditions=DEADLINE), PodTally(unschedulable=2)),
        *(ERROR, "ProgressDeadlineExceeded: Unschedulable"),
    ),
    (
        *(5, down(conditions=DEADLINE), PodTally(unschedulable=2, failing=CRASH)),
        *(ERROR, "ProgressDeadlineExceeded: CrashLoopBackOff"),
    ),
    (9, down(STATEFUL_SET, conditions=DEADLINE), PodTally(), ERROR, "NoReadyReplicas"),
    (5, down(conditions=DEADLINE | REFUSED), PodTally(), ERROR, "ProgressDeadlineExceeded"),
    # 6: no pod could be made.
    (6, down(conditions=REFUSED), PodTally(failing=CRASH), ERROR, "FailedCreate"),
    (
        *(6, down(conditions={"ReplicaFailure": Condition("True", "")}), PodTally()),
        *(ERROR, "ReplicaFailure"),
    ),
    (
        *(9, down(conditions={"ReplicaFailure": Condition("False", "FailedCreate")}), PodTally()),
        *(ERROR, "NoReadyReplicas"),
    ),
    # 7: none ready and something fails.
    (7, down(), PodTally(failing=CRASH, unschedulable=1), ERROR, "CrashLoopBackOff"),
    (7, down(created_at=ago(1)), PodTally(failing=CRASH), ERROR, "CrashLoopBackOff"),
    # 8: none ready and no place.
    (8, down(created_at=ago(1)), PodTally(unschedulable=1), ERROR, "Unschedulable"),
    # 9: none ready and nothing to blame.
    (9, down(created_at=ago(300)), PodTally(), DEGRADED, "NoReadyReplicas"),
    (9, down(created_at=ago(300.001)), PodTally(), ERROR, "NoReadyReplicas"),
    (9, down(), PodTally(), ERROR, "NoReadyReplicas"),
    (9, down(conditions=UNAVAILABLE), PodTally(), ERROR, "MinimumReplicasUnavailable"),
    (9, down(STATEFUL_SET, conditions=UNAVAILABLE), PodTally(), ERROR, "NoReadyReplicas"),
    (
        *(9, down(conditions={"Available": Condition("False", "Other")}), PodTally()),
        *(ERROR, "NoReadyReplicas"),
    ),
    (9, down(), PodTally(held=Counter(SchedulingGated=1)), ERROR, "SchedulingGated"),
    (
        *(9, down(conditions=UNAVAILABLE), PodTally(held=Counter(ReadinessGatesNotReady=2))),
        *(ERROR, "ReadinessGatesNotReady"),
    ),
    (
        *(9, down(created_at=ago(1)), PodTally(held=Counter(SchedulingGated=1))),
        *(DEGRADED, "SchedulingGated"),
    ),
    (
        *(9, down(conditions=UNAVAILABLE, replacements_wait=True), PodTally()),
        *(ERROR, "ReplicasTerminating"),
    ),
    (
        *(9, down(replacements_wait=True), PodTally(held=Counter(SchedulingGated=1))),
        *(ERROR, "SchedulingGated"),
    ),
    # 10: the counts still say ready, but every container fails.
    (10, workload(), PodTally(live=3, broken=3, failing=CRASH), ERROR, "CrashLoopBackOff"),
    (10, workload(ready=1), PodTally(live=3, broken=3, failing=CRASH), ERROR, "CrashLoopBackOff"),
    (10, workload(), PodTally(live=1, broken=1, failing=CRASH), ERROR, "CrashLoopBackOff"),
    (13, workload(), PodTally(live=3, broken=2, failing=CRASH), DEGRADED, "CrashLoopBackOff"),
    # 11: some are missing.
    (11, workload(ready=2), PodTally(), DEGRADED, "ReplicasNotReady"),
    (11, workload(available=2), PodTally(), DEGRADED, "ReplicasNotReady"),
    (
        *(11, workload(ready=1, conditions=UNAVAILABLE), PodTally(failing=CRASH, unschedulable=1)),
        *(DEGRADED, "CrashLoopBackOff"),
    ),
    (
        *(11, workload(ready=1, conditions=UNAVAILABLE), PodTally(unschedulable=1)),
        *(DEGRADED, "Unschedulable"),
    ),
    (
        *(11, workload(available=0, conditions=UNAVAILABLE), PodTally()),
        *(DEGRADED, "MinimumReplicasUnavailable"),
    ),
    (
        *(11, workload(ready=1, conditions=AVAILABLE), PodTally()),
        *(DEGRADED, "ReplicasNotReady"),
    ),
    (
        *(11, workload(ready=1, conditions=UNAVAILABLE), PodTally(held=HELD)),
        *(DEGRADED, "DisruptionTarget"),
    ),
    (
        *(11, workload(ready=1), PodTally(held=HELD, unschedulable=1)),
        *(DEGRADED, "Unschedulable"),
    ),
    (
        *(11, workload(ready=2, conditions=UNAVAILABLE, replacements_wait=True), PodTally()),
        *(DEGRADED, "ReplicasTerminating"),
    ),
    (
        *(11, workload(ready=2, replacements_wait=True), PodTally(unschedulable=1)),
        *(DEGRADED, "Unschedulable"),
    ),
    (
        *(11, workload(ready=2, conditions=REFUSED), PodTally()),
        *(DEGRADED, "ReplicasNotReady"),
    ),
    # 12: all there, but a further pod could not be made.
    (12, workload(conditions=REFUSED), PodTally(failing=CRASH), DEGRADED, "FailedCreate"),
    (
        *(12, workload(conditions={"ReplicaFailure": Condition("True", "")}), PodTally()),
        *(DEGRADED, "ReplicaFailure"),
    ),
    # 13: all there, but a further pod fails.
    (13, workload(), PodTally(failing=CRASH), DEGRADED, "CrashLoopBackOff"),
    (13, workload(paused=True), PodTally(failing=CRASH), DEGRADED, "CrashLoopBackOff"),
    (
        *(13, workload(), PodTally(failing=CRASH, crashed_at=ago(5))),
        *(DEGRADED, "CrashLoopBackOff"),
    ),
    # 14: restarted lately; the window includes its last moment.
    (14, workload(), PodTally(crashed_at=ago(0)), DEGRADED, "RestartsIncreasing"),
    (14, workload(), PodTally(crashed_at=ago(600)), DEGRADED, "RestartsIncreasing"),
    (18, workload(), PodTally(crashed_at=ago(600.001)), HEALTHY, ""),
    (
        *(14, workload(), PodTally(crashed_at=ago(5), out_of_memory_at=ago(600))),
        *(DEGRADED, "OOMKilled"),
    ),
    (
        *(14, workload(), PodTally(crashed_at=ago(5), out_of_memory_at=ago(601))),
        *(DEGRADED, "RestartsIncreasing"),
    ),
    (14, workload(paused=True), PodTally(crashed_at=ago(5)), DEGRADED, "RestartsIncreasing"),
    # 15: paused, whatever is left to update.
    (15, workload(paused=True), PodTally(), HEALTHY, "DeploymentPaused"),
    (15, workload(paused=True, updated=1), PodTally(), HEALTHY, "DeploymentPaused"),
    # 16: waits for somebody to delete pods.
    (
        *(16, workload(STATEFUL_SET, on_delete=True, updated=2), PodTally()),
        *(HEALTHY, "OnDeleteUpdatePending"),
    ),
    (
        *(16, workload(DAEMON_SET, on_delete=True, updated=0), PodTally()),
        *(HEALTHY, "OnDeleteUpdatePending"),
    ),
    (18, workload(DAEMON_SET, on_delete=True), PodTally(), HEALTHY, ""),
    # 17: on its way.
    (17, workload(updated=2), PodTally(), HEALTHY, "RolloutInProgress"),
    (17, workload(DAEMON_SET, updated=0), PodTally(), HEALTHY, "RolloutInProgress"),
    (
        *(17, workload(STATEFUL_SET, updated=0, partition=2), PodTally()),
        *(HEALTHY, "RolloutInProgress"),
    ),
    (18, workload(STATEFUL_SET, updated=1, partition=2), PodTally(), HEALTHY, ""),
    (18, workload(STATEFUL_SET, updated=0, partition=5), PodTally(), HEALTHY, ""),
    # 18: nothing to say.
    (18, workload(), PodTally(live=3), HEALTHY, ""),
    (18, workload(ready=4, available=4), PodTally(live=4), HEALTHY, ""),
]


@pytest.mark.parametrize(("rule", "facts", "pods", "status", "reason"), CASES)
def test_rule(
    rule: int, facts: WorkloadFacts, pods: PodTally, status: HealthStatus, reason: str
) -> None:
    assert derive_health(facts, pods, AS_OF) == Health(status, reason, rule)


def test_every_rule_has_its_case() -> None:
    assert {rule for rule, *_ in CASES} == set(range(1, 19))


def test_the_verdict_holds_plain_text() -> None:
    verdict = derive_health(down(conditions=DEADLINE), PodTally(), AS_OF)
    assert type(verdict.reason) is str
    assert verdict.status == "ERROR"


def test_wire_values() -> None:
    assert [status.value for status in HealthStatus] == [
        "WORKLOAD_HEALTH_STATUS_UNSPECIFIED",
        "HEALTHY",
        "DEGRADED",
        "ERROR",
    ]
