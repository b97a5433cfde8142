"""Clusters in the admin."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys.models import AuditEvent
from tests.support.people import person, reads_of, statements, text_of
from tests.workloads.conftest import NewWorkload
from workloads.admin import clusters
from workloads.admin.clusters import NAMESPACES, ClusterAdmin
from workloads.models import Cluster, Workload

LIST = "/admin/workloads/cluster/"


def page(cluster: Cluster, name: str = "change") -> str:
    return f"{LIST}{cluster.pk}/{name}/"


def hear(cluster: Cluster, minutes: float = 0, **counts: int) -> None:
    """Let the cluster have reported these counts so long ago."""
    moment = timezone.now() - dt.timedelta(minutes=minutes)
    times = dict.fromkeys(("last_report_at", "last_received_at"), moment)
    Cluster.objects.filter(pk=cluster.pk).update(**times, **counts)


@pytest.mark.parametrize(
    ("group", "statuses"),
    [("", [403] * 4), ("viewer", [200, 200, 403, 403]), ("operator", [200, 200, 403, 403]),
     ("administrator", [200] * 4)],
)  # fmt: skip
def test_groups_can_access_their_pages(cluster: Cluster, group: str, statuses: list[int]) -> None:
    client = person(*filter(None, [group]))
    pages = [LIST, page(cluster), f"{LIST}add/", page(cluster, "delete")]

    assert [client.get(path).status_code for path in pages] == statuses
    if group != "administrator":
        posted = {"name": "x", "report_interval_seconds": 60, "post": "yes"}
        assert [client.post(path, posted).status_code for path in pages[1:]] == [403] * 3
        assert Cluster.objects.get().name == cluster.name


def test_list_shows_the_health(cluster: Cluster) -> None:
    client = person("viewer")
    assert "prod-eu-1 Pending no workloads" in text_of(client.get(LIST))
    assert "never" in text_of(client.get(LIST))

    hear(cluster, workloads_healthy=7, workloads_degraded=2)
    text = text_of(client.get(LIST))
    assert "prod-eu-1 Degraded 7 healthy, 2 degraded" in text
    assert "healthy: 7, degraded: 2, error: 0, unspecified: 0" in text, "the bar in words"
    assert "just now" in text

    hear(cluster, minutes=5, workloads_error=1)
    text = text_of(client.get(LIST))
    assert "prod-eu-1 Unreachable 7 healthy, 2 degraded, 1 error" in text
    assert "5 minutes ago" in text


def test_why_a_cluster_is_not_collected(cluster: Cluster) -> None:
    client = person("viewer")
    hear(cluster, minutes=0.5)
    assert "OK" in text_of(client.get(LIST)).split()
    now = timezone.now()
    Cluster.objects.update(
        collection_error_at=now, collection_failing_since=now - dt.timedelta(hours=2),
        collection_error_reason="FORBIDDEN", collection_error_resource="pods",
        collection_error_message="403: <pods> is forbidden", collector_version="agent/1.2",
    )  # fmt: skip

    assert "Failing : forbidden, for 2 hours" in text_of(client.get(LIST))
    answer = client.get(page(cluster))
    text = text_of(answer)
    assert ": FORBIDDEN pods: 403:" in text
    assert "agent/1.2" in text
    assert "403: &lt;pods&gt; is forbidden" in answer.content.decode()

    hear(cluster, minutes=-1)
    assert "FORBIDDEN" in text_of(client.get(page(cluster))), "the last failure can still be read"


def test_the_list_by_health(cluster: Cluster) -> None:
    hear(cluster, workloads_error=1)
    quiet = Cluster.objects.create(name="quiet")
    client = person("viewer")

    def found(**query: str) -> list[str]:
        return [c.name for c in client.get(LIST, query).context["cl"].result_list]

    assert found() == ["prod-eu-1", "quiet"]
    assert found(health="ERROR") == ["prod-eu-1"]
    assert found(health="PENDING") == ["quiet"]
    assert found(health="HEALTHY") == []
    assert found(health="x") == ["prod-eu-1", "quiet"]
    assert found(q="UIE") == ["quiet"]
    assert found(q=str(quiet.pk)) == ["quiet"]
    assert found(q="%") == []


def test_page_shows_a_summary_of_the_workloads(cluster: Cluster, workload: NewWorkload) -> None:
    workload(name="a", namespace="shop")
    workload(name="b", namespace="shop", kind="DaemonSet", health_status="ERROR")
    workload(
        name="c", namespace="mail", cpu_used_millicores=None, memory_used_bytes=None,
        health_status="WORKLOAD_HEALTH_STATUS_UNSPECIFIED",
    )  # fmt: skip
    other = Cluster.objects.create(name="other")
    Workload.objects.create(
        cluster=other, namespace="elsewhere", name="d", kind="Deployment", health_status="ERROR",
        replicas_desired=1, replicas_ready=1, replicas_available=1, cpu_requests_millicores=1,
        cpu_limits_millicores=1, memory_requests_bytes=1, memory_limits_bytes=1,
        observed_at=timezone.now(),
    )  # fmt: skip

    answer = person("viewer").get(page(cluster))
    text = text_of(answer)
    assert "DaemonSet 1 1 error" in text
    assert "Deployment 2 1 healthy, 1 unspecified" in text
    assert text.index("shop 2 1 healthy, 1 error") < text.index("mail 1 1 unspecified")
    assert "62 of 600 m" in text
    assert "363 of 768 MiB" in text
    assert "elsewhere" not in text
    content = answer.content.decode()
    for query in ("", "&amp;kind=DaemonSet", "&amp;namespace=mail"):
        assert f'href="/admin/workloads/workload/?cluster={cluster.pk}{query}"' in content


def test_the_page_is_bounded_and_costs_the_same(cluster: Cluster, workload: NewWorkload) -> None:
    client = person("viewer")
    workload(namespace="n000")
    client.get(page(cluster))  # Django remembers content types
    with CaptureQueriesContext(connection) as few:
        client.get(page(cluster))
    for number in range(1, NAMESPACES + 3):
        workload(namespace=f"n{number:03}")
    with CaptureQueriesContext(connection) as many:
        text = text_of(client.get(page(cluster)))
    assert len(few) == len(many)
    assert "And 3 more namespaces." in text
    assert f"n{NAMESPACES - 1:03}" in text
    assert f"n{NAMESPACES:03}" not in text


def test_the_list_costs_the_same(db: None) -> None:
    client = person("viewer")
    costs = []
    for start in (0, 30):
        Cluster.objects.bulk_create(Cluster(name=f"c{n}") for n in range(start, start + 30))
        with statements() as found:
            client.get(LIST)
        assert 1 <= len(reads_of("workloads_cluster", found)) <= 2
        costs.append(len(found))
    assert costs[1] <= costs[0]
    assert len(client.get(LIST).context["cl"].result_list) == 60, "all at once"


def test_very_many_clusters_come_in_pages(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "MOST_AT_ONCE", 59)
    Cluster.objects.bulk_create(Cluster(name=f"c{n:02}") for n in range(60))
    hear(Cluster.objects.create(name="z-error"), workloads_error=1)
    client = person("viewer")
    first = client.get(LIST)
    assert first.context["cl"].result_list[0].name == "z-error", "also then trouble is first"
    following = client.get(LIST + first.context["cl"].next_url)
    assert [c.name for c in following.context["cl"].result_list] == [f"c{n}" for n in range(49, 60)]
    before = client.get(LIST + following.context["cl"].previous_url)
    assert len(before.context["cl"].result_list) == 50


def test_the_most_trouble_comes_first(db: None) -> None:
    def reported(name: str, minutes: float = 0, **counts: int) -> None:
        hear(Cluster.objects.create(name=name), minutes, **counts)

    Cluster.objects.create(name="a-pending")
    reported("b-healthy", workloads_healthy=1)
    reported("c-degraded", workloads_degraded=9)
    reported("d-unreachable", minutes=60, workloads_error=99)
    reported("e-one-error", workloads_error=1)
    reported("f-two-errors", workloads_error=2)
    client = person("viewer")

    answer = client.get(LIST)

    assert [c.name for c in answer.context["cl"].result_list] == [
        "f-two-errors", "e-one-error", "d-unreachable", "c-degraded", "a-pending", "b-healthy",
    ]  # fmt: skip
    assert text_of(answer).count("as of 1 hour ago") == 1, "of the silent one alone"
    silent = Cluster.objects.get(name="d-unreachable")
    assert "as of 1 hour ago" in text_of(client.get(page(silent)))
    listed = text_of(client.get("/admin/workloads/workload/", {"cluster": silent.name}))
    assert "Unreachable The figures are as of 1 hour ago" in listed


def test_a_page_begins_with_the_health(cluster: Cluster) -> None:
    hear(cluster, workloads_error=1)
    for group, summary in (("viewer", "Details"), ("administrator", "Edit details")):
        answer = person(group).get(page(cluster))
        text = text_of(answer)
        assert "Health Health Error Collection OK Last report just now 1 error" in text
        assert text.index("1 error") < text.index(summary)
        assert b'<details class="card">' in answer.content, "closed"
    wrong = {"name": "", "report_interval_seconds": 60}
    refused = person("administrator").post(page(cluster), wrong)
    assert b'<details class="card" open>' in refused.content


def test_add_and_change(db: None) -> None:
    client = person("administrator")
    client.post(f"{LIST}add/", {"name": "prod", "report_interval_seconds": 60})
    cluster = Cluster.objects.get()
    answer = client.post(page(cluster), {"name": "prod-1", "report_interval_seconds": 90})

    assert answer.status_code == 302
    cluster.refresh_from_db()
    assert (cluster.name, cluster.report_interval_seconds) == ("prod-1", 90)
    events = AuditEvent.objects.filter(resource_id=str(cluster.pk)).order_by("id")
    assert [(e.action, e.actor_name) for e in events] == [
        ("cluster.create", "administrator-person"), ("cluster.update", "administrator-person")
    ]  # fmt: skip
    assert events[1].details == {
        "name": {"from": "prod", "to": "prod-1"},
        "report_interval_seconds": {"from": 60, "to": 90},
    }


def test_invalid_fields_show_errors(cluster: Cluster) -> None:
    client = person("administrator")
    for given in (
        {"name": "prod-eu-1", "report_interval_seconds": 60},
        {"name": "", "report_interval_seconds": 60},
        {"name": "x", "report_interval_seconds": 0},
        {"name": "x", "report_interval_seconds": ""},
    ):
        answer = client.post(f"{LIST}add/", given)
        assert answer.status_code == 200
        assert b"errorlist" in answer.content, given
    assert Cluster.objects.count() == 1


def test_delete_confirms_and_includes_workloads(cluster: Cluster, workload: NewWorkload) -> None:
    workload()
    hear(cluster, workloads_healthy=1)
    client = person("administrator")
    with statements() as found:
        confirmation = text_of(client.get(page(cluster, "delete")))
    assert "Clusters: 1" in confirmation
    assert "Workloads: 1" in confirmation
    assert not [sql for sql in found if 'FROM "workloads_workload"' in sql], "they are not listed"
    assert Cluster.objects.exists()

    done = client.post(page(cluster, "delete"), {"post": "yes"}, follow=True)
    assert "was deleted successfully" in text_of(done)
    assert not Cluster.objects.exists()
    assert not Workload.objects.exists()
    event = AuditEvent.objects.order_by("-id")[0]
    assert (event.action, event.actor_name) == ("cluster.delete", "administrator-person")
    assert event.details == {"name": "prod-eu-1", "workloads": 1}
    gone = f"{LIST}{uuid.uuid4()}/delete/"
    assert client.post(gone, {"post": "yes"}).status_code == 302


@pytest.mark.parametrize(
    ("method", "name", "given"),
    [
        ("save_model", "change", {"name": "renamed", "report_interval_seconds": 60}),
        ("delete_model", "delete", {"post": "yes"}),
    ],
)
def test_concurrently_deleted_cluster_is_reported(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, method: str, name: str, given: dict[str, Any]
) -> None:
    real = getattr(ClusterAdmin, method)

    def too_late(admin: ClusterAdmin, request: Any, obj: Cluster, *rest: Any) -> None:
        Cluster.objects.filter(pk=obj.pk).delete()
        real(admin, request, obj, *rest)

    monkeypatch.setattr(ClusterAdmin, method, too_late)
    answer = person("administrator").post(page(cluster, name), given, follow=True)
    assert "The cluster does not exist." in text_of(answer)
    assert not AuditEvent.objects.filter(resource_id=str(cluster.pk)).exists()
