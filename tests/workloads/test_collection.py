"""The status of a cluster's collection: the API, and the failures that a collector reports."""

from __future__ import annotations

import datetime as dt
from itertools import product
from typing import Any

import pytest
from django.db.models import Value
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from apikeys.actors import Actor
from apikeys.models import AuditEvent
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.workloads.agent import Agent
from tests.workloads.records import apply, record, report
from workloads import actions
from workloads.cluster_health import ClusterHealth, cluster_health, collection_status, is_silent
from workloads.collection import (
    MAX_MESSAGE,
    CollectionFailure,
    CollectionStatus,
    FailureReason,
    safe_text,
)
from workloads.errors import ClusterNotFound
from workloads.models import Cluster


def fail(cluster: Cluster, reason: str = "FORBIDDEN", **fields: str) -> None:
    failure = CollectionFailure(
        reason=FailureReason(reason), **{"message": "403: no", "resource": "pods", **fields}
    )
    actions.record_collection_failure(
        cluster_id=cluster.pk, failure=failure, actor=Actor(name="test")
    )


def age(cluster: Cluster, **seconds: float) -> None:
    """Let these moments of the cluster be so long ago."""
    now = timezone.now()
    moments = {name: now - dt.timedelta(seconds=ago) for name, ago in seconds.items()}
    Cluster.objects.filter(pk=cluster.pk).update(**moments)


def collection(reader: ApiClient, cluster: Cluster) -> dict[str, Any]:
    one = reader.get(f"/api/v1/clusters/{cluster.pk}").json()["cluster"]["collection"]
    (listed,) = reader.get("/api/v1/clusters").json()["clusters"]
    same = set(one) - {"lag_seconds"}
    assert {name: listed["collection"][name] for name in same} == {name: one[name] for name in same}
    return dict(one)


@pytest.mark.parametrize("created", [10, 1000])
def test_silence_condition_matches_the_computed_status(created: int, cluster: Cluster) -> None:
    now = timezone.now()

    def ago(seconds: int | None) -> dt.datetime | None:
        return None if seconds is None else now - dt.timedelta(seconds=seconds)

    for received, failed in product((None, 10, 179, 181, 1000), (None, 5, 100, 200, 2000)):
        Cluster.objects.update(
            created_at=ago(created), report_interval_seconds=60,
            last_report_at=ago(received), last_received_at=ago(received),
            collection_error_at=ago(failed), collection_failing_since=ago(failed),
            collection_error_reason="" if failed is None else "FORBIDDEN",
        )  # fmt: skip
        one = Cluster.objects.get()

        reported_by_status = collection_status(one, now) in {
            CollectionStatus.SILENT,
            CollectionStatus.FAILING,
        }
        lost = cluster_health(one, now) is ClusterHealth.UNREACHABLE
        never = received is None and created > 180
        found = Cluster.objects.filter(is_silent(Value(now))).exists()
        assert found == (reported_by_status or lost or never), (received, failed)


def test_limit_is_inclusive() -> None:
    """Three intervals are not too long, and a report counts beside a failure of its moment."""
    contact = timezone.now()
    cluster = Cluster(report_interval_seconds=60, last_received_at=contact,
                      collection_error_at=contact,
                      collection_failing_since=contact)  # fmt: skip
    end = contact + dt.timedelta(seconds=180)

    assert collection_status(cluster, end) is CollectionStatus.OK
    assert collection_status(cluster, end + dt.timedelta.resolution) is CollectionStatus.SILENT


def test_before_anything_was_heard(reader: ApiClient, cluster: Cluster) -> None:
    assert collection(reader, cluster) == {
        "status": "PENDING", "last_success_at": None, "lag_seconds": None, "failing_since": None,
        "last_error_at": None, "last_error_reason": "", "last_error_resource": "",
        "last_error_message": "", "collector_version": "",
    }  # fmt: skip


