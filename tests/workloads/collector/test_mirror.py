"""The mirror of a watched cluster equals a list, in whatever order the events arrive."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.apiserver import (
    DAEMONSETS,
    DEPLOYMENTS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    recorded_lists,
)
from tests.workloads.kubernetes.test_recorded import RECORDED, usage
from tests.workloads.snapshots import SnapshotBuilder
from workloads.collector.mirror import PODS as PODS_RESOURCE
from workloads.collector.mirror import REPLICASETS as REPLICASETS_RESOURCE
from workloads.collector.mirror import WORKLOADS, Mirror
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.records import WorkloadRecord
from workloads.reporting.reports import Place

RESOURCES = {resource.path: resource for resource in WORKLOADS.values()} | {
    PODS: PODS_RESOURCE,
    REPLICASETS: REPLICASETS_RESOURCE,
}
KINDS = {
    DEPLOYMENTS: WorkloadKind.DEPLOYMENT,
    STATEFULSETS: WorkloadKind.STATEFUL_SET,
    DAEMONSETS: WorkloadKind.DAEMON_SET,
}
Object = dict[str, Any]
Rows = dict[Place, WorkloadRecord]


def by_place(records: Sequence[WorkloadRecord]) -> Rows:
    return {Place(r.namespace, r.name, r.kind.value): r for r in records}


def listed(objects: dict[str, dict[str, Object]]) -> Rows:
    """Return the result of one pass over these objects."""
    builder = SnapshotBuilder(usage())
    for path, members in objects.items():
        for raw in members.values():
            if path == PODS:
                builder.add_pod(raw)
            elif path == REPLICASETS:
                builder.add_replicaset(raw)
            else:
                builder.add_workload(raw, KINDS[path])
    return by_place(list(builder.records(RECORDED)))


def changed(rng: random.Random, path: str, raw: Object) -> Object:
    """Return the object as it may be a moment later."""
    raw = copy.deepcopy(raw)
    if path == PODS:
        if rng.random() < 0.2:
            raw["metadata"].pop("ownerReferences", None)
        else:
            raw["status"]["phase"] = rng.choice(["Running", "Failed", "Pending"])
    elif path == REPLICASETS:
        raw["metadata"].pop("ownerReferences", None)
    else:
        raw["metadata"]["generation"] = rng.randrange(5)
    return raw


@pytest.mark.parametrize("seed", range(3))
def test_any_events_end_where_a_list_would(seed: int) -> None:
    rng = random.Random(seed)
    every = {
        path: {raw["metadata"]["uid"]: raw for raw in items}
        for path, items in recorded_lists().items()
    }
    there: dict[str, dict[str, Object]] = {path: {} for path in every}
    mirror = Mirror()
    rows: Rows = {}
    for step in range(700):
        path = rng.choice(list(every))
        uid, raw = rng.choice(list(every[path].items()))
        if uid in there[path] and rng.random() < 0.4:
            mirror.change(RESOURCES[path], "DELETED", there[path].pop(uid))
        else:
            kind = "MODIFIED" if uid in there[path] else "ADDED"
            there[path][uid] = changed(rng, path, raw) if rng.random() < 0.4 else raw
            mirror.change(RESOURCES[path], kind, there[path][uid])
        if step % 20 == 0:
            records, deleted = mirror.delta(RECORDED, usage())
            assert not deleted & set(by_place(records))
            for gone in deleted:
                del rows[gone]
            rows |= by_place(records)
            assert rows == listed(there)
    assert by_place(mirror.snapshot(RECORDED, usage())) == listed(there)
    assert mirror.delta(RECORDED, usage()) == ([], frozenset())


def test_list_replaces_the_known_objects() -> None:
    mirror = Mirror()
    lists = recorded_lists()
    for path, items in lists.items():
        mirror.fill(RESOURCES[path], items)
    everything = by_place(mirror.snapshot(RECORDED, usage()))
    assert len(everything) == 54

    mirror.fill(RESOURCES[DAEMONSETS], lists[DAEMONSETS][:1])

    assert len(mirror.snapshot(RECORDED, None)) == 44


def test_changes_during_a_snapshot_are_in_the_next_delta() -> None:
    mirror, lists = Mirror(), recorded_lists()
    for path, items in lists.items():
        mirror.fill(RESOURCES[path], items)
    expected = by_place(mirror.snapshot(RECORDED, None))

    records = iter(mirror.snapshot(RECORDED, None))
    read = [next(records)]
    gone, changed = lists[DAEMONSETS][0], copy.deepcopy(lists[DEPLOYMENTS][0])
    changed["spec"]["replicas"] = 77
    mirror.change(RESOURCES[DAEMONSETS], "DELETED", gone)
    mirror.change(RESOURCES[DEPLOYMENTS], "MODIFIED", changed)
    read += records

    assert by_place(read) == expected
    (news,), deleted = mirror.delta(RECORDED, None)
    assert news.replicas_desired == 77
    assert [place.name for place in deleted] == [gone["metadata"]["name"]]


def test_interrupted_list_makes_no_changes() -> None:
    def broken() -> Any:
        yield recorded_lists()[PODS][0]
        raise OSError("broke off")

    mirror = Mirror()
    mirror.fill(RESOURCES[DEPLOYMENTS], recorded_lists()[DEPLOYMENTS])
    for path in (PODS, REPLICASETS, DEPLOYMENTS):
        with pytest.raises(OSError, match="broke off"):
            mirror.fill(RESOURCES[path], broken())

    assert len(mirror.snapshot(RECORDED, None)) == 30


def test_deleted_and_created_again_under_the_same_name() -> None:
    raw = recorded_lists()[DEPLOYMENTS][0]
    again = copy.deepcopy(raw)
    again["metadata"]["uid"] = "another"
    mirror = Mirror()
    mirror.change(RESOURCES[DEPLOYMENTS], "ADDED", raw)
    mirror.delta(RECORDED, None)

    mirror.change(RESOURCES[DEPLOYMENTS], "DELETED", raw)
    mirror.change(RESOURCES[DEPLOYMENTS], "ADDED", again)

    records, deleted = mirror.delta(RECORDED, None)
    assert [record.uid for record in records] == ["another"]
    assert deleted == frozenset()


def test_a_pod_elsewhere_is_of_no_owner_here() -> None:
    """Any client that may create pods in a namespace can set any owner and name on them."""
    there = {
        path: {raw["metadata"]["uid"]: raw for raw in items}
        for path, items in recorded_lists().items()
    }
    expected, mirror = listed(there), Mirror()
    alien = copy.deepcopy(
        next(raw for raw in there[PODS].values() if "ownerReferences" in raw["metadata"])
    )
    alien["metadata"] |= {"namespace": "elsewhere", "uid": "alien"}
    there[PODS]["alien"] = alien
    for path, items in there.items():
        mirror.fill(RESOURCES[path], items.values())

    assert listed(there) == expected
    assert by_place(mirror.snapshot(RECORDED, usage())) == expected
    for _ in range(2):
        mirror.change(RESOURCES[PODS], "DELETED", alien)
    mirror.change(RESOURCES[PODS], "ADDED", alien)
    assert by_place(mirror.snapshot(RECORDED, usage())) == expected


def test_bookmarks_and_incomplete_objects_are_ignored() -> None:
    mirror = Mirror()
    for resource in RESOURCES.values():
        mirror.change(resource, "BOOKMARK", {"metadata": {"resourceVersion": "9"}})
        mirror.change(resource, "ADDED", {"metadata": {"uid": "odd"}})
        mirror.change(resource, "DELETED", {"metadata": {"uid": "odd"}})

    assert mirror.delta(RECORDED, None) == ([], frozenset())


def test_resources_per_namespace_sum_to_the_whole_cluster() -> None:
    lists = recorded_lists()
    whole, parts = Mirror(), Mirror()
    namespaces = sorted({raw["metadata"]["namespace"] for raw in lists[PODS]})
    for path, items in lists.items():
        whole.fill(RESOURCES[path], items)
        for namespace, resource in zip(namespaces, RESOURCES[path].scoped(namespaces), strict=True):
            parts.fill(resource, [r for r in items if r["metadata"]["namespace"] == namespace])

    expected = by_place(whole.snapshot(RECORDED, usage()))
    expected = {place: r for place, r in expected.items() if place.namespace in namespaces}
    assert by_place(parts.snapshot(RECORDED, usage())) == expected

    gone = lists[PODS][0]
    (resource,) = RESOURCES[PODS].scoped([gone["metadata"]["namespace"]])
    whole.change(RESOURCES[PODS], "DELETED", gone)
    parts.change(resource, "DELETED", gone)
    assert parts.delta(RECORDED, usage()) == whole.delta(RECORDED, usage())


def stateful_set(*, ready: int = 0, age: int, uid: str = "db") -> Object:
    created = (RECORDED - timedelta(seconds=age)).isoformat()
    metadata = {"namespace": "d", "name": "db", "uid": uid, "creationTimestamp": created}
    return {
        "metadata": metadata,
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "readyReplicas": ready},
    }


def its_pod(name: str, created: int) -> Object:
    reference = {"kind": "StatefulSet", "uid": "db", "controller": True}
    return {
        "metadata": {
            "namespace": "d",
            "name": name,
            "creationTimestamp": (RECORDED + timedelta(seconds=created)).isoformat(),
            "ownerReferences": [reference],
        },
        "status": {"phase": "Pending"},
    }


def test_pods_that_are_replaced_again_and_again_start_no_new_grace() -> None:
    """A StatefulSet shows only its youngest pod; the mirror has seen the earlier pods."""
    mirror, resource = Mirror(), WORKLOADS[WorkloadKind.STATEFUL_SET]

    def health(seconds: int) -> str:
        mirror.change(resource, "MODIFIED", stateful_set(age=86400))
        (record,), _gone = mirror.delta(RECORDED + timedelta(seconds=seconds), None)
        return record.health_status.value

    for seconds in range(0, 301, 60):
        mirror.fill(PODS_RESOURCE, [its_pod(f"db-{seconds}", seconds - 5)])
        assert health(seconds) == ("DEGRADED" if seconds <= 295 else "ERROR")
    # It recovers, and restarts: another outage.
    mirror.change(resource, "MODIFIED", stateful_set(ready=1, age=86400))
    (record,), _gone = mirror.delta(RECORDED + timedelta(seconds=310), None)
    assert record.health_status == "HEALTHY"
    mirror.fill(PODS_RESOURCE, [its_pod("db-0", 395)])
    assert health(400) == "DEGRADED"


def test_an_outage_ends_with_its_workload() -> None:
    mirror, resource = Mirror(), WORKLOADS[WorkloadKind.STATEFUL_SET]
    mirror.fill(resource, [stateful_set(age=86400)])
    mirror.fill(PODS_RESOURCE, [its_pod("db-0", -9)])
    (record,) = mirror.snapshot(RECORDED, None)
    assert record.health_status == "DEGRADED"

    mirror.fill(resource, [])
    assert len(mirror.snapshot(RECORDED, None)) == 0
    mirror.fill(resource, [stateful_set(age=86400)])
    mirror.fill(PODS_RESOURCE, [its_pod("db-0", 600)])

    (record,) = mirror.snapshot(RECORDED + timedelta(seconds=610), None)
    assert record.health_status == "DEGRADED"
