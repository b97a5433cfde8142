"""``PUT`` and ``PATCH /api/v1/clusters/{cluster_id}/workloads``: how agents report."""

from __future__ import annotations

import gzip
import json
import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apikeys.models import AccessToken
from apikeys.tokens import TokenKind
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.workloads.records import (
    apply,
    at,
    delta_body,
    gzipped,
    healthy,
    item,
    place,
    record,
    report,
    snapshot_body,
    stored,
)
from workloads import report_views
from workloads.models import Cluster, Workload

MEGABYTE = 1024 * 1024


class Agent:
    """An agent of one cluster."""

    def __init__(self, client: Client, cluster_id: object) -> None:
        self.client, self.path = client, f"/api/v1/clusters/{cluster_id}/workloads"

    def put(self, body: bytes, content_type: str = "application/json", **headers: str) -> Any:
        return self.client.put(self.path, body, content_type, headers=headers)

    def patch(self, body: bytes, content_type: str = "application/json", **headers: str) -> Any:
        return self.client.patch(self.path, body, content_type, headers=headers)


@pytest.fixture
def agent(client_with: ClientWith, cluster: Cluster) -> Agent:
    client = client_with("cluster:write", kind=TokenKind.SERVICE, bound_cluster_id=cluster.pk)
    return Agent(client, cluster.pk)


def violations(response: Any) -> list[tuple[str, str]]:
    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    found = response.json()["error"]["details"][1]["field_violations"]
    assert all(entry["description"] for entry in found)
    return [(entry["field"], entry["reason"]) for entry in found]


def nothing_is_stored(cluster: Cluster) -> bool:
    cluster.refresh_from_db()
    return not stored(cluster) and cluster.last_report_at is None


def test_a_snapshot(agent: Agent, cluster: Cluster) -> None:
    apply(cluster, report(0, record("api"), record("old")))
    body = snapshot_body(1, [healthy("api"), healthy("new", replicas_desired=3)])

    response = agent.put(body)

    assert response.status_code == 200
    assert response.json() == {
        "report": {
            "cluster_id": str(cluster.pk),
            "reported_at": "2026-11-20T12:00:01.000000Z",
            "created": 1,
            "updated": 1,
            "deleted": 1,
            "unchanged": 0,
        }
    }
    assert set(stored(cluster)) == {place("api"), place("new")}
    assert stored(cluster)[place("new")].replicas_desired == 3


def test_a_delta(agent: Agent, cluster: Cluster) -> None:
    apply(cluster, report(0, record("api"), record("old"), record("stays")))

    response = agent.patch(delta_body(1, upserts=[healthy("new")], deletes=[item("old")]))

    assert response.status_code == 200
    assert response.json()["report"] == {
        "cluster_id": str(cluster.pk),
        "reported_at": "2026-11-20T12:00:01.000000Z",
        "created": 1,
        "updated": 0,
        "deleted": 1,
        "unchanged": 0,
    }
    assert set(stored(cluster)) == {place("api"), place("stays"), place("new")}


def test_everything_that_an_item_can_say(agent: Agent, cluster: Cluster) -> None:
    container = {"name": "app", "image": "app:1", "restart_count": 4, "state": "running"}
    said = {
        "uid": "0b8b2a52-0000-4000-8000-000000000001",
        "labels": {"app.kubernetes.io/name": "web", "tier": ""},
        "health_status": "DEGRADED",
        "status_reason": "ReplicasNotReady: one of two",
        "replicas_desired": 2,
        "replicas_ready": 1,
        "replicas_available": 1,
        "cpu_requests_millicores": 1,
        "cpu_limits_millicores": 2,
        "cpu_used_millicores": 3,
        "memory_requests_bytes": 2**63 - 1,
        "memory_limits_bytes": 5,
        "memory_used_bytes": 6,
        "containers": [{**container, "ready": True}],
    }
    body = snapshot_body(0, [item(**said)], cluster_uid="mine", report_interval_seconds=15)

    assert agent.put(body).status_code == 200

    row = stored(cluster)[place()]
    assert {name: getattr(row, name) for name in said} == said
    cluster.refresh_from_db()
    assert (cluster.uid, cluster.report_interval_seconds) == ("mine", 15)


def test_an_item_that_says_nothing(agent: Agent, cluster: Cluster) -> None:
    agent.put(snapshot_body(0, [item()]))

    row = stored(cluster)[place()]
    assert row.health_status == "WORKLOAD_HEALTH_STATUS_UNSPECIFIED"
    assert (row.replicas_desired, row.cpu_used_millicores, row.containers) == (0, None, [])


