"""A bound on the rows that PostgreSQL reads for the lists of workloads in the admin."""

import json
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from infra_service.lib.database.bounded_pages.reading import MOST_ROWS
from tests.support.people import person
from tests.support.plans import plans_of
from tests.workloads.conftest import IN_A_CLUSTER
from workloads.models import Cluster, Workload

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner"),
    pytest.mark.usefixtures("many_workloads"),
]

AT_ONCE = 51


@pytest.fixture
def client(db: None) -> Client:
    return person("viewer")


def test_each_filter_is_served_by_an_index(client: Client) -> None:
    cluster = Cluster.objects.order_by("name")[7]
    one = Workload.objects.filter(cluster=cluster).order_by("namespace", "name")[500]
    for query, rows in {
        "": AT_ONCE,
        "&health=HEALTHY": AT_ONCE,
        "&health=ERROR": AT_ONCE,
        # Of each health those of the cluster are counted, and then read.
        "&kind=DaemonSet": 3 * IN_A_CLUSTER,
        f"&namespace={one.namespace}": 3 * IN_A_CLUSTER,
        f"&namespace={one.namespace}&health=ERROR": 3 * IN_A_CLUSTER,
        # Pieces of names are looked for in the cluster.
        "&q=nobody": 3 * IN_A_CLUSTER,
        f"&q={one.name}": 3 * IN_A_CLUSTER,
    }.items():
        with plans_of("workloads_workload", analyze=True) as plans:
            answer = client.get(f"/admin/workloads/workload/?cluster={cluster.pk}{query}")
        assert answer.status_code == 200
        namespaces, *page = plans
        assert "Seq Scan" not in namespaces.types
        assert namespaces.rows_read <= IN_A_CLUSTER
        of_workloads = [
            node
            for plan in page
            for node in plan.nodes()
            if node.get("Relation Name") == "workloads_workload"
        ]
        assert not [n for n in of_workloads if n["Node Type"] == "Seq Scan"], query
        read = sum(n["Actual Rows"] + n.get("Rows Removed by Filter", 0) for n in of_workloads)
        assert read <= rows, query


def test_list_shows_all_clusters(client: Client) -> None:
    """From failing to healthy workloads; pieces of names in a bounded number."""
    for query, rows in {
        "": AT_ONCE,
        "health=HEALTHY": AT_ONCE,
        "health=ERROR": AT_ONCE,
        urlencode({"after": json.dumps([3])}): AT_ONCE,
        "q=nobody": 3 * MOST_ROWS,
    }.items():
        with plans_of("workloads_workload", analyze=True) as plans:
            assert client.get(f"/admin/workloads/workload/?{query}").status_code == 200
        assert not [plan.sql for plan in plans if plan.reads_a_table], query
        assert sum(plan.rows_read for plan in plans) <= rows, query


def test_a_cluster_is_added_up_within_itself(client: Client) -> None:
    cluster = Cluster.objects.order_by("name")[7]
    with plans_of("workloads_workload", analyze=True) as plans:
        assert client.get(f"/admin/workloads/cluster/{cluster.pk}/change/").status_code == 200
    (found,) = plans
    assert "Seq Scan" not in found.types
    assert found.rows_read <= IN_A_CLUSTER


def test_the_overview_reads_five_workloads(client: Client) -> None:
    Cluster.objects.update(last_received_at=timezone.now(), last_report_at=timezone.now())
    with plans_of("workloads_workload", analyze=True) as plans:
        assert client.get("/admin/").status_code == 200
    (found,) = plans
    of_workloads = [n for n in found.nodes() if n.get("Relation Name") == "workloads_workload"]
    assert "Seq Scan" not in [node["Node Type"] for node in of_workloads]
    # One row of each of five clusters: found by its health, then read by its id.
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in of_workloads) <= 20
