"""Counts of changes by day, kind, environment and action."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from infra_service.change_history import summaries
from infra_service.change_history.models import Change
from infra_service.change_history.recording import ids_at
from states.models import Environment
from tests.conftest import ApiClient, ClientWith
from tests.infra_service.change_history.test_recording import push, thing
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.workloads.records import apply, record, report
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster

SUMMARY = "/api/v1/changes:summary"
DAY = dt.timedelta(days=1)


def summary(client: ApiClient, **query: Any) -> Any:
    answer = client.get(SUMMARY, query)
    assert answer.status_code == 200, answer.content
    return answer.json()["summary"]


def counts(found: Any) -> list[tuple[str, str, int]]:
    return [(one["kind"], one["action"], one["changes"]) for one in found["groups"]]


def at(change: Change, moment: dt.datetime) -> None:
    """Move a change to this time."""
    (key,) = ids_at(moment, 1)
    Change.objects.filter(pk=change.pk).update(id=key, occurred_at=moment)


def error_of(client: ApiClient, **query: Any) -> Any:
    answer = client.get(SUMMARY, query)
    assert answer.status_code == 400, answer.content
    return answer.json()["error"]["details"][1]["field_violations"][0]


@pytest.fixture
def reader_of_both(client_with: ClientWith) -> ApiClient:
    return client_with("state:read", "cluster:read")


@pytest.fixture
def changed(backend: Backend, cluster: Cluster) -> None:
    """Two added and a changed resource, and an unhealthy workload."""
    push(backend, 1, thing("a"), thing("b"))
    push(backend, 2, thing("a", size=2), thing("b"))
    index()
    apply(cluster, report(0, record()))
    apply(cluster, report(60, record(health_status=HealthStatus.ERROR)))


@pytest.mark.usefixtures("changed")
def test_changes_are_counted_with_a_single_query(
    backend: Backend, reader_of_both: ApiClient
) -> None:
    Environment.objects.filter(pk=backend.environment_id).update(name="Production", slug="prod")
    now = timezone.now()
    for change in Change.objects.all():
        at(change, now)

    with CaptureQueriesContext(connection) as queries:
        found = summary(reader_of_both)

    about = [query for query in queries if "change_history_change" in query["sql"]]
    assert len(about) == 1
    assert found["total"] == 4
    day = f"{now:%Y-%m-%d}"
    environment = {"environment_id": str(backend.environment_id), "environment_slug": "prod"}
    resource = {"day": day, "kind": "RESOURCE", **environment}
    assert found["groups"] == [
        {**resource, "action": "ADDED", "changes": 2},
        {**resource, "action": "CHANGED", "changes": 1},
        {
            "day": day, "kind": "WORKLOAD", "environment_id": None, "environment_slug": None,
            "action": "HEALTH_CHANGED", "changes": 1,
        },
    ]  # fmt: skip


@pytest.mark.usefixtures("changed")
def test_days_are_those_of_utc(backend: Backend, reader: ApiClient) -> None:
    midnight = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
    first, second, third = Change.objects.filter(kind="RESOURCE")
    at(first, midnight - dt.timedelta(milliseconds=1))
    at(second, midnight)
    at(third, midnight + 3 * DAY)

    found = summary(reader, since="2026-11-19T00:00:00+02:00", until="2026-11-23T00:00:00Z")

    assert [(one["day"], one["changes"]) for one in found["groups"]] == [
        ("2026-11-19", 1), ("2026-11-20", 1),
    ]  # fmt: skip
    assert found["since"] == "2026-11-18T22:00:00.000000Z"
    assert found["until"] == "2026-11-23T00:00:00.000000Z"


@pytest.mark.usefixtures("changed")
def test_filter_scope_and_binding_restrict_the_counts(
    backend: Backend, cluster: Cluster, client_with: ClientWith, reader_of_both: ApiClient
) -> None:
    at(Change.objects.get(kind="WORKLOAD"), timezone.now())
    only_workloads = [("WORKLOAD", "HEALTH_CHANGED", 1)]
    only_resources = [("RESOURCE", "ADDED", 2), ("RESOURCE", "CHANGED", 1)]

    for text, expected in {
        "": [*only_resources, *only_workloads],
        "field['action'] = 'ADDED'": [("RESOURCE", "ADDED", 2)],
        "field['kind'] = 'WORKLOAD'": only_workloads,
        f"field['cluster'] = '{cluster.name}'": only_workloads,
        f"field['environment_id'] = '{backend.environment_id}'": only_resources,
    }.items():
        assert counts(summary(reader_of_both, filter=text)) == expected, text
    assert counts(summary(client_with("state:read"))) == only_resources
    of_cluster = client_with("state:read", "cluster:read", bound_cluster_id=str(cluster.pk))
    assert counts(summary(of_cluster)) == only_workloads
    other = client_with("state:read", bound_component_ids=[str(cluster.pk)])
    assert summary(other)["groups"] == []
    assert client_with("cluster:read").get(SUMMARY).status_code == 403


def test_period_is_limited(reader: ApiClient) -> None:
    now = timezone.now()
    assert error_of(reader, since=(now - 32 * DAY).isoformat()) == {
        "field": "since",
        "description": "More than 31 days before until.",
        "reason": "OUT_OF_RANGE",
    }
    assert error_of(reader, until="yesterday")["field"] == "until"
    assert error_of(reader, page_size=7)["reason"] == "UNKNOWN_PARAMETER"
    assert error_of(reader, since=(now + DAY).isoformat())["description"] == "Must be before until."
    found = summary(reader, until="2026-11-20T00:00:00Z")
    assert found["since"] == "2026-11-13T00:00:00.000000Z"


@pytest.mark.usefixtures("changed")
def test_groups_are_limited(reader: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "MOST_GROUPS", 1)

    assert "more than 1 groups" in error_of(reader)["description"]
    assert len(summary(reader, filter="field['action'] = 'ADDED'")["groups"]) == 1
