"""An API server, or a metrics API, that answers anything."""

from __future__ import annotations

import json
import random
import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.apiserver import (
    DEPLOYMENTS,
    KUBE_SYSTEM,
    LISTS,
    METRICS,
    PODS,
    SERVER_VERSION,
    STATEFULSETS,
    Fault,
    ReplayServer,
    event,
)
from tests.support.waiting import wait_until
from tests.workloads.collector.conftest import no_progress
from tests.workloads.kubernetes.test_recorded import RECORDED
from tests.workloads.records import stored
from workloads.collector import client as client_module
from workloads.collector import watching
from workloads.collector.client import ClusterClient
from workloads.collector.errors import KubernetesError
from workloads.collector.listing import read_cluster
from workloads.collector.sync import Collector, Synced
from workloads.kubernetes.records import WorkloadRecord
from workloads.models import Cluster

Rows = dict[tuple[str, str, str], WorkloadRecord]
DEEP = b"[" * 100_000 + b"]" * 100_000
DIGITS = "9" * 5000
# Values in the place of any other.
JUNK: list[Any] = [
    None,
    True,
    -1,
    2**31,
    2**63,
    -(2**63),
    10**300,
    1e300,
    -0.0,
    0.5,
    "",
    "\0",
    "\u202e\0x",
    "9" * 5000,
    "x" * 100_000,
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    [],
    [[]],
    [None, 7, {}],
    {},
    {"": None},
    {"name": {}},
    {"\0": "\0"},
    json.loads("[" * 500 + "]" * 500),
]


