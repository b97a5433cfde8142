"""Reporters and services with a wrong clock: the database's clock decides."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from tests.conftest import ApiClient, ClientWith, error_reason
from tests.workloads.agent import Agent, nothing_is_stored
from tests.workloads.records import apply, at, healthy, place, record, report, snapshot_body, stored
from workloads.models import Cluster, Workload
from workloads.reporting.errors import ClockAhead

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def wrong_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of this process be a day ahead; the database's is right."""
    monkeypatch.setattr(timezone, "now", lambda: dt.datetime.now(dt.UTC) + dt.timedelta(days=1))


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


@pytest.mark.parametrize("complete", [True, False])
def test_a_report_from_the_future(cluster: Cluster, complete: bool) -> None:
    moment = now() + dt.timedelta(minutes=6)

    with pytest.raises(ClockAhead) as caught:
        apply(cluster, report(0, record(), reported_at=moment, complete=complete))

    assert caught.value.metadata["reported_at"] == f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"
    database_time = dt.datetime.fromisoformat(caught.value.metadata["database_time"])
    assert abs(database_time - now()) < dt.timedelta(minutes=1)
    assert nothing_is_stored(cluster)
    assert apply(cluster, report(0, record(), reported_at=now())).created == 1, "nobody is shut out"


def test_clock_ahead_is_rejected_over_http(agent: Agent, cluster: Cluster) -> None:
    answer = agent.put(snapshot_body((now() + HOUR - at(0)).total_seconds(), [healthy()]))

    assert (answer.status_code, error_reason(answer)) == (400, "CLOCK_AHEAD")
    metadata = answer.json()["error"]["details"][0]["metadata"]
    assert sorted(metadata) == ["database_time", "reported_at"]
    assert nothing_is_stored(cluster)


def test_the_clock_that_counts_is_the_databases(wrong_clock: None, cluster: Cluster) -> None:
    with pytest.raises(ClockAhead):
        apply(cluster, report(0, record(), reported_at=now() + HOUR))

    apply(cluster, report(0, record(), reported_at=now()))

    cluster.refresh_from_db()
    assert cluster.last_received_at is not None
    assert abs(cluster.last_received_at - now()) < dt.timedelta(minutes=1)


def test_silence_is_reckoned_by_the_databases_clock(
    cluster: Cluster, client_with: ClientWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_with("cluster:read")
    apply(cluster, report(0, record(), reported_at=now()))
    monkeypatch.setattr(timezone, "now", lambda: dt.datetime.now(dt.UTC) - HOUR)
    Cluster.objects.update(last_received_at=now() - dt.timedelta(minutes=4))

    shown = client.get(f"/api/v1/clusters/{cluster.pk}").json()["cluster"]

    assert (shown["health_status"], shown["collection"]["status"]) == ("UNREACHABLE", "SILENT")


def test_times_in_the_future_are_not_shown(
    cluster: Cluster, agent: Agent, client_with: ClientWith
) -> None:
    """A clock that is four minutes ahead is taken, but nothing was seen before it came."""
    ahead = now() + dt.timedelta(minutes=4)
    apply(cluster, report(0, record(), reported_at=ahead))

    reader: ApiClient = client_with("cluster:read")
    (shown,) = reader.get(agent.path).json()["workloads"]
    assert dt.datetime.fromisoformat(shown["last_updated_at"]) <= now()
    cluster.refresh_from_db()
    assert cluster.last_report_at == ahead, "it orders the reports all the same"


@pytest.mark.parametrize("complete", [True, False])
def test_a_cluster_that_a_future_report_has_shut_recovers(cluster: Cluster, complete: bool) -> None:
    """Earlier releases accepted such reports; the next report with a right clock repairs it."""
    apply(cluster, report(0, record("web"), record("api")))
    future = now() + HOUR
    Workload.objects.update(observed_at=future)
    Cluster.objects.update(
        last_report_at=future, last_snapshot_at=future, announced_report_at=future
    )

    changed = record("web", replicas_ready=1)
    same = [record("api")] if complete else []
    applied = apply(cluster, report(0, changed, *same, reported_at=now(), complete=complete))

    assert applied.updated == 1
    assert {row.observed_at <= now() for row in stored(cluster).values()} == {True}
    cluster.refresh_from_db()
    assert cluster.last_snapshot_at is not None
    assert cluster.last_report_at is not None
    assert cluster.last_snapshot_at <= cluster.last_report_at <= now()
    assert set(stored(cluster)) == {place("web"), place("api")}