def test_reporting_cluster_is_healthy(reader: ApiClient, cluster: Cluster) -> None:
    apply(cluster, report(0, record(), reported_at=timezone.now() - dt.timedelta(seconds=30)))

    shown = collection(reader, cluster)

    assert shown["status"] == "OK"
    assert shown["last_success_at"] is not None
    # Reading the cluster took the reporter as long as that.
    assert 30 <= shown["lag_seconds"] < 120


def test_failing_collector_is_shown(reader: ApiClient, cluster: Cluster) -> None:
    apply(cluster, report(0, record()))
    fail(cluster)
    first = collection(reader, cluster)
    fail(cluster, "UNAUTHENTICATED", resource="deployments", message="401: Unauthorized")
    shown = collection(reader, cluster)

    assert shown["status"] == "FAILING"
    assert shown["failing_since"] == first["failing_since"] == first["last_error_at"]
    assert shown["last_error_at"] > first["last_error_at"]
    last_error = [shown[f"last_error_{name}"] for name in ("reason", "resource", "message")]
    assert last_error == ["UNAUTHENTICATED", "deployments", "401: Unauthorized"]
    assert shown["last_success_at"] == first["last_success_at"]


def test_failing_new_collector_is_reported(reader: ApiClient, cluster: Cluster) -> None:
    fail(cluster)
    first = collection(reader, cluster)
    fail(cluster)
    shown = collection(reader, cluster)

    assert (shown["status"], shown["last_success_at"]) == ("FAILING", None)
    assert shown["failing_since"] == first["failing_since"]


def test_a_report_ends_the_failure(reader: ApiClient, cluster: Cluster) -> None:
    fail(cluster)
    age(cluster, collection_error_at=5, collection_failing_since=50)
    apply(cluster, report(0, record()))

    shown = collection(reader, cluster)
    assert (shown["status"], shown["failing_since"]) == ("OK", None)
    assert shown["last_error_reason"] == "FORBIDDEN", "the last error can still be read"

    age(cluster, last_received_at=4)
    fail(cluster)
    again = collection(reader, cluster)
    assert again["failing_since"] == again["last_error_at"], "another failure begins anew"


@pytest.mark.parametrize("last_contact", ["report", "failure"])
def test_silent_status_after_reports_or_failures_stop(
    reader: ApiClient, cluster: Cluster, last_contact: str
) -> None:
    apply(cluster, report(0, record(), interval_seconds=10))
    if last_contact == "failure":
        fail(cluster)
        age(cluster, collection_error_at=31, collection_failing_since=31, last_received_at=60)
    else:
        age(cluster, last_received_at=31)

    assert collection(reader, cluster)["status"] == "SILENT"


@pytest.mark.both
def test_failure_is_recorded_after_the_clock_was_set_back(cluster: Cluster) -> None:
    fail(cluster)
    age(cluster, collection_error_at=-3600, collection_failing_since=-3600)

    fail(cluster)

    cluster.refresh_from_db()
    assert cluster.collection_error_at is not None
    assert cluster.collection_failing_since == cluster.collection_error_at
    assert cluster.collection_error_at < timezone.now()


@pytest.mark.both
def test_report_from_before_the_clock_was_set_back_is_not_recent(
    reader: ApiClient, cluster: Cluster
) -> None:
    apply(cluster, report(0, record()))
    age(cluster, last_report_at=-3600, last_received_at=-3600)

    assert collection(reader, cluster)["status"] == "SILENT"
    shown = reader.get(f"/api/v1/clusters/{cluster.pk}").json()["cluster"]
    assert shown["health_status"] == "UNREACHABLE"
    assert Cluster.objects.filter(is_silent(Now())).exists()


@pytest.mark.both
def test_report_ends_a_failure_from_before_the_clock_was_set_back(
    reader: ApiClient, cluster: Cluster
) -> None:
    fail(cluster)
    age(cluster, collection_error_at=-3600, collection_failing_since=-3600)

    apply(cluster, report(0, record()))

    assert collection(reader, cluster)["status"] == "OK"