def spoil(rng: random.Random, value: Any) -> Any:
    """Put junk at a random place of a JSON value."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        value[key] = spoil(rng, value[key])
        return value
    return rng.choice(JUNK)


def rows(client: ClusterClient) -> Rows:
    found = read_cluster(client, RECORDED, no_progress)
    return {(r.kind.value, r.namespace, r.name): r for r in found}


def listing(items: list[Any]) -> Fault:
    return Fault(200, json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode())


def uid_of(raw: dict[str, Any]) -> Any:
    return raw["metadata"]["uid"]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("path", [*LISTS, METRICS])
def test_odd_objects_of_a_list(
    client: ClusterClient, api: ReplayServer, path: str, seed: int
) -> None:
    rng = random.Random(f"{path}{seed}")
    expected = rows(client)
    items = json.loads(json.dumps(api.metrics if path == METRICS else api.lists[path]))
    spoiled = set()
    for raw in rng.sample(items, k=min(8, len(items))):
        owners = [o["uid"] for o in raw["metadata"].get("ownerReferences", [])]
        spoiled |= {raw["metadata"].get("uid"), *owners}
        spoil(rng, raw)
    items += rng.sample(JUNK, k=4)
    rng.shuffle(items)
    if path == METRICS:
        # Whatever is measured, nothing else changes; an odd entry makes all of usage unknown.
        api.metrics_fault = listing(items)
    else:
        api.faults[path].append(listing(items))

    found = rows(client)

    assert set(found) <= {*expected, *((kind, *_) for kind, *_ in found)}
    if path == METRICS:
        assert [r.health_status for r in found.values()] == [
            r.health_status for r in expected.values()
        ]
        return
    # The workloads of objects that were left as they are.
    links = {uid_of(raw): o["uid"] for raw in api.lists["/apis/apps/v1/replicasets"]
             for o in raw["metadata"].get("ownerReferences", [])}  # fmt: skip
    touched = spoiled | {links.get(uid) for uid in spoiled}
    kept = {place: r for place, r in expected.items() if r.uid not in touched}
    assert {place: found.get(place) for place in kept} == kept
    assert len(kept) >= 40


def test_objects_with_extreme_values_are_skipped(client: ClusterClient, api: ReplayServer) -> None:
    expected = rows(client)
    odd = (DIGITS.encode(), b"1e400", DEEP[:1800].replace(b"]", b"") + b"]" * 1800, b'"\\ud800"')
    items = [json.dumps(raw).encode() for raw in api.lists[DEPLOYMENTS]]
    items += [b'{"metadata":' + value + b"}" for value in odd[:2]] + [b"7", b"null", b'"x"']
    body = b'{"metadata":{"resourceVersion":"1"},"items":[' + b",".join(items) + b"]}"
    api.faults[DEPLOYMENTS].append(Fault(200, body))

    with capture_logs() as logged:
        assert rows(client) == expected

    assert [entry["event"] for entry in logged].count("item_unreadable") == 5


def test_values_that_the_database_rejects_are_sanitized(
    collector: Collector, api: ReplayServer, cluster: Cluster, stop: threading.Event
) -> None:
    odd = json.loads(json.dumps(api.lists[DEPLOYMENTS][0]))
    odd["metadata"] |= {
        "name": "odd",
        "uid": "odd",
        "labels": {"\0": "\0", "x" * 5000: "y" * 5000, "bidi": "\u202e", "n": 1},
    }
    odd["status"]["conditions"] = [
        {"type": "ReplicaFailure", "status": "True", "reason": "\0" * 5000},
    ]
    odd["spec"] |= {"replicas": 10**30}
    too_long = [
        {"metadata": {"uid": "u" * 65, "namespace": "d", "name": "n"}},
        {"metadata": {"uid": "u1", "namespace": "d" * 64, "name": "n"}},
        {"metadata": {"uid": "u2", "namespace": "d", "name": "n" * 254}},
    ]
    api.faults[DEPLOYMENTS].append(listing([*api.lists[DEPLOYMENTS], odd, *too_long]))

    collector.once(stop)

    found = stored(cluster)
    assert len(found) == 55
    (row,) = (row for place, row in found.items() if place.name == "odd")
    assert row.replicas_desired == 2**31 - 1
    assert row.status_reason == "\ufffd" * 128
    assert row.labels["\ufffd"] == "\ufffd"


HOSTILE = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"7",
    b'"x"',
    b"{}",
    b"<html>",
    b"\xff\xfe",
    b"\0" * 1000,
    DEEP,
    b'{"items":' + DEEP + b"}",
    b'{"items":{}}',
    b'{"items":[1,null,"x",{}]}',
    b'{"metadata":7}',
    b'{"metadata":{"continue":7}}',
    b'{"metadata":{"resourceVersion":null}}',
    b'{"metadata":{"remainingItemCount":"x"}}',
    b'{"metadata":{"remainingItemCount":' + b"9" * 400 + b"}}",
    b'{"metadata":{"continue":"again","resourceVersion":"1"},"items":[]}',
    b'{"kind":"Status","code":"x","message":{"a":[]}}',
]
HEADERS: list[dict[str, str]] = [
    {},
    {"Retry_After": DIGITS},
    {"Retry_After": "Mon, 01 Jan 2026 00:00:00 +99999999999999"},
    {"Retry_After": "-1"},
    {"Retry_After": "\u0661"},
    {"Retry_After": "1e999"},
    {"Content_Encoding": "gzip"},
    {"Content_Encoding": "x-unknown"},
    {"Location": "http://127.0.0.1:1/"},
]


def hostile(seed: int) -> Fault:
    rng = random.Random(seed)
    headers = {
        name: value.encode().decode("latin-1") for name, value in rng.choice(HEADERS).items()
    }
    body, status = (
        rng.choice(HOSTILE),
        rng.choice([200, 200, 301, 400, 404, 410, 429, 500, 503]),
    )
    return Fault(status, body, headers=headers, cut=rng.choice([None, None, len(body) // 2]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("path", [DEPLOYMENTS, PODS, KUBE_SYSTEM, METRICS, SERVER_VERSION])
def test_hostile_answers_to_a_list(
    client: ClusterClient, api: ReplayServer, path: str, seed: int
) -> None:
    """Raise nothing but KubernetesError; answers that are not needed fail no list by themselves."""
    pauses: list[float] = []
    for number in range(8):
        fault = hostile(seed * 100 + number)
        if path == METRICS:
            api.metrics_fault = fault
        else:
            # The same again, as pages go on.
            api.faults[path] += [fault] * 3
        try:
            found = rows(client)
        except KubernetesError as error:
            pauses.append(error.retry_after)
        else:
            assert len(found) == 54 or path == DEPLOYMENTS
        api.faults[path].clear()
    api.metrics_fault = None
    assert len(rows(client)) == 54
    assert not pauses or path in (DEPLOYMENTS, PODS)
    assert all(0 <= pause <= 300 for pause in pauses)


LINES = [
    b"",
    b" ",
    b"{",
    b"null",
    b"[]",
    b"7",
    b"\xff",
    b"\0",
    DEEP,
    b'{"type":"MODIFIED"}',
    b'{"type":"MODIFIED","object":null}',
    b'{"type":"MODIFIED","object":{}}',
    b'{"type":7,"object":{}}',
    b'{"type":"NOVEL","object":{"metadata":{"uid":"x"}}}',
    b'{"type":"DELETED","object":{"metadata":[]}}',
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":7}}}',
    b'{"type":"ADDED","object":{"metadata":{"uid":7,"namespace":{},"name":[]}}}',
    b'{"type":"ERROR","object":{}}',
    b'{"type":"ERROR","object":{"code":"x","message":7}}',
    b'{"type":"ERROR","object":{"code":' + b"9" * 400 + b"}}",
    b'{"type":"MODIFIED","object":{"metadata":{"generation":' + b"9" * 5000 + b"}}}",
]


@pytest.fixture
def soon_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_PROOF_SECONDS", 0.1)


@pytest.mark.usefixtures("soon_believed")
@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_hostile_lines_of_a_watch_are_handled(
    collector: Collector,
    api: ReplayServer,
    cluster: Cluster,
    stop: threading.Event,
    line: bytes,
) -> None:
    """The events after such a line are reported all the same."""
    gone = api.lists[STATEFULSETS][0]
    reports: list[Synced] = []

    def reported(synced: Synced) -> None:
        reports.append(synced)
        if len(reports) == 1:
            api.lists[STATEFULSETS].remove(gone)
            api.watches.send(STATEFULSETS, line)
            if b"ERROR" in line:
                # The server counts the first watch as open until its timeout.
                wait_until(lambda: api.watches.number_open(STATEFULSETS) == 2)
            api.watches.send(STATEFULSETS, event("DELETED", gone))
        if len(stored(cluster)) == 53:
            stop.set()

    collector.follow(stop, reported)

    assert len(stored(cluster)) == 53


def test_an_event_without_an_end(
    client: ClusterClient, api: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_LONGEST_LINE", 100_000)
    api.watches.send(STATEFULSETS, b'{"type":"' + b"x" * 500_000)
    resource = client_module.Resource(STATEFULSETS)

    with (
        pytest.raises(KubernetesError, match="a watch event of more than"),
        client.watch(resource, "1") as events,
    ):
        list(events)


def test_large_page_is_refused(
    client: ClusterClient, api: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_LARGEST", 100_000)

    with pytest.raises(KubernetesError, match="more than 100000 bytes"):
        rows(client)
