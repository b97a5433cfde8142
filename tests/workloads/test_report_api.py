"""``PUT`` and ``PATCH /api/v1/clusters/{cluster_id}/workloads``: how agents report."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apikeys.models import AccessToken, ApiKey
from apikeys.tokens import TokenKind
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.workloads.agent import Agent, nothing_is_stored
from tests.workloads.records import (
    apply,
    at,
    delta_body,
    healthy,
    item,
    place,
    record,
    report,
    snapshot_body,
    stored,
)
from workloads.api import workloads
from workloads.models import Cluster, Workload


def test_snapshot_is_applied(agent: Agent, cluster: Cluster) -> None:
    apply(cluster, report(0, record("api"), record("old")))
    body = snapshot_body(1, [healthy("api"), healthy("new", replicas_desired=3)])

    response = agent.put(body)

    assert response.status_code == 200
    assert response.json() == {
        "report": {
            "cluster_id": str(cluster.pk),
            "cluster_name": cluster.name,
            "reported_at": "2026-11-20T12:00:01.000000Z",
            "created": 1,
            "updated": 1,
            "deleted": 1,
            "unchanged": 0,
        }
    }
    assert set(stored(cluster)) == {place("api"), place("new")}
    assert stored(cluster)[place("new")].replicas_desired == 3


def test_delta_is_applied(agent: Agent, cluster: Cluster) -> None:
    apply(cluster, report(0, record("api"), record("old"), record("stays")))

    response = agent.patch(delta_body(1, upserts=[healthy("new")], deletes=[item("old")]))

    assert response.status_code == 200
    assert response.json()["report"] == {
        "cluster_id": str(cluster.pk),
        "cluster_name": cluster.name,
        "reported_at": "2026-11-20T12:00:01.000000Z",
        "created": 1,
        "updated": 0,
        "deleted": 1,
        "unchanged": 0,
    }
    assert set(stored(cluster)) == {place("api"), place("stays"), place("new")}


def test_item_with_all_fields_is_stored(agent: Agent, cluster: Cluster) -> None:
    container = {"name": "app", "image": "app:1", "restart_count": 4, "state": "running"}
    fields = {
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
    body = snapshot_body(0, [item(**fields)], cluster_uid="mine", report_interval_seconds=15)

    assert agent.put(body).status_code == 200

    row = stored(cluster)[place()]
    assert {name: getattr(row, name) for name in fields} == fields
    cluster.refresh_from_db()
    assert (cluster.uid, cluster.report_interval_seconds) == ("mine", 15)


def test_item_without_optional_fields_is_accepted(agent: Agent, cluster: Cluster) -> None:
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


@pytest.mark.parametrize("scope", ["cluster:report", "cluster:write"])
@pytest.mark.parametrize("kind", [TokenKind.SERVICE, TokenKind.PERSONAL])
def test_token_without_a_binding_is_accepted(
    client_with: ClientWith, cluster: Cluster, kind: TokenKind, scope: str
) -> None:
    agent = Agent(client_with(scope, kind=kind), cluster.pk)

    assert agent.put(snapshot_body()).status_code == 200
    assert agent.patch(delta_body(1)).status_code == 200


@pytest.mark.parametrize("scope", ["cluster:read", "state:write", "apikey:write"])
def test_a_report_needs_its_scope(client_with: ClientWith, cluster: Cluster, scope: str) -> None:
    for response in (
        Agent(client_with(scope), cluster.pk).put(snapshot_body()),
        Agent(client_with(scope), cluster.pk).patch(delta_body()),
    ):
        assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
        assert 'scope="cluster:report"' in response["WWW-Authenticate"]


def test_report_scope_only_allows_reports(agent: Agent, cluster: Cluster) -> None:
    client, path = agent.client, f"/api/v1/clusters/{cluster.pk}"
    for method, where, body in [
        ("GET", "/api/v1/clusters", None),
        ("POST", "/api/v1/clusters", {"name": "new"}),
        ("GET", path, None),
        ("PATCH", path, {"name": "new"}),
        ("DELETE", path, None),
        ("GET", f"{path}/workloads", None),
        ("GET", f"{path}/workloads:summary", None),
    ]:
        response = client.send(method, where, body)
        assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
    assert agent.put(snapshot_body()).status_code == 200
    assert Cluster.objects.get().name == cluster.name


def test_token_of_another_cluster_is_refused(agent: Agent, cluster: Cluster) -> None:
    other = Cluster.objects.create(name="other")
    AccessToken.objects.update(bound_cluster_id=other.pk)

    for response in (agent.put(snapshot_body()), agent.patch(delta_body())):
        assert (response.status_code, error_reason(response)) == (404, "CLUSTER_NOT_FOUND")
    assert nothing_is_stored(cluster)


@pytest.mark.parametrize("cluster_id", [uuid.UUID(int=1), "nonsense"])
def test_unknown_cluster_is_not_found(client_with: ClientWith, cluster_id: object) -> None:
    response = Agent(client_with("cluster:write"), cluster_id).put(snapshot_body())

    assert (response.status_code, error_reason(response)) == (404, "CLUSTER_NOT_FOUND")


def test_concurrently_deleted_cluster_is_not_found(
    agent: Agent, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = workloads.read_report

    def read_report(*args: Any, **kwargs: Any) -> Any:
        cluster.delete()
        return real(*args, **kwargs)

    monkeypatch.setattr(workloads, "read_report", read_report)

    response = agent.put(snapshot_body())

    assert (response.status_code, error_reason(response)) == (404, "CLUSTER_NOT_FOUND")


@pytest.mark.parametrize("end", ["the token's", "its key's"])
def test_body_after_the_expiry_is_rejected(
    agent: Agent, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The token is unchanged, and yet it has expired."""
    until = timezone.now() + dt.timedelta(hours=1)
    token = AccessToken.objects.get()
    if end == "its key's":
        key = ApiKey(name="x", scopes=token.scopes, digest=b"1" * 32, created_by=token.created_by)
        key.expires_at = until
        key.save()
        AccessToken.objects.update(api_key=key, expires_at=until + dt.timedelta(hours=1))
    else:
        AccessToken.objects.update(expires_at=until)
    real = workloads.read_report

    def read_report(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(timezone, "now", lambda: until)
        return real(*args, **kwargs)

    monkeypatch.setattr(workloads, "read_report", read_report)
    response = agent.put(snapshot_body())

    assert (response.status_code, error_reason(response)) == (401, "TOKEN_EXPIRED")
    assert nothing_is_stored(cluster)


def test_scope_is_required(client_with: ClientWith, cluster: Cluster) -> None:
    agent = Agent(client_with("cluster:read"), cluster.pk)

    for response in (agent.put(snapshot_body()), agent.patch(delta_body())):
        assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_missing_token_is_rejected(anonymous: Client, cluster: Cluster) -> None:
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


def test_the_present_is_no_future(agent: Agent) -> None:
    """A reporter's clock may be a little ahead."""
    ahead = (timezone.now() - at(0)).total_seconds() + 240

    assert agent.put(snapshot_body(ahead)).status_code == 200


def test_unchanged_workloads_are_not_written(agent: Agent, client_with: ClientWith) -> None:
    agent.put(snapshot_body(0, [healthy()]))
    agent.put(snapshot_body(60, [healthy()]))

    assert Workload.objects.get().observed_at == at(0)
    reader: ApiClient = client_with("cluster:read")
    (shown,) = reader.get(agent.path).json()["workloads"]
    # As fresh as the snapshot all the same.
    assert shown["last_updated_at"] == "2026-11-20T12:01:00.000000Z"
