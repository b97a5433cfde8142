"""Compare the tests' API server with recorded answers of real servers, and the collector with both.

In every test, the replayed server itself rejects requests of the collector without a recorded
answer.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.apiserver import REPLICASETS, TOKEN, ReplayServer, event
from tests.apiserver.requests import Exchange, answered, probed
from tools.live_kubernetes.relay import text
from workloads.collector import client as client_module

REAL = Path(__file__).parents[1] / "fixtures" / "kubernetes-1.36"
REQUESTS = answered()
PROBED = probed()

_VALUES = {
    "limit": "1",
    "timeoutSeconds": "1",
    "resourceVersion": "1",
    # After a/a, at version 1500.
    "continue": "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTUwMCwic3RhcnQiOiJhL2FcdTAwMDAifQ",
}


def send(api: ReplayServer, request: str) -> Exchange:
    """Send a request of the tables to the replayed server; a watch brings one event."""
    api.watches.second = 0.01
    target, _, rest = request.partition(" Accept: ")
    accept, _, encoding = rest.partition(" Accept-Encoding: ")
    target = target.replace("{namespace}", "demo")
    for name, value in _VALUES.items():
        target = target.replace(f"{name}=\u2026", f"{name}={value}")
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": accept, "Accept-Encoding": encoding}
    http_request = urllib.request.Request(f"{api.url}{target}", headers=headers)
    try:
        answer = urllib.request.urlopen(http_request, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        body = answer.read()
        return Exchange(answer.status, answer.headers["Content-Type"].partition(";")[0], text(body))


def kind_of(path: str) -> str:
    return path.partition("?")[0].rpartition("/")[2]


@pytest.mark.parametrize("request_line", sorted(REQUESTS))
def test_replay_server_responds_like_recorded_servers(api: ReplayServer, request_line: str) -> None:
    path = request_line.partition("?")[0].replace("/namespaces/{namespace}", "")
    if "watch=1" in request_line:
        raw = {**api.lists[path][0], "kind": next(iter(REQUESTS[request_line].values())).says}
        api.watches.scripts[path.replace("/namespaces", "/namespaces")].append(
            [event("ADDED", raw)]
        )
        scoped = request_line.partition("?")[0].replace("{namespace}", "demo")
        api.watches.scripts[scoped].append([event("ADDED", raw)])

    found = send(api, request_line)

    for version, expected in REQUESTS[request_line].items():
        says = found.says if expected.says else ""
        assert found._replace(says=says) == expected, version


@pytest.mark.parametrize("probe", sorted(PROBED))
def test_replay_server_rejects_like_recorded_servers(api: ReplayServer, probe: str) -> None:
    if "watch=1" in probe:
        raw = {**api.lists[REPLICASETS][0], "kind": "ReplicaSet"}
        api.watches.scripts[REPLICASETS].append([event("ADDED", raw)])

    found = send(api, probe)

    for version, expected in PROBED[probe].items():
        assert found == expected, version


def test_the_form_of_a_list_ends_a_watch_without_a_byte(api: ReplayServer) -> None:
    """As on 1.36.2 (a recording that lies beside) and on 1.20.2 (the probes)."""
    recorded = (REAL / "watch-replicasets-accept-list-first.txt").read_text()
    assert recorded.startswith("200 0 bytes")
    form = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    api.watches.scripts[REPLICASETS].append([event("ADDED", api.lists[REPLICASETS][0])])

    found = send(api, f"{REPLICASETS}?timeoutSeconds=30&watch=1 Accept: {form} Accept-Encoding: ")

    assert found == Exchange(200, "application/json", "")


def test_watch_requests_metadata_in_the_form_of_single_objects(api: ReplayServer) -> None:
    lines = (REAL / "watch-replicasets-accept-metadata.jsonl").read_bytes().splitlines()
    assert {json.loads(line)["object"]["kind"] for line in lines} == {"PartialObjectMetadata"}
    watched = [r for r in REQUESTS if "watch=1" in r and "PartialObjectMetadata;" in r]
    assert {kind_of(request) for request in watched} == {"replicasets"}
    assert client_module._WATCH_METADATA in watched[0]


def test_no_request_is_in_the_table_that_is_not_made() -> None:
    """A row that stays when the collector has changed would let the old request pass."""
    kinds = {(kind_of(r), "watch=1" in r, "{namespace}" in r) for r in REQUESTS}
    resources = {"deployments", "statefulsets", "daemonsets", "replicasets", "pods"}
    assert kinds == {
        (resource, watch, scoped)
        for resource in resources
        for watch in (True, False)
        for scoped in (True, False)
    } | {("kube-system", False, False), ("version", False, False)}
