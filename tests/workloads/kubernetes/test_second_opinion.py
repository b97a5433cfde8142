"""The rules against the oracle of the live tests, which shares no code with them."""

import json
import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.workloads.kubernetes.test_cases import CASES, record_of
from tests.workloads.kubernetes.test_random_histories import START, Life
from tests.workloads.kubernetes.test_recorded import LISTS, MOMENTS, items
from tests.workloads.snapshots import tally_pods
from tools.live_kubernetes.oracle_health import health_of
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.health import derive_health
from workloads.kubernetes.reduce import reduce_pod, reduce_workload

Object = dict[str, Any]


def counts(kind: str, raw: Object) -> dict[str, int]:
    spec, status = raw["spec"], raw.get("status", {})
    if kind == "DaemonSet":
        names = (
            "desiredNumberScheduled",
            "numberReady",
            "numberAvailable",
            "updatedNumberScheduled",
        )
        desired, ready, available, updated = (status.get(name, 0) for name in names)
    else:
        desired, ready = spec.get("replicas", 1), status.get("readyReplicas", 0)
        updated = status.get("updatedReplicas", 0)
        available = status.get("availableReplicas", ready if kind == "StatefulSet" else 0)
    return {"desired": desired, "ready": ready, "available": available, "updated": updated}


def opinions(kind: WorkloadKind, raw: Object, pods: list[Object], as_of: Any) -> list[Any]:
    facts = reduce_workload(raw, kind)
    assert facts is not None
    verdict = derive_health(facts, tally_pods(filter(None, map(reduce_pod, pods))), as_of)
    return [
        (verdict.status.value, verdict.reason),
        health_of(kind.value, raw, counts(kind.value, raw), pods, as_of),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("kind", list(WorkloadKind))
def test_random_histories_have_the_same_health(kind: WorkloadKind, seed: int) -> None:
    life = Life(kind, random.Random(f"second{kind}{seed}"))
    for _ in range(60):
        life.step()
        for later in (0, 301, 1801):
            pods = [pod.raw("ReplicaSet", "u") for pod in life.pods]
            as_of = START + timedelta(seconds=life.now + later)
            ours, theirs = opinions(kind, life.raw(), pods, as_of)
            assert ours == theirs


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_objects_have_the_same_health(seed: int) -> None:
    """Recorded objects with the fields of other objects, in combinations that no test lists."""
    rng = random.Random(seed)
    everything = {kind: items(name) for kind, name in LISTS.items()}
    cases = json.loads(json.dumps([pod for case in CASES.values() for pod in case["pods"]]))
    # The oracle does not know init containers.
    pods = [pod for pod in items("pods") + cases if "initContainers" not in pod["spec"]]
    for _ in range(400):
        kind = rng.choice(list(everything))
        raw = json.loads(json.dumps(rng.choice(everything[kind])))
        other = rng.choice(everything[kind])
        for part in ("spec", "status"):
            for field in rng.sample(sorted(other[part]), k=min(2, len(other[part]))):
                raw[part][field] = other[part][field]
        chosen = rng.sample(pods, k=rng.randint(0, 4))
        for pod in chosen:
            pod["metadata"]["ownerReferences"] = [
                {"kind": "ReplicaSet", "uid": "u", "controller": True}
            ]
        raw["metadata"]["managedFields"] = rng.choice([[], [{"time": "2026-11-21T01:45:35Z"}]])
        if "desiredNumberScheduled" in raw["status"] or kind is not WorkloadKind.DAEMON_SET:
            ours, theirs = opinions(kind, raw, chosen, rng.choice(list(MOMENTS.values())))
            assert ours == theirs


def test_cases_have_the_same_health() -> None:
    for name, case in CASES.items():
        record, kind = record_of(case), case["workload"]["kind"]
        found = health_of(
            kind,
            case["workload"],
            counts(kind, case["workload"]),
            case["pods"],
            datetime.fromisoformat(case["as_of"]),
        )
        assert found == (record.health_status.value, record.status_reason), name
