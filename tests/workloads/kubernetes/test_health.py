"""The rule table, a line at a time; each case names the rule that decides."""

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
RS_REFUSED = {"Progressing": Condition("False", "ReplicaSetCreateError")}
UPDATING = {"Progressing": Condition("True", "ReplicaSetUpdated")}
UPDATED = {"Progressing": Condition("True", "NewReplicaSetAvailable")}
HELD = Counter(DisruptionTarget=2, SchedulingGated=1)


def ago(seconds: float) -> datetime:
    return AS_OF - timedelta(seconds=seconds)


def workload(kind: WorkloadKind = DEPLOYMENT, **facts: Any) -> WorkloadFacts:
    """A workload with 3 of 3 replicas ready, unless given otherwise."""
    given = {"desired": 3, "ready": 3, "available": 3, "updated": 3} | facts
    return WorkloadFacts(kind, "demo", "app", **given)


def down(kind: WorkloadKind = DEPLOYMENT, **facts: Any) -> WorkloadFacts:
    return workload(kind, ready=0, available=0, **facts)


CASES: list[tuple[int, WorkloadFacts, PodTally, HealthStatus, str]] = [
    # 1: deletion comes before all else.
    (1, workload(deleting=True), PodTally(), DEGRADED, "Terminating"),
    (1, down(deleting=True, observed_generation=None), PodTally(), DEGRADED, "Terminating"),
    # 2: the controller cannot begin, which precedes the outdated status that results from it.
    (
        *(2, down(conditions=RS_REFUSED, observed_generation=None), PodTally()),
        *(ERROR, "ReplicaSetCreateError"),
    ),
    (
        *(2, workload(conditions=RS_REFUSED, generation=2, observed_generation=1), PodTally()),
        *(DEGRADED, "ReplicaSetCreateError"),
    ),
    (
        *(2, down(conditions=RS_REFUSED, desired=0), PodTally()),
        *(DEGRADED, "ReplicaSetCreateError"),
    ),
    (
        *(21, workload(conditions={"Progressing": Condition("False", "")}), PodTally()),
        *(HEALTHY, ""),
    ),
    (21, workload(STATEFUL_SET, conditions=RS_REFUSED), PodTally(), HEALTHY, ""),
    # 3: never observed; the grace includes its last moment.
    (3, down(observed_generation=None, created_at=ago(0)), PodTally(), DEGRADED, "NotObserved"),
    (3, down(observed_generation=None, created_at=ago(300)), PodTally(), DEGRADED, "NotObserved"),
    (3, down(observed_generation=None, created_at=ago(300.001)), PodTally(), ERROR, "NotObserved"),
    (3, down(observed_generation=None, created_at=ago(-60)), PodTally(), DEGRADED, "NotObserved"),
    (3, down(observed_generation=None, created_at=None), PodTally(), ERROR, "NotObserved"),
    (3, workload(observed_generation=None, desired=0), PodTally(), ERROR, "NotObserved"),
    # 4: observed, but not the newest.
    (
        *(4, workload(generation=2, observed_generation=1), PodTally()),
        *(DEGRADED, "GenerationNotObserved"),
    ),
    (
        *(4, workload(generation=2, observed_generation=1, desired=0), PodTally()),
        *(DEGRADED, "GenerationNotObserved"),
    ),
    (
        *(4, down(generation=2, observed_generation=1, created_at=ago(300)), PodTally()),
        *(DEGRADED, "GenerationNotObserved"),
    ),
    (
        *(4, down(generation=2, observed_generation=1, created_at=ago(300.001)), PodTally()),
        *(ERROR, "GenerationNotObserved"),
    ),
    (
        *(4, down(generation=2, observed_generation=1, desired=1), PodTally()),
        *(ERROR, "GenerationNotObserved"),
    ),
    (
        *(4, down(generation=2, observed_generation=1, desired=0), PodTally()),
        *(DEGRADED, "GenerationNotObserved"),
    ),
    # A change has ten seconds to be observed; until then the status of before counts.
    (
        21,
        workload(generation=2, observed_generation=1, changed_at=ago(10)),
        PodTally(),
        HEALTHY,
        "",
    ),
    (
        *(4, workload(generation=2, observed_generation=1, changed_at=ago(10.001)), PodTally()),
        *(DEGRADED, "GenerationNotObserved"),
    ),
    (
        *(9, down(generation=2, observed_generation=1, changed_at=ago(1)), PodTally()),
        *(DEGRADED, "NoReadyReplicas"),
    ),
    (
        *(
            6,
            down(generation=2, observed_generation=1, changed_at=ago(1), conditions=DEADLINE),
            PodTally(),
        ),
        *(ERROR, "ProgressDeadlineExceeded"),
    ),
    (21, workload(generation=2, observed_generation=2), PodTally(), HEALTHY, ""),
    (21, workload(generation=2, observed_generation=3), PodTally(), HEALTHY, ""),
    # 5: no replicas wanted, whatever the conditions still are.
    (5, down(desired=0), PodTally(), HEALTHY, "ScaledToZero"),
    (5, down(STATEFUL_SET, desired=0), PodTally(), HEALTHY, "ScaledToZero"),
    (5, down(DAEMON_SET, desired=0), PodTally(), HEALTHY, "NoEligibleNodes"),
    (5, down(desired=0, conditions=DEADLINE), PodTally(failing=CRASH), HEALTHY, "ScaledToZero"),
    # 6: the deadline, also while some replicas are ready.
    (6, down(conditions=DEADLINE), PodTally(), ERROR, "ProgressDeadlineExceeded"),
    (
        *(6, workload(conditions=DEADLINE), PodTally(failing=CRASH)),
        *(ERROR, "ProgressDeadlineExceeded: CrashLoopBackOff"),
    ),
    (
        *(6, down(conditions=DEADLINE), PodTally(unschedulable=2)),
        *(ERROR, "ProgressDeadlineExceeded: Unschedulable"),
    ),
    (
        *(6, down(conditions=DEADLINE), PodTally(unschedulable=2, failing=CRASH)),
        *(ERROR, "ProgressDeadlineExceeded: CrashLoopBackOff"),
    ),
    (9, down(STATEFUL_SET, conditions=DEADLINE), PodTally(), ERROR, "NoReadyReplicas"),
    (6, down(conditions=DEADLINE | REFUSED), PodTally(), ERROR, "ProgressDeadlineExceeded"),
    # 7: no pod could be made.
    (7, down(conditions=REFUSED), PodTally(failing=CRASH), ERROR, "FailedCreate"),
    (
        *(7, down(conditions={"ReplicaFailure": Condition("True", "")}), PodTally()),
        *(ERROR, "ReplicaFailure"),
    ),
    (
        *(9, down(conditions={"ReplicaFailure": Condition("False", "FailedCreate")}), PodTally()),
        *(ERROR, "NoReadyReplicas"),
    ),
    # 8: no replica ready, and a container fails.
    (8, down(), PodTally(failing=CRASH, unschedulable=1), ERROR, "CrashLoopBackOff"),
    (8, down(created_at=ago(1)), PodTally(failing=CRASH), ERROR, "CrashLoopBackOff"),
    # 9: no replica ready, and no node has room.
    (9, down(created_at=ago(1)), PodTally(unschedulable=1), DEGRADED, "Unschedulable"),
    (9, down(created_at=ago(301)), PodTally(unschedulable=1), ERROR, "Unschedulable"),
    # 9: no replica ready, without a cause.
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
    # The grace starts with the transition of Available, and not with the creation ...
    (
        *(9, down(created_at=ago(9999), unavailable_since=ago(300)), PodTally()),
        *(DEGRADED, "NoReadyReplicas"),
    ),
    (
        *(9, down(created_at=ago(9999), unavailable_since=ago(300.001)), PodTally()),
        *(ERROR, "NoReadyReplicas"),
    ),
    # ... however young its pods are: they are replaced again and again.
    (
        *(
            9,
            down(created_at=ago(9999), unavailable_since=ago(7200)),
            PodTally(live=1, unready_since=ago(40)),
        ),
        *(ERROR, "NoReadyReplicas"),
    ),
    # ... but not before the creation, if a controller's clock is behind.
    (
        *(9, down(created_at=ago(200), unavailable_since=ago(7200)), PodTally()),
        *(DEGRADED, "NoReadyReplicas"),
    ),
    # Without that condition: with the oldest live pod, else with the pods that are gone.
    (
        *(9, down(STATEFUL_SET, created_at=ago(9999)), PodTally(live=1, unready_since=ago(300))),
        *(DEGRADED, "NoReadyReplicas"),
    ),
    (
        *(9, down(DAEMON_SET, created_at=ago(9999)), PodTally(live=3, unready_since=ago(301))),
        *(ERROR, "NoReadyReplicas"),
    ),
    (
        *(
            9,
            down(STATEFUL_SET, created_at=ago(9999)),
            PodTally(terminating=1, terminating_since=ago(-30)),
        ),
        *(DEGRADED, "ReplicasTerminating"),
    ),
    (
        *(
            9,
            down(STATEFUL_SET, created_at=ago(9999)),
            PodTally(terminating=1, terminating_since=ago(301)),
        ),
        *(ERROR, "ReplicasTerminating"),
    ),
    (
        *(
            9,
            down(DAEMON_SET, created_at=ago(9999)),
            PodTally(failed=Counter(Evicted=2, OutOfcpu=1), failed_since=ago(5)),
        ),
        *(DEGRADED, "Evicted"),
    ),
    (
        *(
            9,
            down(STATEFUL_SET, created_at=ago(9999)),
            PodTally(live=3, unready_since=ago(9), failed=Counter(Evicted=2)),
        ),
        *(DEGRADED, "NoReadyReplicas"),
    ),
    # A moment far after the report is of another clock; the next best counts.
    (
        *(9, down(created_at=ago(9999), unavailable_since=ago(-300)), PodTally()),
        *(DEGRADED, "NoReadyReplicas"),
    ),
    (
        *(9, down(created_at=ago(9999), unavailable_since=ago(-301)), PodTally()),
        *(ERROR, "NoReadyReplicas"),
    ),
    (
        *(9, down(STATEFUL_SET, created_at=ago(200)), PodTally(live=1, unready_since=ago(-86400))),
        *(DEGRADED, "NoReadyReplicas"),
    ),
    (
        *(9, down(STATEFUL_SET, created_at=ago(301)), PodTally(live=1, unready_since=ago(-86400))),
        *(ERROR, "NoReadyReplicas"),
    ),
    (
        *(
            9,
            down(STATEFUL_SET, created_at=ago(9999)),
            PodTally(terminating=1, terminating_since=ago(-3600)),
        ),
        *(DEGRADED, "ReplicasTerminating"),
    ),
    # A declared deadline extends it, as long as the controller makes progress.
    (
        *(
            9,
            down(unavailable_since=ago(1800), progress_deadline=1800, conditions=UPDATING),
            PodTally(),
        ),
        *(DEGRADED, "NoReadyReplicas"),
    ),
    (
        *(
            9,
            down(unavailable_since=ago(1801), progress_deadline=1800, conditions=UPDATING),
            PodTally(),
        ),
        *(ERROR, "NoReadyReplicas"),
    ),
    (
        *(
            9,
            down(unavailable_since=ago(300), progress_deadline=20, conditions=UPDATING),
            PodTally(),
        ),
        *(DEGRADED, "NoReadyReplicas"),
    ),
    (
        *(
            9,
            down(unavailable_since=ago(301), progress_deadline=1800, conditions=UPDATED),
            PodTally(),
        ),
        *(ERROR, "NoReadyReplicas"),
    ),
    # A StatefulSet that replaces its pods, a rollout that was stopped half-way.
    (
        *(9, down(STATEFUL_SET, revision_pending=True), PodTally(live=1, unready_since=ago(9))),
        *(DEGRADED, "RolloutInProgress"),
    ),
    (
        *(
            9,
            down(STATEFUL_SET, revision_pending=True, on_delete=True, updated=1),
            PodTally(live=3, unready_since=ago(9)),
        ),
        *(DEGRADED, "OnDeleteUpdatePending"),
    ),
    (
        *(
            9,
            down(STATEFUL_SET, revision_pending=True, on_delete=True),
            PodTally(live=3, unready_since=ago(9)),
        ),
        *(DEGRADED, "NoReadyReplicas"),
    ),
    (
        *(21, workload(STATEFUL_SET, revision_pending=False, on_delete=True, updated=2)),
        *(PodTally(), HEALTHY, ""),
    ),
    (
        *(9, down(paused=True, updated=1, conditions=UNAVAILABLE), PodTally(live=3)),
        *(ERROR, "DeploymentPaused"),
    ),
    # A pod is ready, and its controller has not counted it yet.
    (11, down(STATEFUL_SET), PodTally(live=3, ready=1), DEGRADED, "ReplicasNotReady"),
    # 10: the counts are still ready, but every container fails.
    (10, workload(), PodTally(live=3, broken=3, failing=CRASH), ERROR, "CrashLoopBackOff"),
    (10, workload(ready=1), PodTally(live=3, broken=3, failing=CRASH), ERROR, "CrashLoopBackOff"),
    (10, workload(), PodTally(live=1, broken=1, failing=CRASH), ERROR, "CrashLoopBackOff"),
    (13, workload(), PodTally(live=3, broken=2, failing=CRASH), DEGRADED, "CrashLoopBackOff"),
    # 11: some are missing.
    (11, workload(ready=2), PodTally(), DEGRADED, "ReplicasNotReady"),
    (11, workload(available=2), PodTally(), DEGRADED, "ReplicasNotAvailable"),
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
    (
        *(11, workload(ready=2, conditions=AVAILABLE, paused=True, updated=1), PodTally(live=3)),
        *(DEGRADED, "DeploymentPaused"),
    ),
    (
        *(11, workload(DAEMON_SET, ready=2), PodTally(live=2, terminating=1)),
        *(DEGRADED, "ReplicasTerminating"),
    ),
    (
        *(11, workload(DAEMON_SET, ready=2), PodTally(live=2, failed=Counter(NodeAffinity=1))),
        *(DEGRADED, "NodeAffinity"),
    ),
    (
        *(11, workload(STATEFUL_SET, ready=2, revision_pending=True, updated=1), PodTally(live=3)),
        *(DEGRADED, "RolloutInProgress"),
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
        *(13, workload(), PodTally(failing=CRASH, restarts=[(ago(5), False)])),
        *(DEGRADED, "CrashLoopBackOff"),
    ),
    # 14: all there, but a further pod does not become ready within the grace.
    (
        *(14, workload(surplus=1), PodTally(live=4, unready_since=ago(301), unschedulable=1)),
        *(DEGRADED, "Unschedulable"),
    ),
    (
        *(18, workload(surplus=1), PodTally(live=4, unready_since=ago(300), unschedulable=1)),
        *(HEALTHY, "RolloutInProgress"),
    ),
    (
        *(
            14,
            workload(surplus=1),
            PodTally(live=4, unready_since=ago(301), starting=Counter(ContainerCreating=1)),
        ),
        *(DEGRADED, "ContainerCreating"),
    ),
    (
        *(14, workload(surplus=1), PodTally(live=4, unready_since=ago(301))),
        *(DEGRADED, "ReplicasNotReady"),
    ),
    (
        *(
            18,
            workload(surplus=1, progress_deadline=600, conditions=UPDATING),
            PodTally(live=4, unready_since=ago(600), unschedulable=1),
        ),
        *(HEALTHY, "RolloutInProgress"),
    ),
    (
        *(16, workload(surplus=1, paused=True), PodTally(live=4, unready_since=ago(301))),
        *(HEALTHY, "DeploymentPaused"),
    ),
    (
        *(14, workload(paused=True), PodTally(live=4, unready_since=ago(301), unschedulable=1)),
        *(DEGRADED, "Unschedulable"),
    ),
    # 15: restarted lately; the window includes its last moment.
    (15, workload(), PodTally(restarts=[(ago(0), False)]), DEGRADED, "RestartsIncreasing"),
    (15, workload(), PodTally(restarts=[(ago(600), False)]), DEGRADED, "RestartsIncreasing"),
    (21, workload(), PodTally(restarts=[(ago(600.001), False)]), HEALTHY, ""),
    (
        *(15, workload(), PodTally(restarts=[(ago(5), False), (ago(600), True)])),
        *(DEGRADED, "OOMKilled"),
    ),
    (
        *(15, workload(), PodTally(restarts=[(ago(5), False), (ago(601), True)])),
        *(DEGRADED, "RestartsIncreasing"),
    ),
    (
        15,
        workload(paused=True),
        PodTally(restarts=[(ago(5), False)]),
        DEGRADED,
        "RestartsIncreasing",
    ),
    # An end after the report comes from a node whose clock is ahead, and hides no other.
    (21, workload(), PodTally(restarts=[(ago(-1), True)]), HEALTHY, ""),
    (
        *(15, workload(), PodTally(restarts=[(ago(-1), True), (ago(5), False)])),
        *(DEGRADED, "RestartsIncreasing"),
    ),
    # 16: paused, whatever is left to update.
    (16, workload(paused=True), PodTally(), HEALTHY, "DeploymentPaused"),
    (16, workload(paused=True, updated=1), PodTally(), HEALTHY, "DeploymentPaused"),
    # 17: waits for an operator to delete pods.
    (
        *(17, workload(STATEFUL_SET, on_delete=True, updated=2), PodTally()),
        *(HEALTHY, "OnDeleteUpdatePending"),
    ),
    (
        *(17, workload(DAEMON_SET, on_delete=True, updated=0), PodTally()),
        *(HEALTHY, "OnDeleteUpdatePending"),
    ),
    (21, workload(DAEMON_SET, on_delete=True), PodTally(), HEALTHY, ""),
    # 18: on its way.
    (18, workload(updated=2), PodTally(), HEALTHY, "RolloutInProgress"),
    (18, workload(DAEMON_SET, updated=0), PodTally(), HEALTHY, "RolloutInProgress"),
    (
        *(18, workload(STATEFUL_SET, updated=0, partition=2), PodTally()),
        *(HEALTHY, "RolloutInProgress"),
    ),
    (21, workload(STATEFUL_SET, updated=1, partition=2), PodTally(), HEALTHY, ""),
    (21, workload(STATEFUL_SET, updated=0, partition=5), PodTally(), HEALTHY, ""),
    (18, workload(surplus=1), PodTally(live=4), HEALTHY, "RolloutInProgress"),
    (
        *(18, workload(STATEFUL_SET, updated=2, revision_pending=True), PodTally()),
        *(HEALTHY, "RolloutInProgress"),
    ),
    # A pod that is being deleted is not counted as updated, and yet of the same revision.
    (21, workload(STATEFUL_SET, updated=2, revision_pending=False), PodTally(), HEALTHY, ""),
    # 19: a resize that its node does not perform.
    (
        *(19, workload(), PodTally(live=3, resizing=Counter(ResizeDeferred=1))),
        *(HEALTHY, "ResizeDeferred"),
    ),
    (
        *(18, workload(updated=2), PodTally(live=3, resizing=Counter(ResizeInfeasible=1))),
        *(HEALTHY, "RolloutInProgress"),
    ),
    # 20: pods that should have terminated still hold their resources.
    (
        *(20, workload(), PodTally(live=3, terminating=3, terminating_since=ago(301))),
        *(HEALTHY, "ReplicasTerminating"),
    ),
    (21, workload(), PodTally(live=3, terminating=3, terminating_since=ago(300)), HEALTHY, ""),
    # 21: no message.
    (21, workload(), PodTally(live=3), HEALTHY, ""),
    (21, workload(ready=4, available=4), PodTally(live=4), HEALTHY, ""),
]


@pytest.mark.parametrize(("rule", "facts", "pods", "status", "reason"), CASES)
def test_each_rule_applies(
    rule: int, facts: WorkloadFacts, pods: PodTally, status: HealthStatus, reason: str
) -> None:
    assert derive_health(facts, pods, AS_OF) == Health(status, reason, rule)


def test_every_rule_has_its_case() -> None:
    assert {rule for rule, *_ in CASES} == set(range(1, 22))


def test_the_verdict_holds_plain_text() -> None:
    verdict = derive_health(down(conditions=DEADLINE), PodTally(), AS_OF)
    assert type(verdict.reason) is str
    assert verdict.status == "ERROR"


def test_enum_values_match_the_wire() -> None:
    assert [status.value for status in HealthStatus] == [
        "WORKLOAD_HEALTH_STATUS_UNSPECIFIED",
        "HEALTHY",
        "DEGRADED",
        "ERROR",
    ]
