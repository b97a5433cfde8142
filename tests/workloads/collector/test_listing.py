"""One pass over the recorded cluster."""

from __future__ import annotations

import json
import time

import pytest

from tests.apiserver import (
    DEAD_METRICS,
    FORBIDDEN,
    KUBE_SYSTEM,
    METRICS,
    NO_METRICS,
    PODS,
    SERVER_VERSION,
    UNAVAILABLE,
    Fault,
    ReplayServer,
    recorded,
)
from tests.workloads.collector.conftest import no_progress
from tests.workloads.kubernetes.test_recorded import RECORDED, snapshot, usage
from workloads.collector import client as client_module
from workloads.collector import usage as usage_module
from workloads.collector.client import ClusterClient
from workloads.collector.errors import RefusedError
from workloads.collector.listing import cluster_uid, read_cluster, server_version
from workloads.kubernetes.records import WorkloadRecord
from workloads.kubernetes.resources import UNKNOWN_VERSION


def read(client: ClusterClient) -> list[WorkloadRecord]:
    records = read_cluster(client, RECORDED, no_progress)
    return sorted(records, key=lambda record: (record.kind, record.uid))


@pytest.mark.parametrize("page_size", [500, 7])
def test_listing_equals_the_snapshot_of_the_recording(
    client: ClusterClient, monkeypatch: pytest.MonkeyPatch, page_size: int
) -> None:
    monkeypatch.setattr(client_module, "PAGE_SIZE", page_size)

    assert read(client) == snapshot(None, usage())


HALF = json.dumps(recorded("list-podmetrics.json")).encode()[:10_000]


@pytest.mark.parametrize("fault", [
    NO_METRICS, DEAD_METRICS, FORBIDDEN, Fault(200, b"oops"),
    Fault(200, HALF), Fault(200, HALF + b" " * 1000, cut=len(HALF)),
])  # fmt: skip
def test_without_metrics_usage_is_unknown(
    client: ClusterClient, api: ReplayServer, fault: Fault
) -> None:
    api.metrics_fault = fault

    assert read(client) == snapshot(None, None)
    # It is asked for once.
    assert len(api.queries_of(METRICS)) == 1


def test_usage_is_listed_once_per_snapshot(client: ClusterClient, api: ReplayServer) -> None:
    read(client)

    assert [path for path, _query in api.requests if "metrics" in path] == [METRICS]


def test_hung_metrics_api_only_loses_usage(
    client: ClusterClient, api: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an answer, too: a slow response is cut off like a missing one."""
    monkeypatch.setattr(usage_module, "WITHIN", 1.0)
    for fault in (None, Fault(200, b'{"items": []}', cut=5, hold=True)):
        api.metrics_fault = fault
        api.before_answer = lambda path, _query, hangs=fault is None: (  # type: ignore[misc]
            api.watches.hang_up.wait(30) if path == METRICS and hangs else None
        )
        started = time.monotonic()

        assert read(client) == snapshot(None, None)
        assert time.monotonic() - started < 20


def test_selected_namespaces_are_listed(client: ClusterClient, api: ReplayServer) -> None:
    records = read_cluster(client, RECORDED, no_progress, ["demo", "quota"])

    whole = [r for r in snapshot(None, usage()) if r.namespace in ("demo", "quota")]
    assert sorted(records, key=lambda record: (record.kind, record.uid)) == whole
    assert whole
    paths = {path for path, _query in api.requests} - {SERVER_VERSION}
    assert all("/namespaces/" in path for path in paths)


def test_progress_is_shown(client: ClusterClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PAGE_SIZE", 100)
    progress: list[tuple[str, int, int | None]] = []

    read_cluster(client, RECORDED, lambda *step: progress.append(step))

    assert progress == [
        ("deployments", 30, None),
        ("statefulsets", 13, None),
        ("daemonsets", 11, None),
        ("replicasets", 34, None),
        ("pods", 100, 19),
        ("pods", 119, None),
    ]


def test_secrets_of_a_spec_are_not_stored(client: ClusterClient, api: ReplayServer) -> None:
    for raw in api.lists[PODS]:
        for container in raw["spec"]["containers"]:
            container["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    assert "hunter2" in json.dumps(api.lists)

    assert "hunter2" not in repr(read(client))


def test_uid_of_the_cluster_is_read(client: ClusterClient, api: ReplayServer) -> None:
    assert cluster_uid(client) == "229cb448-7af2-40c4-bf31-ace29c1771bb"

    api.faults[KUBE_SYSTEM].append(FORBIDDEN)
    assert cluster_uid(client) == ""

    api.faults[KUBE_SYSTEM].append(UNAVAILABLE)
    with pytest.raises(RefusedError, match="503"):
        cluster_uid(client)


@pytest.mark.parametrize(
    ("major", "minor", "version"),
    [
        ("1", "37", (1, 37)),
        ("1", "36+", (1, 36)),
        # The recorded server was built without a version.
        ("", "", UNKNOWN_VERSION),
        ("1", "", UNKNOWN_VERSION),
        ("1", "x", UNKNOWN_VERSION),
        ("1", "-2", UNKNOWN_VERSION),
        ("1", "9" * 5000, UNKNOWN_VERSION),
        (1, 37, UNKNOWN_VERSION),
        (None, ["37"], UNKNOWN_VERSION),
    ],
)
def test_version_of_the_server_is_read(
    client: ClusterClient, api: ReplayServer, major: object, minor: object, version: object
) -> None:
    api.server_version |= {"major": major, "minor": minor}
    assert server_version(client) == version


@pytest.mark.parametrize("fault", [FORBIDDEN, UNAVAILABLE, Fault(200, b"oops"), Fault(200, b"[]")])
def test_without_a_version_the_cluster_is_read_all_the_same(
    client: ClusterClient, api: ReplayServer, fault: Fault
) -> None:
    api.faults[SERVER_VERSION].append(fault)

    assert read(client) == snapshot(None, usage())


def test_a_resize_is_added_up_as_the_scheduler_of_this_version_does(
    client: ClusterClient, api: ReplayServer
) -> None:
    (raw,) = (p for p in api.lists[PODS] if p["metadata"]["name"].startswith("dep-noresources"))
    raw["spec"]["containers"] = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}}
        for name, cpu in (("a", "1"), ("b", "2"))
    ]
    raw["status"]["containerStatuses"] = [
        {"name": name, "allocatedResources": {"cpu": cpu}, "resources": {"requests": {"cpu": cpu}}}
        for name, cpu in (("a", "2"), ("b", "1"))
    ]

    def requests(minor: str) -> int | None:
        api.server_version |= {"major": "1", "minor": minor}
        (found,) = (r for r in read(client) if r.name == "dep-noresources")
        return found.figures["cpu_requests_millicores"]

    assert requests("36") == 4000
    assert requests("37") == 3000
