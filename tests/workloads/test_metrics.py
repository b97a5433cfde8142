"""Reports, counted; clusters, as they are at a scrape."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.conftest import ApiClient, ClientWith
from tests.support import figures
from tests.support.figures import Figures, Since, value
from workloads import metrics
from workloads.metrics import ClusterCollector
from workloads.models import Cluster

REPORTS = "infra_workload_reports_total"


@pytest.fixture
def agent(client_with: ClientWith) -> ApiClient:
    return client_with("cluster:write")


def at(minutes_ago: int) -> str:
    return (timezone.now() - dt.timedelta(minutes=minutes_ago)).isoformat()


def test_reports_are_counted(agent: ApiClient, cluster: Cluster) -> None:
    path, counted = f"/api/v1/clusters/{cluster.pk}/workloads", Since()

    snapshot = {"reported_at": at(3), "workloads": []}
    assert agent.send("PUT", path, snapshot).status_code == 200
    assert agent.send("PATCH", path, {"reported_at": at(2)}).status_code == 200
    assert agent.send("PATCH", path, {"reported_at": at(9)}).status_code == 409

    assert counted(REPORTS, kind="snapshot") == 1
    assert counted(REPORTS, kind="delta") == 1
    refused = {"reason": "STALE_REPORT", "view": "workload-list", "method": "PATCH"}
    assert counted("infra_errors_total", **refused) == 1


def clusters() -> Figures:
    with CaptureQueriesContext(connection) as queries:
        found = figures.of(ClusterCollector())
    assert len(queries) == 1
    return found


def test_reporting_cluster_is_counted(cluster: Cluster) -> None:
    received = timezone.now() - dt.timedelta(seconds=90)
    Cluster.objects.update(
        last_report_at=received, last_received_at=received,
        report_interval_seconds=45, workloads_healthy=7, workloads_degraded=2,
    )  # fmt: skip

    found = clusters()

    name = cluster.name
    age = value(found, "infra_cluster_report_age_seconds", cluster=name)
    assert age == pytest.approx(90, abs=30)
    assert value(found, "infra_cluster_report_interval_seconds", cluster=name) == 45
    workloads = {
        health: value(found, "infra_cluster_workloads", cluster=name, health=health)
        for health in ("healthy", "degraded", "error", "unspecified")
    }
    assert workloads == {"healthy": 7, "degraded": 2, "error": 0, "unspecified": 0}
    assert by_health(found) == {"degraded": 1}


def by_health(found: Figures) -> dict[str, float]:
    """Return the number of clusters by health, without zeros."""
    names = ("pending", "unreachable", "error", "degraded", "healthy")
    counts = {name: value(found, "infra_clusters", health=name) for name in names}
    return {name: count for name, count in counts.items() if count}


def test_a_cluster_that_never_reported_has_no_age(cluster: Cluster) -> None:
    found = clusters()

    key = ("infra_cluster_report_age_seconds", frozenset({("cluster", cluster.name)}))
    assert key not in found
    assert by_health(found) == {"pending": 1}


def test_silent_cluster_is_counted(cluster: Cluster) -> None:
    long_ago = timezone.now() - dt.timedelta(hours=1)
    Cluster.objects.update(last_report_at=long_ago, last_received_at=long_ago)

    assert by_health(clusters()) == {"unreachable": 1}


def test_collections_are_counted_by_status(cluster: Cluster) -> None:
    now = timezone.now()
    long_ago = now - dt.timedelta(hours=1)
    silent, quiet = (Cluster.objects.create(name=name) for name in ("silent", "quiet"))
    Cluster.objects.exclude(pk=quiet.pk).update(
        last_report_at=long_ago, last_received_at=long_ago, collection_failing_since=long_ago,
        collection_error_at=now, collection_error_reason="UNAUTHENTICATED",
    )  # fmt: skip
    Cluster.objects.filter(pk=silent.pk).update(
        collection_error_at=long_ago + dt.timedelta(seconds=1)
    )

    found = clusters()

    failing = "infra_cluster_collection_failing_seconds"
    labels = {"cluster": cluster.name, "reason": "unauthenticated"}
    assert value(found, failing, **labels) == pytest.approx(3600, abs=60)
    assert [dict(key)["cluster"] for name, key in found if name == failing] == [cluster.name]
    last_contact = "infra_cluster_heard_age_seconds"
    assert value(found, last_contact, cluster=cluster.name) < 60
    assert value(found, last_contact, cluster="silent") > 3500
    lag = value(found, "infra_cluster_lag_seconds", cluster=cluster.name)
    assert lag == pytest.approx(3600, abs=60)
    statuses = {
        status: value(found, "infra_cluster_collections", status=status)
        for status in ("pending", "ok", "failing", "silent")
    }
    assert statuses == {"pending": 1, "ok": 0, "failing": 1, "silent": 1}


def test_no_more_clusters_have_series_than_that(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_CLUSTERS", 2)
    for name in ("c", "a", "b"):
        Cluster.objects.create(name=name)

    named = {dict(labels).get("cluster") for _, labels in clusters()} - {None}

    assert named == {"a", "b"}
