"""Workloads in the admin, always of one cluster."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.people import person, reads_of, statements, text_of
from tests.workloads.conftest import NewWorkload
from workloads.models import Cluster

LIST = "/admin/workloads/workload/"


@pytest.mark.parametrize(
    ("group", "status"), [("", 403), ("viewer", 200), ("operator", 200), ("administrator", 200)]
)
def test_who_may_open_what(workload: NewWorkload, group: str, status: int) -> None:
    one = workload()
    client = person(*filter(None, [group]))
    for path in (LIST, f"{LIST}?cluster={one.cluster_id}", f"{LIST}{one.pk}/change/"):
        assert client.get(path).status_code == status
    for path in (f"{LIST}{one.pk}/change/", f"{LIST}{one.pk}/delete/", f"{LIST}add/"):
        assert client.post(path, {"name": "x"}).status_code == 403


def test_without_a_cluster_there_is_no_list(workload: NewWorkload) -> None:
    one = workload()
    client = person("viewer")
    for query in ({}, {"cluster": ""}, {"cluster": "x"}, {"q": "web"}, {"health": "HEALTHY"}):
        with statements() as found:
            answer = client.get(LIST, query)
        assert ("Choose a cluster" in text_of(answer)) is (query.get("cluster") != "x"), query
        assert "No workloads" in text_of(answer), query
        assert not [sql for sql in found if 'FROM "workloads_workload"' in sql], query
    offered = f'<option value="{one.cluster.name}">'
    assert offered in client.get(LIST).content.decode()
    assert "There is no such cluster." in text_of(client.get(LIST, {"cluster": "x"}))


def test_the_list_is_of_one_cluster_and_filtered(cluster: Cluster, workload: NewWorkload) -> None:
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
    assert found(kind__exact="Deployment") == [web]
    assert found(namespace="data") == [database]
    assert found(namespace="nowhere") == []
    assert found(namespace="data", health="HEALTHY") == []
    assert found(q="WE") == [web]
    assert found(q="dat d") == [database]
    assert found(q="web data") == found(q="%") == found(q="_") == []
    assert found(cluster=str(uuid.uuid4())) == []
    # What is not offered is not answered: a figure could be guessed by asking.
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
    assert "256 MiB requested, use not measured" in text
    content = answer.content.decode()
    # The bar is as long as the request, or as what is used when that is more.
    assert 'class="share-used" x="0.0" y="0" width="75.0"' in content
    assert 'class="share-beyond"' in content


def test_large_figures_and_the_reason(cluster: Cluster, workload: NewWorkload) -> None:
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
    assert "64.0 GiB requested, use not measured" in text
    # The namespaces of the cluster are offered while somebody types, and the name stands there.
    body = answer.content.decode()
    assert '<option value="shop">' in body
    assert f'name="cluster" value="{cluster.name}"' in body


def test_one_workload(workload: NewWorkload) -> None:
    one = workload(
        health_status="DEGRADED", status_reason="OOMKilled: app", labels={"<b>": "<i>x</i>"},
        replicas_ready=1,
    )  # fmt: skip
    answer = person("viewer").get(f"{LIST}{one.pk}/change/")

    text = text_of(answer)
    for told in (
        "Cluster: prod-eu-1", "Namespace: shop", "Kind: Deployment", "Degraded", "OOMKilled: app",
        "1 of 2", "31 of 200 m", "400 m", "182 of 256 MiB", "512.0 MB",
        "app registry.example.com/app:1.4.2 running yes 0", "<b> <i>x</i>",
    ):  # fmt: skip
        assert told in text, told
    assert b"<i>x" not in answer.content


def test_the_list_costs_the_same(cluster: Cluster, workload: NewWorkload) -> None:
    client = person("viewer")
    costs: list[Any] = []
    for start in (0, 30):
        for number in range(start, start + 30):
            workload(name=f"web-{number:03}", namespace=f"n{number}")
        for query in ("", "&health=HEALTHY", "&kind__exact=Deployment", "&q=web", "&namespace=n1"):
            with statements() as found:
                assert client.get(f"{LIST}?cluster={cluster.pk}{query}").status_code == 200
            # The page, the namespaces to choose from, and where a list that is filtered ends.
            assert len(reads_of("workloads_workload", found)) <= 3
            costs.append(len(found))
    assert all(more <= few for few, more in zip(costs[:5], costs[5:], strict=True))
    first = client.get(f"{LIST}?cluster={cluster.pk}")
    following = client.get(LIST + first.context["cl"].next_url)
    shown = [one.pk for answer in (first, following) for one in answer.context["cl"].result_list]
    assert len(set(shown)) == 60
