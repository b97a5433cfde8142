from datetime import UTC, datetime
from typing import Any

import pytest

from workloads.kubernetes.facts import (
    Condition,
    PodKey,
    TemplateContainer,
    WorkloadFacts,
    WorkloadKind,
)
from workloads.kubernetes.quantities import NANOS
from workloads.kubernetes.reduce import reduce_pod_metrics, reduce_replicaset, reduce_workload

from .objects import CREATED, owned_by, raw_workload

DEPLOYMENT, STATEFUL_SET, DAEMON_SET = WorkloadKind


def test_replicaset_is_reduced() -> None:
    raw = {"metadata": {"uid": "set", **owned_by("Deployment", "deployment")}}
    assert reduce_replicaset(raw) == ("set", "deployment")


@pytest.mark.parametrize(
    "metadata",
    [{}, {"uid": "set"}, owned_by("Deployment"), {"uid": "set", **owned_by("Rollout")}],
)
def test_replicaset_of_no_deployment_is_ignored(metadata: dict[str, Any]) -> None:
    assert reduce_replicaset({"metadata": metadata}) is None


def test_pod_metrics_are_read() -> None:
    raw = {
        "metadata": {"namespace": "demo", "name": "app-x"},
        "containers": [
            {"name": "a", "usage": {"cpu": "315735516n", "memory": "155516Ki"}},
            {"name": "b", "usage": {"cpu": "1m", "memory": "NaN"}},
            {"name": "c", "usage": None},
        ],
    }
    assert reduce_pod_metrics(raw) == (
        PodKey("demo", "app-x"),
        (316_735_516, 155_516 * 1024 * NANOS),
    )


@pytest.mark.parametrize("metadata", [{}, {"name": "x"}, {"namespace": "x"}, None])
def test_pod_metrics_without_name_or_namespace_are_ignored(metadata: object) -> None:
    assert reduce_pod_metrics({"metadata": metadata}) is None


def the_workload(raw: dict[str, Any], kind: WorkloadKind = DEPLOYMENT) -> WorkloadFacts:
    facts = reduce_workload(raw, kind)
    assert facts is not None
    return facts


def test_deployment_is_reduced() -> None:
    template = {
        "containers": [{"name": "web", "image": "nginx:1.25"}],
        "initContainers": [
            {"name": "init", "image": "busybox:1"},
            {"name": "mesh", "image": "envoy:1", "restartPolicy": "Always"},
        ],
    }
    raw = raw_workload(
        {"replicas": 4, "paused": True, "template": {"spec": template}},
        {
            "observedGeneration": 2,
            "readyReplicas": 3,
            "availableReplicas": 2,
            "updatedReplicas": 1,
            "conditions": [{"type": "Available", "status": "True", "reason": "Fine"}],
        },
    )
    assert reduce_workload(raw, DEPLOYMENT) == WorkloadFacts(
        kind=DEPLOYMENT,
        namespace="demo",
        name="app",
        uid="u",
        labels={"app": "web"},
        created_at=datetime(2026, 11, 21, 1, 43, 38, tzinfo=UTC),
        deleting=False,
        generation=3,
        observed_generation=2,
        desired=4,
        ready=3,
        available=2,
        updated=1,
        paused=True,
        conditions={"Available": Condition("True", "Fine")},
        containers=(
            TemplateContainer("web", "nginx:1.25"),
            TemplateContainer("mesh", "envoy:1"),
        ),
    )


def test_a_stateful_set() -> None:
    raw = raw_workload(
        {
            "replicas": 4,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
        },
        {"observedGeneration": 3, "readyReplicas": 3, "updatedReplicas": 1},
    )
    facts = the_workload(raw, STATEFUL_SET)
    # Without the key, ready replicas count as available.
    assert (facts.desired, facts.ready, facts.available, facts.updated) == (4, 3, 3, 1)
    assert (facts.partition, facts.on_delete) == (2, False)
    raw["status"]["availableReplicas"] = 0
    assert the_workload(raw, STATEFUL_SET).available == 0


def test_a_daemon_set() -> None:
    raw = raw_workload(
        {"updateStrategy": {"type": "OnDelete"}},
        {
            "desiredNumberScheduled": 4,
            "numberReady": 3,
            "numberAvailable": 2,
            "updatedNumberScheduled": 1,
        },
    )
    facts = the_workload(raw, DAEMON_SET)
    assert (facts.desired, facts.ready, facts.available, facts.updated) == (4, 3, 2, 1)
    assert facts.on_delete is True


