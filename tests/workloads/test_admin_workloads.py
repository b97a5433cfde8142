"""Workloads in the admin, of all clusters and of one."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from typing import Any

import pytest
from django.utils import timezone

from tests.support.people import person, reads_of, statements, text_of
from tests.workloads.conftest import NewWorkload
from tests.workloads.records import apply, at, record, report
from workloads.admin import history
from workloads.admin.workloads import WorkloadAdmin
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster, Workload
from workloads.models.clusters import ClusterQuerySet

LIST = "/admin/workloads/workload/"


@pytest.mark.parametrize(
    ("group", "status"), [("", 403), ("viewer", 200), ("operator", 200), ("administrator", 200)]
)
def test_groups_can_access_their_pages(workload: NewWorkload, group: str, status: int) -> None:
    one = workload()
    client = person(*filter(None, [group]))
    for path in (LIST, f"{LIST}?cluster={one.cluster_id}", f"{LIST}{one.pk}/change/"):
        assert client.get(path).status_code == status
    for path in (f"{LIST}{one.pk}/change/", f"{LIST}{one.pk}/delete/", f"{LIST}add/"):
        assert client.post(path, {"name": "x"}).status_code == 403


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [("", 200, "deleted cluster"), ("?csv=1", 200, "deleted cluster"), (None, 404, "")],
)
def test_a_cluster_is_deleted_while_a_page_is_read(
    workload: NewWorkload,
    monkeypatch: pytest.MonkeyPatch,
    query: str | None,
    status: int,
    text: str,
) -> None:
    one = workload()
    client = person("viewer")
    monkeypatch.setattr(ClusterQuerySet, "timed", lambda rows: rows.none())

    answer = client.get(f"{LIST}{one.pk}/change/" if query is None else f"{LIST}{query}")

    assert answer.status_code == status
    assert text in answer.content.decode()


def test_list_shows_all_clusters_worst_first(
    cluster: Cluster, workload: NewWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = timezone.now() - dt.timedelta(hours=3)
    other = Cluster.objects.create(name="other", last_received_at=long_ago, last_report_at=long_ago)
    cluster.last_received_at = cluster.last_report_at = timezone.now()
    cluster.save()
    workload(name="fine")
    workload(name="fine", cluster=other)
    workload(name="weak", health_status="DEGRADED", status_reason="OOMKilled: app")
    workload(name="down", cluster=other, health_status="ERROR", status_reason="CrashLoopBackOff")
    client = person("viewer")
    expected = ["down", "weak", "fine", "fine"]

    answer = client.get(LIST)
    text = text_of(answer)
    assert [one.name for one in answer.context["cl"].result_list] == expected
    # The reason, and how old the figures of the silent cluster are; the other's are as they are.
    assert "down other as of 3 hours ago shop Deployment Error CrashLoopBackOff" in text
    assert f"weak {cluster.name} shop Deployment Degraded OOMKilled: app" in text
    assert text.count("as of") == 2
    assert f'<option value="{other.name}">' in answer.content.decode()
    assert "The cluster does not exist." in text_of(client.get(LIST, {"cluster": "x"}))
    for query, found in (
        ({"health": "DEGRADED"}, ["weak"]),
        ({"q": "fin"}, ["fine", "fine"]),
        ({"namespace": "shop", "kind": "StatefulSet"}, []),
        ({"cluster": other.name}, ["down", "fine"]),
        ({"cluster": "x"}, []),
    ):
        names = [one.name for one in client.get(LIST, query).context["cl"].result_list]
        assert names == found, query
    # Page by page, and back.
    monkeypatch.setattr(WorkloadAdmin, "list_per_page", 1)
    lists = [client.get(LIST).context["cl"]]
    while lists[-1].next_url:
        lists.append(client.get(LIST + lists[-1].next_url).context["cl"])
    assert [one.name for cl in lists for one in cl.result_list] == expected
    back = lists[-1]
    for cl in reversed(lists[:-1]):
        back = client.get(LIST + back.previous_url).context["cl"]
        assert list(back.result_list) == list(cl.result_list)


def test_list_is_filtered_by_cluster_and_fields(cluster: Cluster, workload: NewWorkload) -> None:
    workload(name="web")
    workload(name="db", kind="StatefulSet", namespace="data", health_status="ERROR")
    workload(name="web", cluster=Cluster.objects.create(name="other"))
    client = person("viewer")

    def found(**query: str) -> list[str]:
        answer = client.get(LIST, {"cluster": str(cluster.pk), **query})
        return [str(one) for one in answer.context["cl"].result_list]

    database, web = "StatefulSet data/db", "Deployment shop/web"
    assert found() == found(cluster=cluster.name) == [database, web]
    assert found(health="ERROR") == [database]
    assert found(kind="Deployment") == [web]
    assert found(namespace="data") == [database]
    assert found(namespace="nowhere") == []
    assert found(namespace="data", health="HEALTHY") == []
    assert found(q="WE") == [web]
    assert found(q="dat d") == [database]
    assert found(q="data/d") == found(q="prod/data/d") == [database]  # as on the page of the search
    assert found(q="web data") == found(q="%") == found(q="_") == []
    assert found(q="w e b " * 1000) == [web]  # only the first words
    assert found(cluster=str(uuid.uuid4())) == []
    # The search form keeps the other filters.
    kept = '<input type="hidden" name="health" value="ERROR">'
    assert kept in client.get(LIST, {"health": "ERROR"}).content.decode()
    # Only the offered filters work: otherwise a client could guess a value by searching.
    refused = client.get(LIST, {"cluster": str(cluster.pk), "labels__contains": "x"})
    assert refused.status_code == 400


def test_requests_against_use(cluster: Cluster, workload: NewWorkload) -> None:
    mib = 1024 * 1024
    workload(
        name="a", cpu_requests_millicores=200, cpu_used_millicores=50,
        memory_requests_bytes=256 * mib, memory_used_bytes=300 * mib + 1,
    )  # fmt: skip
    workload(
        name="b", cpu_requests_millicores=0, cpu_used_millicores=50, memory_used_bytes=None
    )  # fmt: skip
    answer = person("viewer").get(LIST, {"cluster": cluster.pk})

    text = text_of(answer)
    assert "50 of 200 m" in text
    assert "within the request: 50 m" in text
    assert "301 of 256 MiB" in text
    assert "within the request: 256 MiB, beyond the request: 45 MiB" in text
    assert "50 m, no request" in text
    assert "256 MiB requested, usage not measured" in text
    content = answer.content.decode()
    # The bar is as long as the request, or as the usage when that is more.
    assert 'class="share-used" x="0.0" y="0" width="75.0"' in content
    assert 'class="share-beyond"' in content


def test_list_shows_large_figures_and_the_reason(cluster: Cluster, workload: NewWorkload) -> None:
    gib = 1024**3
    workload(
        name="a", health_status="ERROR", status_reason="CrashLoopBackOff",
        cpu_requests_millicores=12_500, cpu_used_millicores=15_000,
        memory_requests_bytes=64 * gib, memory_used_bytes=None,
    )  # fmt: skip
    answer = person("viewer").get(LIST, {"cluster": cluster.name})
    text = text_of(answer)
    assert "Error CrashLoopBackOff" in text
    assert "15.0 of 12.5 cores" in text
    assert "beyond the request: 2.5 cores" in text
    assert "64.0 GiB requested, usage not measured" in text
    # The namespaces of the cluster are suggestions for the input, and the current value is filled
    # in.
    body = answer.content.decode()
    assert '<option value="shop">' in body
    assert f'name="cluster" value="{cluster.name}"' in body


def test_page_shows_a_workload(workload: NewWorkload) -> None:
    one = workload(
        health_status="DEGRADED", status_reason="OOMKilled: app", labels={"<b>": "<i>x</i>"},
        replicas_ready=1,
    )  # fmt: skip
    answer = person("viewer").get(f"{LIST}{one.pk}/change/")

    text = text_of(answer)
    for part in (
        "Cluster: prod-eu-1", "Namespace: shop", "Kind: Deployment", "Degraded", "OOMKilled: app",
        "1 of 2", "31 of 200 m", "400 m", "182 of 256 MiB", "512 MiB",
        "app registry.example.com/app:1.4.2 running yes 0", "<b> <i>x</i>",
        "registry.example.com/app registry.example.com 1.4.2 unknown",
    ):  # fmt: skip
        assert part in text, part
    healthy = workload(name="healthy")
    assert "Reason: – Since" in text_of(person("viewer").get(f"{LIST}{healthy.pk}/change/"))  # noqa: RUF001 - a dash
    assert b"<i>x" not in answer.content


def test_page_shows_the_history_of_a_workload(cluster: Cluster) -> None:
    now = timezone.now()
    down: dict[str, Any] = {"health_status": HealthStatus.ERROR, "status_reason": "OOMKilled"}
    hour = 3600
    for ago, fields in ((30, {}), (29, {}), (4, {}), (3, down), (2, {}), (1, {})):
        moment = now - dt.timedelta(hours=ago)
        given = report((moment - at(0)).total_seconds(), record(**fields), interval_seconds=hour)
        apply(cluster, given)
    one = Workload.objects.get()
    answer = person("viewer").get(f"{LIST}{one.pk}/change/")

    text = text_of(answer)
    # Of 1 + 3 observed hours, the workload was unhealthy for an hour; between 29 and 4 hours ago
    # there were no reports.
    assert (
        "Healthy for 75 % of the observed time in the last 7 days; 164 h were not observed"
    ) in text
    for part in (
        "2 hours ago Error Healthy", "3 hours ago Healthy Error OOMKilled",
        "1 day ago Did not exist Healthy",
    ):  # fmt: skip
        assert part in text, part
    content = answer.content.decode()
    assert 'role="img" aria-labelledby="history-title history-desc"' in content
    strip = re.findall(r'class="share-(\w+)" [^>]*><title>(.*?) from .*?: (\d+) h<', content)
    # Each piece of two hours is as bad as the worst moment in it.
    assert {named for _, named, _ in strip} == {"Healthy", "Error", "Not observed"}
    assert sum(int(hours) for *_, hours in strip) == 7 * 24
    assert ("error", "Error", "2") in strip or ("error", "Error", "4") in strip


def test_long_history_is_truncated(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SHOWN", 3)
    start = (timezone.now() - at(0)).total_seconds() - 60
    client, costs = person("viewer"), []
    for number in range(6):
        health = HealthStatus.ERROR if number % 2 else HealthStatus.HEALTHY
        apply(cluster, report(start + number, record(health_status=health)))
        with statements() as found:
            answer = client.get(f"{LIST}{Workload.objects.get().pk}/change/")
        costs.append(len(found))
        assert ("The API returns older changes." in text_of(answer)) == (number >= 3)
    assert answer.content.count(b'<th scope="row" data-label="When"><time') == 3
    assert len(set(costs[1:])) == 1


@pytest.mark.slow
def test_the_list_costs_the_same(cluster: Cluster, workload: NewWorkload) -> None:
    client = person("viewer")
    costs: list[Any] = []
    for start in (0, 30):
        for number in range(start, start + 30):
            workload(name=f"web-{number:03}", namespace=f"n{number}")
        for query in ("", "&health=HEALTHY", "&kind=Deployment", "&q=web", "&namespace=n1"):
            with statements() as found:
                assert client.get(f"{LIST}?cluster={cluster.pk}{query}").status_code == 200
            # The namespaces to choose from; of each health the page, which way to it is the best,
            # and where a list that is filtered ends.
            assert len(reads_of("workloads_workload", found)) <= 1 + 3 * 4
            costs.append(len(found))
    assert all(more <= few for few, more in zip(costs[:5], costs[5:], strict=True))
    first = client.get(f"{LIST}?cluster={cluster.pk}")
    following = client.get(LIST + first.context["cl"].next_url)
    shown = [one.pk for answer in (first, following) for one in answer.context["cl"].result_list]
    assert len(set(shown)) == 60
