import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from workloads.kubernetes.facts import ContainerFacts, PodFacts, PodKey
from workloads.kubernetes.quantities import NANOS
from workloads.kubernetes.reduce import reduce_pod

from .objects import CREATED, raw_pod, status


def the_pod(raw: dict[str, Any]) -> PodFacts:
    facts = reduce_pod(raw)
    assert facts is not None
    return facts


def test_pod_is_reduced() -> None:
    raw = raw_pod(containerStatuses=[status(ready=True, restartCount=0)])
    assert reduce_pod(raw) == PodFacts(
        key=PodKey("demo", "app-x"),
        owner_uid="owner",
        active=True,
        live=True,
        unschedulable=False,
        containers=(ContainerFacts("app", "running", ready=True),),
        resources=(NANOS // 10, 0, 0, 0, 0),
    )


def test_equal_facts_are_kept_once() -> None:
    raw = raw_pod(containerStatuses=[status(ready=True)])
    one, other = the_pod(copy.deepcopy(raw)), the_pod(copy.deepcopy(raw))
    assert one.containers is other.containers
    assert one.resources is other.resources


@pytest.mark.parametrize("owner", ["ReplicaSet", "StatefulSet", "DaemonSet"])
def test_a_pod_has_the_owner_that_controls_it(owner: str) -> None:
    raw = raw_pod()
    raw["metadata"]["ownerReferences"] = [
        {"kind": "ReplicaSet", "uid": "bystander"},
        {"kind": "ReplicaSet", "uid": "bystander", "controller": False},
        {"kind": owner, "uid": "the-owner", "controller": True},
    ]
    assert the_pod(raw).owner_uid == "the-owner"


@pytest.mark.parametrize(
    "owners",
    [
        None,
        [],
        [{"kind": "Job", "uid": "u", "controller": True}],
        [{"kind": "ReplicaSet", "uid": "u"}],
        [{"kind": "ReplicaSet", "uid": "", "controller": True}],
        [{"kind": "ReplicaSet", "controller": True}],
    ],
)
def test_pod_of_no_workload_is_ignored(owners: object) -> None:
    raw = raw_pod()
    raw["metadata"]["ownerReferences"] = owners
    assert reduce_pod(raw) is None


@pytest.mark.parametrize(
    ("phase", "deleted", "active", "live"),
    [
        ("Running", None, True, True),
        ("Pending", None, True, True),
        ("Unknown", None, True, True),
        ("Running", CREATED, True, False),
        ("Succeeded", None, False, False),
        ("Failed", None, False, False),
        ("Failed", CREATED, False, False),
    ],
)
def test_phases_are_read(phase: str, deleted: str | None, active: bool, live: bool) -> None:
    raw = raw_pod(phase=phase)
    raw["metadata"]["deletionTimestamp"] = deleted
    facts = the_pod(raw)
    assert (facts.active, facts.live) == (active, live)


@pytest.mark.parametrize(
    ("conditions", "held"),
    [
        ([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}], True),
        ([{"type": "PodScheduled", "status": "True", "reason": "SchedulingGated"}], False),
        ([{"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"}], True),
        ([{"type": "Ready", "status": "True", "reason": "ReadinessGatesNotReady"}], False),
        ([{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}], False),
        ([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}], True),
        ([{"type": "DisruptionTarget", "status": "False"}], False),
        ([], False),
    ],
)
def test_blocking_conditions_of_a_pod_are_read(
    conditions: list[dict[str, str]], *, held: bool
) -> None:
    expected = ""
    if held:
        (condition,) = conditions
        kind, reason = condition["type"], condition.get("reason", "")
        expected = kind if kind == "DisruptionTarget" else reason
    assert the_pod(raw_pod(conditions=conditions)).held == expected


@pytest.mark.parametrize("order", [1, -1])
def test_disruption_target_has_priority_in_any_order(order: int) -> None:
    conditions = [
        {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"},
        {"type": "DisruptionTarget", "status": "True"},
    ]
    assert the_pod(raw_pod(conditions=conditions[::order])).held == "DisruptionTarget"


@pytest.mark.parametrize(
    ("condition", "unschedulable"),
    [
        ({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}, True),
        ({"type": "PodScheduled", "status": "True", "reason": "Unschedulable"}, False),
        ({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}, False),
        ({"type": "Ready", "status": "False", "reason": "Unschedulable"}, False),
    ],
)
def test_unschedulable_pod_is_recognized(condition: dict[str, str], unschedulable: bool) -> None:
    assert the_pod(raw_pod(conditions=[condition])).unschedulable is unschedulable


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"running": {}}, ("running", "")),
        ({"waiting": {"reason": "ErrImagePull"}}, ("waiting", "ErrImagePull")),
        ({"waiting": {"reason": "ContainerCreating"}}, ("waiting", "")),
        ({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, ("terminated", "OOMKilled")),
        ({"terminated": {"exitCode": 0, "signal": 9}}, ("terminated", "Error")),
        ({"terminated": {"exitCode": -1}}, ("terminated", "Error")),
        ({"running": None, "terminated": {"exitCode": 1}}, ("terminated", "Error")),
        ({}, ("waiting", "")),
        (None, ("waiting", "")),
    ],
)
def test_container_states_are_read(state: object, expected: tuple[str, str]) -> None:
    (container,) = the_pod(raw_pod(containerStatuses=[status(state=state)])).containers
    assert (container.state, container.failing) == expected


def test_the_last_termination() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-21T01:43:40Z"}
    raw = raw_pod(
        containerStatuses=[status(restartCount=12, ready=True, lastState={"terminated": ended})]
    )
    assert the_pod(raw).containers == (
        ContainerFacts(
            name="app",
            state="running",
            ready=True,
            restarts=12,
            restarted_at=datetime(2026, 11, 21, 1, 43, 40, tzinfo=UTC),
            out_of_memory=True,
        ),
    )


