"""One pass over the recorded cluster."""

from __future__ import annotations

import json

import pytest

from tests.apiserver import (
    DEAD_METRICS,
    FORBIDDEN,
    KUBE_SYSTEM,
    METRICS,
    NO_METRICS,
    PODS,
    UNAVAILABLE,
    Fault,
    ReplayServer,
)
from tests.workloads.collector.conftest import no_progress
from tests.workloads.kubernetes.test_recorded import RECORDED, snapshot, usage
from workloads.collector import client as client_module
from workloads.collector.client import ClusterClient
from workloads.collector.errors import RefusedError
from workloads.collector.listing import cluster_uid, read_cluster
from workloads.collector.metrics import PodUsage
from workloads.kubernetes.facts import PodKey
from workloads.kubernetes.records import WorkloadRecord


def read(client: ClusterClient) -> list[WorkloadRecord]:
    records = read_cluster(client, RECORDED, no_progress)
    return sorted(records, key=lambda record: (record.kind, record.uid))


@pytest.mark.parametrize("page_size", [500, 7])
def test_it_is_what_the_rules_make_of_the_recording(
    client: ClusterClient, monkeypatch: pytest.MonkeyPatch, page_size: int
) -> None:
    monkeypatch.setattr(client_module, "PAGE_SIZE", page_size)

    assert read(client) == snapshot(None, usage())


@pytest.mark.parametrize("fault", [NO_METRICS, DEAD_METRICS, FORBIDDEN, Fault(200, b"oops")])
def test_without_metrics_usage_is_unknown(
    client: ClusterClient, api: ReplayServer, fault: Fault
) -> None:
    api.metrics_fault = fault

    assert read(client) == snapshot(None, None)
    # It is asked for once.
    assert sum(path.startswith(METRICS) for path, _query in api.requests) == 1


def test_metrics_that_fail_half_way_are_worth_nothing(
    client: ClusterClient, api: ReplayServer
) -> None:
    def fail_later(path: str, _query: dict[str, str]) -> None:
        if path.startswith(METRICS):
            asked = sum(p.startswith(METRICS) for p, _query in api.requests)
            api.metrics_fault = DEAD_METRICS if asked > 1 else None

    api.before_answer = fail_later

    assert read(client) == snapshot(None, None)


def test_metrics_are_read_by_namespace(client: ClusterClient, api: ReplayServer) -> None:
    read(client)

    asked = [path for path, _query in api.requests if path.startswith(METRICS)]
    namespaces = {raw["metadata"]["namespace"] for raw in api.lists[PODS]}
    assert len(asked) == len(set(asked)) <= len(namespaces)


def test_few_namespaces_are_kept(client: ClusterClient, api: ReplayServer) -> None:
    source = PodUsage(client)
    for namespace in ("demo", "prod", "quota", "demo"):
        source.get(PodKey(namespace, "x"))

    assert [path.split("/")[-2] for path, _query in api.requests] == [
        "demo", "prod", "quota", "demo"
    ]  # fmt: skip
    assert source.read_all(["demo", "prod"]) == usage()


def test_progress(client: ClusterClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PAGE_SIZE", 100)
    told: list[tuple[str, int, int | None]] = []

    read_cluster(client, RECORDED, lambda *told_now: told.append(told_now))

    assert told == [
        ("deployments", 30, None),
        ("statefulsets", 13, None),
        ("daemonsets", 11, None),
        ("replicasets", 34, None),
        ("pods", 100, 19),
        ("pods", 119, None),
    ]


def test_nothing_of_a_spec_is_kept(client: ClusterClient, api: ReplayServer) -> None:
    for raw in api.lists[PODS]:
        for container in raw["spec"]["containers"]:
            container["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    assert "hunter2" in json.dumps(api.lists)

    assert "hunter2" not in repr(read(client))


def test_the_uid_of_the_cluster(client: ClusterClient, api: ReplayServer) -> None:
    assert cluster_uid(client) == "229cb448-7af2-40c4-bf31-ace29c1771bb"

    api.faults[KUBE_SYSTEM].append(FORBIDDEN)
    assert cluster_uid(client) == ""

    api.faults[KUBE_SYSTEM].append(UNAVAILABLE)
    with pytest.raises(RefusedError, match="503"):
        cluster_uid(client)
