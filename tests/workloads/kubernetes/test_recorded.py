"""The recorded cluster: every workload of it, at the moment of the recording and an hour later."""

import json
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.workloads.snapshots import SnapshotBuilder, tally_pods
from workloads.kubernetes.facts import PodFacts, PodKey, Usage, WorkloadFacts, WorkloadKind
from workloads.kubernetes.health import derive_health
from workloads.kubernetes.quantities import NANOS, to_millicores
from workloads.kubernetes.records import WorkloadRecord, workload_record
from workloads.kubernetes.reduce import (
    reduce_pod,
    reduce_pod_metrics,
    reduce_replicaset,
    reduce_workload,
)
from workloads.kubernetes.tally import PodTally

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDING = FIXTURES / "kubernetes-1.20"
LISTS = {
    WorkloadKind.DEPLOYMENT: "deployments",
    WorkloadKind.STATEFUL_SET: "statefulsets",
    WorkloadKind.DAEMON_SET: "daemonsets",
}
MEBI = 2**20

Place = tuple[str, str, str]


def items(name: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((RECORDING / f"list-{name}.json").read_text())[
        "items"
    ]
    return listed


GIVEN = json.loads((RECORDING / "expected.json").read_text())
MOMENTS = {
    "health_at_recording": datetime.fromisoformat(GIVEN["as_of_recording"]),
    "health_one_hour_later": datetime.fromisoformat(GIVEN["as_of_one_hour_later"]),
}
RECORDED = MOMENTS["health_at_recording"]
OTHER_HALF = json.loads((FIXTURES / "expected-other-half.json").read_text())


# From the rule numbers of the given half to those of docs/reference/workload-health.md.
RULES = dict(
    zip(range(1, 18), (1, 3, 4, 5, 6, 7, 8, 9, 9, 11, 12, 13, 15, 16, 17, 18, 21), strict=True)
)


def expectations() -> dict[Place, dict[str, Any]]:
    """Return both halves with the current rule numbers, and usage as it is shown now.

    The given half adds 0 for a pod that is not measured, also if no pod of the workload is.
    """
    for entry in GIVEN["workloads"]:
        for moment in MOMENTS:
            verdict = entry["expected"][moment]
            verdict["rule"] = RULES[verdict["rule"]]
    both = GIVEN["workloads"] + OTHER_HALF["workloads"]
    for entry in both:
        if entry["pods"] and not entry["expected"]["pods_with_metrics"]:
            entry["expected"] |= {"cpu_used_millicores": None, "memory_used_bytes": None}
    return {(entry["kind"], entry["namespace"], entry["name"]): entry for entry in both}


EXPECTED = expectations()


def usage() -> dict[PodKey, Usage]:
    return dict(filter(None, map(reduce_pod_metrics, items("podmetrics"))))


def joined() -> dict[Place, tuple[WorkloadFacts, PodTally]]:
    """Join by hand the objects that a mirror joins."""
    deployment_of = dict(filter(None, map(reduce_replicaset, items("replicasets"))))
    pods: dict[str, list[PodFacts]] = {}
    for pod in filter(None, map(reduce_pod, items("pods"))):
        pods.setdefault(deployment_of.get(pod.owner_uid, pod.owner_uid), []).append(pod)
    known = usage()
    return {
        (facts.kind.value, facts.namespace, facts.name): (
            facts,
            tally_pods(pods.get(facts.uid, []), known),
        )
        for kind, name in LISTS.items()
        for facts in (reduce_workload(raw, kind) for raw in items(name))
        if facts is not None
    }


JOINED = joined()


def place_id(place: Place) -> str:
    return "/".join(place)


def test_every_recorded_workload_is_expected() -> None:
    assert len(EXPECTED) == 54
    assert set(EXPECTED) == set(JOINED)


@pytest.mark.parametrize("moment", sorted(MOMENTS))
@pytest.mark.parametrize("place", sorted(EXPECTED), ids=place_id)
def test_health_is_derived(place: Place, moment: str) -> None:
    verdict = derive_health(*JOINED[place], MOMENTS[moment])
    assert {
        "rule": verdict.rule,
        "health": verdict.status,
        "status_reason": verdict.reason,
    } == EXPECTED[place]["expected"][moment]


@pytest.mark.parametrize("place", sorted(EXPECTED), ids=place_id)
def test_figures_match(place: Place) -> None:
    facts, tally = JOINED[place]
    record = workload_record(facts, tally, as_of=RECORDED, usage_known=True)
    expected = {
        key: value
        for key, value in EXPECTED[place]["expected"].items()
        if key not in {*MOMENTS, "containers", "pods_with_metrics"}
    }
    shown = {**msgspec.to_builtins(record), **record.figures}
    assert {key: shown[key] for key in expected} == expected
    assert tally.measured == EXPECTED[place]["expected"]["pods_with_metrics"]


@pytest.mark.parametrize("place", sorted(EXPECTED), ids=place_id)
def test_containers_match(place: Place) -> None:
    record = workload_record(*JOINED[place], as_of=RECORDED, usage_known=True)
    assert [
        {
            "name": container.name,
            "image": container.image,
            "restart_count": container.restart_count,
            "state": container.state,
            "ready": container.ready,
        }
        for container in record.containers
    ] == EXPECTED[place]["expected"]["containers"]


def test_usage_matches_kubectl_top() -> None:
    lines = (RECORDING / "kubectl-top-pods.txt").read_text().splitlines()[1:]
    shown = {}
    for namespace, name, cores, memory in map(str.split, lines):
        shown[PodKey(namespace, name)] = (cores, memory)
    # kubectl rounds cores up and cuts memory down to MiB.
    assert {
        key: (f"{to_millicores(used[0])}m", f"{used[1] // NANOS // MEBI}Mi")
        for key, used in usage().items()
    } == shown


def snapshot(
    shuffle: random.Random | None, known: dict[PodKey, Usage] | None
) -> list[WorkloadRecord]:
    builder = SnapshotBuilder(known)
    steps: list[Any] = [lambda raw=raw: builder.add_pod(raw) for raw in items("pods")]
    steps += [lambda raw=raw: builder.add_replicaset(raw) for raw in items("replicasets")]
    steps += [
        lambda raw=raw, kind=kind: builder.add_workload(raw, kind)
        for kind, name in LISTS.items()
        for raw in items(name)
    ]
    if shuffle:
        shuffle.shuffle(steps)
    for step in steps:
        step()
    return sorted(builder.records(RECORDED), key=lambda record: (record.kind, record.uid))


def test_snapshot_does_not_depend_on_the_order() -> None:
    by_hand = sorted(
        (
            workload_record(facts, tally, as_of=RECORDED, usage_known=True)
            for facts, tally in JOINED.values()
        ),
        key=lambda record: (record.kind, record.uid),
    )
    assert snapshot(None, usage()) == by_hand
    assert snapshot(random.Random(1), usage()) == by_hand


def test_without_metrics_use_is_unknown() -> None:
    records = snapshot(None, None)
    assert len(records) == 54
    assert {record.figures["cpu_used_millicores"] for record in records} == {None}
    assert {record.figures["memory_used_bytes"] for record in records} == {None}