def test_figures_are_shown_by_the_api(
    agent: Agent, cluster: Cluster, client_with: ClientWith
) -> None:
    agent.put(snapshot_body(0, [healthy(labels={"b": "1", "a": "2"})]))

    reader = client_with("cluster:read")
    (shown,) = reader.get(agent.path).json()["workloads"]
    row = stored(cluster)[place()]
    assert shown["id"] == str(row.pk)
    assert shown["labels"] == {"a": "2", "b": "1"}
    assert shown["health_status"] == "HEALTHY"
    assert shown["last_updated_at"] == "2026-11-20T12:00:00.000000Z"


@pytest.mark.parametrize("kind", [TokenKind.SERVICE, TokenKind.PERSONAL])
def test_a_token_without_a_binding(
    client_with: ClientWith, cluster: Cluster, kind: TokenKind
) -> None:
    agent = Agent(client_with("cluster:write", kind=kind), cluster.pk)

    assert agent.put(snapshot_body()).status_code == 200
    assert agent.patch(delta_body(1)).status_code == 200


def test_another_clusters_token(agent: Agent, cluster: Cluster) -> None:
    other = Cluster.objects.create(name="other")
    AccessToken.objects.update(bound_cluster_id=other.pk)

    for response in (agent.put(snapshot_body()), agent.patch(delta_body())):
        assert (response.status_code, error_reason(response)) == (404, "CLUSTER_NOT_FOUND")
    assert nothing_is_stored(cluster)


@pytest.mark.parametrize("cluster_id", [uuid.UUID(int=1), "nonsense"])
def test_no_such_cluster(client_with: ClientWith, cluster_id: object) -> None:
    response = Agent(client_with("cluster:write"), cluster_id).put(snapshot_body())

    assert (response.status_code, error_reason(response)) == (404, "CLUSTER_NOT_FOUND")