def test_init_steps_that_ended_well_are_gone() -> None:
    done = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    raw = raw_pod(
        containerStatuses=[status("app")],
        initContainerStatuses=[
            status("done", state=done, restartCount=3),
            status("failed", state={"terminated": {"exitCode": 1}}),
            status("now"),
            status("sidecar", state=done),
        ],
    )
    raw["spec"]["initContainers"] = [
        {"name": "done"},
        {"name": "failed"},
        {"name": "now"},
        {"name": "sidecar", "restartPolicy": "Always"},
    ]
    assert [(c.name, c.failing) for c in the_pod(raw).containers] == [
        ("app", ""),
        ("failed", "Error"),
        ("now", ""),
        ("sidecar", ""),
    ]


def test_a_reason_is_cut_to_fit() -> None:
    state = {"terminated": {"exitCode": 1, "reason": "x" * 500}}
    (container,) = the_pod(raw_pod(containerStatuses=[status(state=state)])).containers
    assert container.failing == "x" * 128


READY_SINCE = "2026-11-21T01:50:00Z"
GONE_BY = "2026-11-21T02:00:00Z"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ready(value: str, reason: str = "", **more: str) -> dict[str, str]:
    condition = {"type": "Ready", "status": value, "lastTransitionTime": READY_SINCE}
    return condition | ({"reason": reason} if reason else {}) | more


@pytest.mark.parametrize(
    ("deleted", "pod_status", "is_ready", "since"),
    [
        (None, {"conditions": [ready("True")]}, True, None),
        (None, {"conditions": [ready("False")]}, False, at(READY_SINCE)),
        (None, {"conditions": [ready("Unknown")]}, False, at(READY_SINCE)),
        # By a clock that is behind.
        (
            None,
            {"conditions": [ready("False", lastTransitionTime="2020-01-01T00:00:00Z")]},
            False,
            at(CREATED),
        ),
        # Not tried by the scheduler yet, or by an old kubelet.
        (None, {}, False, at(CREATED)),
        (None, {"conditions": [ready("False", lastTransitionTime="soon")]}, False, at(CREATED)),
        # Until when it should have terminated: its grace period is over then.
        (GONE_BY, {"conditions": [ready("True")]}, False, at(GONE_BY)),
        (None, {"phase": "Failed", "conditions": [ready("False")]}, False, at(READY_SINCE)),
        (None, {"phase": "Failed"}, False, at(CREATED)),
    ],
)
def test_since_when_a_pod_is_as_it_is(
    deleted: str | None, pod_status: dict[str, Any], is_ready: bool, since: datetime | None
) -> None:
    raw = raw_pod(**pod_status)
    raw["metadata"] |= {"creationTimestamp": CREATED, "deletionTimestamp": deleted}

    facts = the_pod(raw)

    assert (facts.ready, facts.since) == (is_ready, since)


@pytest.mark.parametrize("condition", [ready("False"), ready("Unknown", "NodeStatusUnknown")])
def test_containers_on_a_lost_node_are_not_ready(condition: dict[str, str]) -> None:
    facts = the_pod(
        raw_pod(
            conditions=[condition], containerStatuses=[status(ready=True), status("b", ready=True)]
        )
    )

    assert facts.held == "NodeLost"
    assert [container.ready for container in facts.containers] == [False, False]


@pytest.mark.parametrize(
    "pod_status",
    [
        {"conditions": [ready("False")], "containerStatuses": [status(ready=True), status("b")]},
        {"conditions": [ready("True")], "containerStatuses": [status(ready=True)]},
        {"conditions": [ready("False")]},
        {"containerStatuses": [status(ready=True)]},
    ],
)
def test_pod_of_a_reachable_node_is_ready(pod_status: dict[str, Any]) -> None:
    facts = the_pod(raw_pod(**pod_status))

    assert facts.held == ""
    assert [c.ready for c in facts.containers] == [
        s.get("ready", False) for s in pod_status.get("containerStatuses", [])
    ]


def test_lost_node_of_an_old_cluster_is_recognized() -> None:
    raw = raw_pod(reason="NodeLost", conditions=[ready("False")], containerStatuses=[status()])
    assert the_pod(raw).held == "NodeLost"


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
@pytest.mark.parametrize("key", ["containerStatuses", "initContainerStatuses"])
def test_starting_containers_are_recognized(key: str, reason: str) -> None:
    raw = raw_pod(**{key: [status(state={"waiting": {"reason": reason}})]})
    assert the_pod(raw).starting == reason
    assert the_pod(raw_pod(containerStatuses=[status()])).starting == ""


@pytest.mark.parametrize(
    "reason", ["Evicted", "OutOfcpu", "NodeAffinity", "UnexpectedAdmissionError", "NodeShutdown"]
)
def test_reason_of_a_failed_pod_is_read(reason: str) -> None:
    assert the_pod(raw_pod(phase="Failed", reason=reason)).failed == reason
    assert the_pod(raw_pod(phase="Running", reason=reason)).failed == ""


@pytest.mark.parametrize(
    ("pod_status", "resize"),
    [
        ({"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}, "ResizeDeferred"),
        (
            {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]},
            "ResizeInfeasible",
        ),
        ({"resize": "Deferred"}, "ResizeDeferred"),
        ({"resize": "Infeasible"}, "ResizeInfeasible"),
        ({"resize": "InProgress"}, ""),
        ({"conditions": [{"type": "PodResizeInProgress", "reason": "Deferred"}]}, ""),
        ({}, ""),
    ],
)
def test_pending_resize_is_recognized(pod_status: dict[str, Any], resize: str) -> None:
    assert the_pod(raw_pod(**pod_status)).resize == resize