@pytest.mark.parametrize("nothing", [{}, None])
def test_absent_and_null_are_the_same(nothing: Any) -> None:
    raw = raw_workload(nothing, nothing)
    raw["metadata"]["labels"] = raw["metadata"]["creationTimestamp"] = None
    facts = the_workload(raw)
    assert (facts.desired, facts.ready, facts.available, facts.updated) == (1, 0, 0, 0)
    assert facts.observed_generation is None
    assert (facts.labels, facts.conditions, facts.containers) == ({}, {}, ())
    assert facts.created_at is None
    assert the_workload(raw, DAEMON_SET).desired == 0


@pytest.mark.parametrize(
    ("value", "read"),
    [(5, 5), (0, 0), (-1, 0), (True, 1), ("5", 1), (5.0, 1), (None, 1), (10**30, 2**31 - 1)],
)
def test_replicas_are_counted(value: object, read: int) -> None:
    assert the_workload(raw_workload({"replicas": value}, {})).desired == read


@pytest.mark.parametrize("value", ["yesterday", "2026-11-21", "2026-11-21T01:43:38", 5, None])
def test_invalid_timestamp_is_ignored(value: object) -> None:
    raw = raw_workload({}, {})
    raw["metadata"]["creationTimestamp"] = value
    assert the_workload(raw).created_at is None


@pytest.mark.parametrize("missing", ["uid", "namespace", "name"])
def test_unreadable_workload_keeps_its_identity(missing: str) -> None:
    raw = raw_workload({}, {})
    del raw["metadata"][missing]
    assert reduce_workload(raw, DEPLOYMENT) is None


def test_deletion_of_a_workload_is_recognized() -> None:
    raw = raw_workload({}, {})
    raw["metadata"]["deletionTimestamp"] = CREATED
    assert the_workload(raw).deleting is True


def test_nul_never_reaches_the_database() -> None:
    template = {"containers": [{"name": "web", "image": "a\0b"}]}
    raw = raw_workload({"template": {"spec": template}}, {})
    assert the_workload(raw).containers == (TemplateContainer("web", "a\ufffdb"),)


WRITTEN = "2026-11-21T01:50:00Z"


@pytest.mark.parametrize(
    ("fields", "changed_at"),
    [
        (None, None),
        ([], None),
        ([{"manager": "kubectl", "time": CREATED}, {"manager": "hpa", "time": WRITTEN}], WRITTEN),
        ([{"time": CREATED}, {"subresource": "status", "time": WRITTEN}], CREATED),
        ([{"subresource": "scale", "time": WRITTEN}], WRITTEN),
        ([{"time": "soon"}, {"manager": "kubectl"}, 7], None),
    ],
)
def test_the_last_change(fields: object, changed_at: str | None) -> None:
    raw = raw_workload({}, {})
    raw["metadata"]["managedFields"] = fields
    expected = None if changed_at is None else datetime.fromisoformat(changed_at)
    assert the_workload(raw).changed_at == expected


@pytest.mark.parametrize(
    ("condition", "since"),
    [
        ({"type": "Available", "status": "False", "lastTransitionTime": WRITTEN}, WRITTEN),
        ({"type": "Available", "status": "True", "lastTransitionTime": WRITTEN}, None),
        ({"type": "Available", "status": "False"}, None),
        ({"type": "Progressing", "status": "False", "lastTransitionTime": WRITTEN}, None),
    ],
)
def test_since_when_it_is_unavailable(condition: dict[str, str], since: str | None) -> None:
    facts = the_workload(raw_workload({}, {"conditions": [condition]}))
    assert facts.unavailable_since == (None if since is None else datetime.fromisoformat(since))


@pytest.mark.parametrize(
    ("seconds", "deadline"),
    [
        (600, 600),
        (2**31 - 1, None),
        (2**40, None),
        (0, None),
        (-5, None),
        (None, None),
        ("9", None),
    ],
)
def test_progress_deadline_is_read(seconds: object, deadline: int | None) -> None:
    raw = raw_workload({"progressDeadlineSeconds": seconds}, {})
    assert the_workload(raw).progress_deadline == deadline


def test_outdated_replicas_are_counted() -> None:
    raw = raw_workload({}, {"replicas": 5, "updatedReplicas": 2})
    assert the_workload(raw).surplus == 3
    assert the_workload(raw, WorkloadKind.STATEFUL_SET).surplus == 0
    assert the_workload(raw_workload({}, {"updatedReplicas": 2})).surplus == 0


@pytest.mark.parametrize(
    ("status", "pending"),
    [
        ({"currentRevision": "a", "updateRevision": "b"}, True),
        ({"currentRevision": "a", "updateRevision": "a"}, False),
        ({"updateRevision": "a"}, None),
        ({}, None),
    ],
)
def test_revisions_are_compared(status: dict[str, str], pending: bool | None) -> None:
    facts = the_workload(raw_workload({}, status), WorkloadKind.STATEFUL_SET)
    assert facts.revision_pending is pending