def test_a_cluster_that_is_deleted_meanwhile(
    agent: Agent, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = report_views.read_report

    def read_report(*args: Any, **kwargs: Any) -> Any:
        cluster.delete()
        return real(*args, **kwargs)

    monkeypatch.setattr(report_views, "read_report", read_report)

    response = agent.put(snapshot_body())

    assert (response.status_code, error_reason(response)) == (404, "CLUSTER_NOT_FOUND")


def test_without_the_scope(client_with: ClientWith, cluster: Cluster) -> None:
    agent = Agent(client_with("cluster:read"), cluster.pk)

    for response in (agent.put(snapshot_body()), agent.patch(delta_body())):
        assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_without_a_token(anonymous: Client, cluster: Cluster) -> None:
    for response in (
        Agent(anonymous, cluster.pk).put(snapshot_body()),
        Agent(anonymous, cluster.pk).patch(delta_body()),
    ):
        assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_MISSING")


@pytest.mark.parametrize("seconds", [0, 5])
def test_a_late_report(agent: Agent, cluster: Cluster, seconds: int) -> None:
    apply(cluster, report(5, record()))

    for response in (agent.put(snapshot_body(seconds)), agent.patch(delta_body(seconds))):
        assert (response.status_code, error_reason(response)) == (409, "STALE_REPORT")
        error = response.json()["error"]
        assert error["status"] == "ABORTED"
        assert error["details"][0]["metadata"] == {
            "reported_at": f"2026-11-20T12:00:0{seconds}.000000Z",
            "last_report_at": "2026-11-20T12:00:05.000000Z",
        }
    assert set(stored(cluster)) == {place()}


def test_a_report_of_another_cluster(agent: Agent, cluster: Cluster) -> None:
    agent.put(snapshot_body(0, [healthy()], cluster_uid="mine"))

    response = agent.put(snapshot_body(1, cluster_uid="theirs"))

    assert (response.status_code, error_reason(response)) == (409, "CLUSTER_UID_MISMATCH")
    assert response.json()["error"]["status"] == "FAILED_PRECONDITION"
    assert set(stored(cluster)) == {place()}


# --- The body -------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip"])
def test_gzip(agent: Agent, cluster: Cluster, encoding: str) -> None:
    assert (
        agent.put(gzipped(snapshot_body(0, [healthy()])), Content_Encoding=encoding).json()[
            "report"
        ]["created"]
        == 1
    )


def test_gzip_in_several_members(agent: Agent) -> None:
    body = snapshot_body(0, [healthy()])

    response = agent.put(gzipped(body[:20]) + gzipped(body[20:]), Content_Encoding="gzip")

    assert response.status_code == 200


def test_identity(agent: Agent) -> None:
    assert agent.put(snapshot_body(), Content_Encoding="identity").status_code == 200


@pytest.mark.parametrize("damage", [
    lambda body: body[:-1], lambda body: body[:20], lambda _: b"{}",
    lambda body: body[:30] + b"\0\0\0\0" + body[34:],
    lambda body: body + b"trailing", lambda body: body[:-8] + b"\0\0\0\0" + body[-4:],
])  # fmt: skip
def test_damaged_gzip(agent: Agent, cluster: Cluster, damage: Any) -> None:
    body = gzipped(snapshot_body(0, [healthy(f"w-{n}") for n in range(50)]))

    response = agent.put(damage(body), Content_Encoding="gzip")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_GZIP")
    assert nothing_is_stored(cluster)


def test_empty_gzip(agent: Agent) -> None:
    response = agent.put(gzipped(b""), Content_Encoding="gzip")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_JSON")


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_another_encoding(agent: Agent, encoding: str) -> None:
    response = agent.put(b" ", Content_Encoding=encoding)

    assert response.status_code == 415
    assert error_reason(response) == "CONTENT_ENCODING_UNSUPPORTED"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_another_type(agent: Agent, content_type: str) -> None:
    response = agent.put(snapshot_body(), content_type)

    assert (response.status_code, error_reason(response)) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_type_with_a_parameter(agent: Agent) -> None:
    assert agent.put(snapshot_body(), "Application/JSON; charset=utf-8").status_code == 200


def test_a_gzip_bomb(agent: Agent, cluster: Cluster, settings: Any) -> None:
    bomb = gzip.compress(b" " * (64 * MEGABYTE), 9)
    assert len(bomb) < MEGABYTE // 8

    response = agent.put(bomb, Content_Encoding="gzip")

    assert (response.status_code, error_reason(response)) == (413, "REQUEST_TOO_LARGE")
    limit = response.json()["error"]["details"][0]["metadata"]
    assert limit == {"limit_bytes": str(settings.WORKLOADS_MAX_BYTES)}
    assert nothing_is_stored(cluster)


def test_a_report_of_50_megabytes(agent: Agent, cluster: Cluster) -> None:
    response = agent.put(snapshot_body()[:-1] + b" " * (50 * MEGABYTE) + b"}")

    assert (response.status_code, error_reason(response)) == (413, "REQUEST_TOO_LARGE")
    assert nothing_is_stored(cluster)


def test_the_limit_is_inclusive(agent: Agent, settings: Any) -> None:
    body = snapshot_body()
    settings.WORKLOADS_MAX_BYTES = len(body)
    assert agent.put(body).status_code == 200
    assert agent.put(gzipped(body + b" "), Content_Encoding="gzip").status_code == 413


@pytest.mark.parametrize("body", [b" ", b"{", b"\xff", b"[" * 100_000, b'{"reported_at": "\xff"}',
                                  b'{"workloads": ' + b"[" * 100_000])  # fmt: skip
def test_not_json(agent: Agent, cluster: Cluster, body: bytes) -> None:
    for response in (agent.put(body), agent.patch(body)):
        assert response.status_code == 400
        assert error_reason(response) in {"INVALID_JSON", "INVALID_FIELDS"}
    assert nothing_is_stored(cluster)


# --- Faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("head", "field", "reason"), [
    ([], "body", "INVALID"),
    ({}, "reported_at", "REQUIRED"),
    ({"reported_at": "2026-11-20T12:00:00Z"}, "workloads", "REQUIRED"),
    ({"reported_at": "2026-11-20T12:00:00", "workloads": []}, "reported_at", "INVALID_FORMAT"),
    ({"reported_at": "yesterday", "workloads": []}, "reported_at", "INVALID_FORMAT"),
    ({"reported_at": 1, "workloads": []}, "reported_at", "INVALID"),
    ({"reported_at": "2036-01-01T00:00:00Z", "workloads": []}, "reported_at", "OUT_OF_RANGE"),
    ({"reported_at": "9999-12-31T23:59:59-14:00", "workloads": []}, "reported_at", "OUT_OF_RANGE"),
    ({"reported_at": "0001-01-01T00:00:00+14:00", "workloads": []}, "reported_at", "OUT_OF_RANGE"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": {}}, "workloads", "INVALID"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": [], "more": 1}, "more", "UNKNOWN_FIELD"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": [], "cluster_uid": ""},
     "cluster_uid", "INVALID_FORMAT"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": [], "cluster_uid": "a" * 65},
     "cluster_uid", "OUT_OF_RANGE"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": [], "report_interval_seconds": 0},
     "report_interval_seconds", "OUT_OF_RANGE"),
    ({"reported_at": "2026-11-20T12:00:00Z", "workloads": [], "report_interval_seconds": 86401},
     "report_interval_seconds", "OUT_OF_RANGE"),
])  # fmt: skip
def test_faults_of_the_report(
    agent: Agent, cluster: Cluster, head: Any, field: str, reason: str
) -> None:
    assert violations(agent.put(json.dumps(head).encode())) == [(field, reason)]
    assert nothing_is_stored(cluster)


