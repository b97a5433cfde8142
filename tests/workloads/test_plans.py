"""A bound on the rows that PostgreSQL reads for a page of a cluster's workloads.

It is the rows of the cluster at most, and mostly only the page.
"""

import pytest
from django.db import connection

from tests.conftest import ApiClient
from tests.support.plans import plans_of
from tests.workloads.conftest import IN_A_CLUSTER
from workloads.models import Cluster, Workload

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner"),
    pytest.mark.usefixtures("many_workloads"),
]


def rows_read(reader: ApiClient, cluster: Cluster, text: str, **query: str) -> int:
    """Return how many rows the page read; fail on a sequential scan."""
    with plans_of("workloads_workload", analyze=True) as plans:
        answer = reader.get(
            f"/api/v1/clusters/{cluster.pk}/workloads",
            {"filter": text, "page_size": "10", **query},
        )
    assert answer.status_code == 200, answer.content
    for plan in plans:
        assert not plan.reads_a_table, text
    return sum(plan.rows_read for plan in plans if "Seq Scan" not in plan.types)


def test_each_filter_is_served_by_an_index(reader: ApiClient) -> None:
    for cluster in (Cluster.objects.order_by("id")[3], Cluster.objects.order_by("-id")[0]):
        one = Workload.objects.filter(cluster=cluster).order_by("namespace", "name")[500]
        namespace = f"field['namespace'] = '{one.namespace}'"
        instance = one.labels["app.kubernetes.io/instance"]
        # Several: counted, looked through, and at last asked whether the list ends there.
        at_once, several, all_of_it = 11, 3 * IN_A_CLUSTER, 3 * IN_A_CLUSTER
        for text, rows in {
            "": at_once,
            namespace: at_once,
            "field['kind'] = 'DaemonSet'": at_once,
            "field['kind'] = 'Deployment'": at_once,
            "field['health_status'] = 'HEALTHY'": at_once,
            "field['health_status'] = 'DEGRADED'": at_once,
            "field['health_status'] = 'UNSPECIFIED'": at_once,
            f"field['name'] = '{one.name}'": 2,
            f"field['name'] = '{one.name}' AND field['kind'] = '{one.kind}'": 4,
            f"{namespace} AND field['name'] = '{one.name}'": 4,
            f"{namespace} AND field['kind'] = 'DaemonSet'": several,
            f"{namespace} AND field['health_status'] = 'ERROR'": several,
            "field['kind'] = 'DaemonSet' AND field['health_status'] = 'UNSPECIFIED'": several,
            "field['kind'] = 'Deployment' AND field['health_status'] = 'ERROR'": several,
            "labels['team'] = 'data' AND field['health_status'] = 'ERROR'": several,
            # Without an index of its own, the filter searches the cluster.
            f"labels['app.kubernetes.io/instance'] = '{instance}'": all_of_it,
            "labels['nobody'] EXISTS": all_of_it,
            "field['name'] CONTAINS 'nobody'": all_of_it,
            "field['managed'] = 'true'": all_of_it,
            "field['cpu_used_millicores'] > 99999999": all_of_it,
            "labels['team'] = 'data' AND field['memory_used_bytes'] < 0": all_of_it,
        }.items():
            assert rows_read(reader, cluster, text) <= rows, text


def test_late_page_reads_no_more_rows_than_the_first(reader: ApiClient) -> None:
    cluster = Cluster.objects.order_by("id")[5]
    path = f"/api/v1/clusters/{cluster.pk}/workloads"
    for text in ("", "field['health_status'] = 'HEALTHY'", "field['kind'] = 'Deployment'"):
        token = ""
        for _ in range(5):
            answer = reader.get(path, {"filter": text, "page_size": 10, "page_token": token})
            token = answer.json()["next_page_token"]
        assert rows_read(reader, cluster, text, page_token=token) <= 11


def test_other_orders_are_read_in_an_index(reader: ApiClient) -> None:
    cluster = Cluster.objects.order_by("id")[7]
    path = f"/api/v1/clusters/{cluster.pk}/workloads"
    for name in ("namespace", "name", "kind", "health_status"):
        for order in (name, f"{name} desc"):
            token = ""
            for _ in range(3):
                assert rows_read(reader, cluster, "", order_by=order, page_token=token) <= 11
                query = {"order_by": order, "page_size": 10, "page_token": token}
                token = reader.get(path, query).json()["next_page_token"]