@pytest.mark.both
def test_failure_after_a_report_from_before_the_clock_was_set_back_is_shown(
    reader: ApiClient, cluster: Cluster
) -> None:
    apply(cluster, report(0, record()))
    age(cluster, last_received_at=-3600)

    fail(cluster)
    first = collection(reader, cluster)
    fail(cluster)

    shown = collection(reader, cluster)
    assert (shown["status"], shown["failing_since"]) == ("FAILING", first["last_error_at"])


def test_unreachable_cluster_with_a_running_collector_is_failing(
    reader: ApiClient, cluster: Cluster
) -> None:
    apply(cluster, report(0, record(), interval_seconds=10))
    age(cluster, last_received_at=3600)
    fail(cluster, "UNREACHABLE")

    assert collection(reader, cluster)["status"] == "FAILING"
    answer = reader.get(f"/api/v1/clusters/{cluster.pk}").json()["cluster"]
    assert answer["health_status"] == "UNREACHABLE", "nobody knows how its workloads are"


# --- over HTTP ------------------------------------------------------------------------------------


def post(agent: Agent, **body: Any) -> Any:
    return agent.client.post(f"{agent.path}:report-failure", body, "application/json")


def test_agent_reports_a_failure(agent: Agent, reader: ApiClient, cluster: Cluster) -> None:
    answer = post(
        agent, reason="FORBIDDEN", resource="pods", message="403", collector_version="agent/1.2"
    )

    assert (answer.status_code, answer.content) == (204, b"")
    shown = collection(reader, cluster)
    assert (shown["status"], shown["collector_version"]) == ("FAILING", "agent/1.2")
    assert not AuditEvent.objects.filter(action__startswith="cluster").exists()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "REQUIRED"),
        ({"reason": "BROKEN"}, "UNKNOWN_VALUE"),
        ({"reason": "OTHER", "message": "x" * (10 * MAX_MESSAGE + 1)}, "MAX_LENGTH"),
        ({"reason": "OTHER", "resource": 1}, "INVALID"),
        ({"reason": "OTHER", "since": "yesterday"}, "UNKNOWN_FIELD"),
    ],
)
def test_invalid_failures_are_rejected(
    agent: Agent, cluster: Cluster, body: Any, reason: str
) -> None:
    answer = post(agent, **body)

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")
    (violation,) = answer.json()["error"]["details"][1]["field_violations"]
    assert violation["reason"] == reason
    cluster.refresh_from_db()
    assert cluster.collection_error_at is None


def test_scope_and_binding_are_required(
    client_with: ClientWith, cluster: Cluster, anonymous: Client
) -> None:
    others = client_with("cluster:write", bound_cluster_id=Cluster.objects.create(name="o").pk)
    for client, expected in (
        (anonymous, 401), (client_with("cluster:read"), 403), (others, 404),
        (client_with("cluster:write"), 204), (client_with("cluster:report"), 204),
    ):  # fmt: skip
        assert post(Agent(client, cluster.pk), reason="OTHER").status_code == expected


def test_unknown_cluster_is_not_found(db: None) -> None:
    with pytest.raises(ClusterNotFound):
        fail(Cluster(name="gone"))


def test_a_message_is_bounded_and_holds_no_credentials(agent: Agent, cluster: Cluster) -> None:
    token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2ln"
    secrets = [token, "iss_" + "a" * 38, "hunter2", "s3cret"]
    message = (
        f"GET https://me:hunter2@10.0.0.1/ with Authorization: Bearer s3cret\n{token} {secrets[1]}"
    )

    post(agent, reason="OTHER", message=message + " x" * 1000)

    cluster.refresh_from_db()
    kept = cluster.collection_error_message
    assert len(kept) == MAX_MESSAGE
    assert "GET https://[secret]@10.0.0.1/ with Authorization: Bearer [secret] [secret]" in kept
    assert not [secret for secret in secrets if secret in kept]


def test_text_is_readable() -> None:
    assert safe_text("a\0b\r\n\tc", 10) == "ab c"
    assert safe_text("x" * 10, 10) == "x" * 10
    assert safe_text("x" * 11, 10) == "x" * 9 + "…"