LONG_NAME = "a" * 254
CONTAINER = {"name": "app", "image": "app:1"}
POD = {"name": "web-1", "phase": "Running"}


@pytest.mark.parametrize(("said", "field", "reason"), [
    ({"namespace": ""}, "namespace", "INVALID_FORMAT"),
    ({"namespace": "a" * 64}, "namespace", "OUT_OF_RANGE"),
    ({"namespace": "a.b"}, "namespace", "INVALID_FORMAT"),
    ({"namespace": None}, "namespace", "INVALID"),
    ({"name": "Web"}, "name", "INVALID_FORMAT"),
    ({"name": "web\n"}, "name", "INVALID_FORMAT"),
    ({"name": "-web"}, "name", "INVALID_FORMAT"),
    ({"name": LONG_NAME}, "name", "OUT_OF_RANGE"),
    ({"kind": "CronJob"}, "kind", "UNKNOWN_VALUE"),
    ({"uid": "a" * 65}, "uid", "OUT_OF_RANGE"),
    ({"uid": "a\0"}, "uid", "INVALID_FORMAT"),
    ({"labels": {"app": "a" * 64}}, "labels", "OUT_OF_RANGE"),
    ({"labels": {"a" * 64: "x"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"a" * 254 + "/x": "x"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"a" * 318: "x"}}, "labels", "OUT_OF_RANGE"),
    ({"labels": {"Upper/x": "x"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"a/b/c": "x"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"app": "two words"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"app": "a\0"}}, "labels", "INVALID_FORMAT"),
    ({"labels": {"app": 1}}, "labels", "INVALID"),
    ({"labels": {f"l{n}": "" for n in range(1001)}}, "labels", "OUT_OF_RANGE"),
    ({"labels": [["app", "web"]]}, "labels", "INVALID"),
    ({"health_status": "FINE"}, "health_status", "UNKNOWN_VALUE"),
    ({"status_reason": "a" * 1025}, "status_reason", "OUT_OF_RANGE"),
    ({"status_reason": "a\0"}, "status_reason", "INVALID_FORMAT"),
    ({"replicas_ready": -1}, "replicas_ready", "OUT_OF_RANGE"),
    ({"replicas_ready": 2**31}, "replicas_ready", "OUT_OF_RANGE"),
    ({"replicas_desired": 10**400}, "replicas_desired", "OUT_OF_RANGE"),
    ({"replicas_desired": 1.5}, "replicas_desired", "INVALID"),
    ({"replicas_desired": True}, "replicas_desired", "INVALID"),
    ({"cpu_used_millicores": -1}, "cpu_used_millicores", "OUT_OF_RANGE"),
    ({"memory_limits_bytes": 2**63}, "memory_limits_bytes", "OUT_OF_RANGE"),
    ({"memory_limits_bytes": "1Gi"}, "memory_limits_bytes", "INVALID"),
    ({"containers": [CONTAINER, {"name": "app"}]}, "containers.1.image", "REQUIRED"),
    ({"containers": [{**CONTAINER, "image": "a\0"}]}, "containers.0.image", "INVALID_FORMAT"),
    ({"containers": [{**CONTAINER, "image": "a" * 2049}]}, "containers.0.image", "OUT_OF_RANGE"),
    ({"containers": [{**CONTAINER, "state": "fine"}]}, "containers.0.state", "UNKNOWN_VALUE"),
    ({"containers": [{**CONTAINER, "env": []}]}, "containers.0.env", "UNKNOWN_FIELD"),
    ({"spec": {}}, "spec", "UNKNOWN_FIELD"),
    ({"pods": [POD]}, "pods", "INVALID"),
])  # fmt: skip
def test_faults_of_an_item(
    agent: Agent, cluster: Cluster, said: Any, field: str, reason: str
) -> None:
    """One faulty item refuses the sound ones beside it."""
    items = [healthy("sound"), {**healthy(), **said}]

    assert violations(agent.put(snapshot_body(0, items))) == [(f"workloads.1.{field}", reason)]
    upserts = delta_body(0, upserts=items)
    assert violations(agent.patch(upserts)) == [(f"upserts.1.{field}", reason)]
    assert nothing_is_stored(cluster)


@pytest.mark.parametrize(("said", "field", "reason"), [
    ({"status_reason": "Bad"}, "status_reason", "INVALID"),
    ({"pods": []}, "replicas_desired", "REQUIRED"),
    ({"replicas_desired": 1, "pods": [{"name": "web-1"}]}, "pods.0.phase", "REQUIRED"),
    ({"replicas_desired": 1, "created_at": "2026-01-01"}, "created_at", "INVALID_FORMAT"),
    ({"replicas_desired": 1, "pods": [{**POD, "containers": [{"name": "c", "state": "odd"}]}]},
     "pods.0.containers.0.state", "UNKNOWN_VALUE"),
    ({"replicas_desired": 1, "conditions": [{"type": "Available", "status": "Maybe"}]},
     "conditions.0.status", "UNKNOWN_VALUE"),
])  # fmt: skip
def test_faults_of_what_health_follows_from(
    agent: Agent, said: Any, field: str, reason: str
) -> None:
    body = snapshot_body(0, [item(**said)])

    assert violations(agent.put(body)) == [(f"workloads.0.{field}", reason)]


@pytest.mark.parametrize("raw", [b"1", b'"x"', b"[]", b"null"])
def test_an_item_that_is_no_object(agent: Agent, raw: bytes) -> None:
    body = snapshot_body(0, ["RAW"]).replace(b'"RAW"', raw)

    assert violations(agent.put(body)) == [("workloads.0", "INVALID")]


@pytest.mark.parametrize("raw", [
    b'{"namespace": "\xff"}', b'{"labels": ' + b"[" * 900 + b"]" * 900 + b"}",
])  # fmt: skip
def test_an_item_that_cannot_be_read(agent: Agent, raw: bytes) -> None:
    body = snapshot_body(0, ["RAW"]).replace(b'"RAW"', raw)

    assert violations(agent.put(body))[0][0].startswith("workloads.0")


def test_a_workload_twice(agent: Agent, cluster: Cluster) -> None:
    body = snapshot_body(0, [healthy(), healthy("api"), healthy()])
    assert violations(agent.put(body)) == [("workloads.2", "DUPLICATE")]

    delta = delta_body(0, upserts=[healthy()], deletes=[item("api"), item()])
    assert violations(agent.patch(delta)) == [("deletes.1", "DUPLICATE")]
    assert nothing_is_stored(cluster)


def test_faults_of_a_deletion(agent: Agent) -> None:
    delta = delta_body(0, deletes=[{"namespace": "shop"}, item(uid="x")])

    assert violations(agent.patch(delta)) == [
        ("deletes.0.name", "REQUIRED"),
        ("deletes.1.uid", "UNKNOWN_FIELD"),
    ]


def test_ten_thousand_faults(agent: Agent, cluster: Cluster) -> None:
    body = snapshot_body(0, [healthy(f"w-{n}", replicas_ready=-1) for n in range(10_000)])

    response = agent.put(body)

    assert violations(response) == [
        (f"workloads.{n}.replicas_ready", "OUT_OF_RANGE") for n in range(100)
    ]
    assert response.json()["error"]["message"] == (
        "The report is refused and nothing of it is stored. The first of more than 100 faults: "
        "workloads.0.replicas_ready: Expected `int` >= 0."
    )
    assert nothing_is_stored(cluster)


def test_too_many_workloads(agent: Agent) -> None:
    assert violations(agent.put(snapshot_body(0, [1] * 100_001))) == [("workloads", "OUT_OF_RANGE")]


def test_the_present_is_no_future(agent: Agent) -> None:
    """A reporter's clock may be a little ahead."""
    ahead = (timezone.now() - at(0)).total_seconds() + 240

    assert agent.put(snapshot_body(ahead)).status_code == 200


def test_only_what_is_new_is_written(agent: Agent, client_with: ClientWith) -> None:
    agent.put(snapshot_body(0, [healthy()]))
    agent.put(snapshot_body(60, [healthy()]))

    assert Workload.objects.get().observed_at == at(0)
    reader: ApiClient = client_with("cluster:read")
    (shown,) = reader.get(agent.path).json()["workloads"]
    # As fresh as the snapshot all the same.
    assert shown["last_updated_at"] == "2026-11-20T12:01:00.000000Z"
