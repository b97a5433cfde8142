"""A bound on the rows that PostgreSQL reads for a page of the workloads of all clusters."""

from collections import Counter

import pytest
from django.db import connection

from infra_service.lib.database.bounded_pages.reading import MOST_ROWS
from tests.conftest import ApiClient
from tests.support.plans import analyze, plans_of
from tests.workloads.conftest import IN_A_CLUSTER
from workloads.models import Cluster, Workload
from workloads.models.images import ClusterImage, WorkloadImage
from workloads.reporting.image_rows import rebuild

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner"),
    pytest.mark.usefixtures("many_workloads"),
]

LIST = "/api/v1/workloads"
AT_ONCE = 11
#: The number of rows that a page examines with a filter that is slow to test.
LEAST_ROWS = 1_000
#: The estimated bytes of the columns that place a workload in a list; a whole row has 460.
WIDTH_OF_KEYS = 60


def rows_read(reader: ApiClient, text: str, path: str = LIST, **query: str) -> int:
    """Return how many rows the page read; fail on a sequential scan."""
    with plans_of("workloads_workload", analyze=True) as plans:
        answer = reader.get(path, {"filter": text, "page_size": "10", **query})
    assert answer.status_code == 200, answer.content
    assert not [plan.sql for plan in plans if plan.reads_a_table], text
    # Rejected rows, which are wide, are never sorted. PostgreSQL 18 sorts keys from an index.
    sorts = [node for p in plans for node in p.nodes() if node["Node Type"] == "Sort"]
    sorted_rows = [node["Actual Rows"] for node in sorts if node["Plan Width"] > WIDTH_OF_KEYS]
    assert max(sorted_rows, default=0) <= AT_ONCE, text
    return sum(plan.rows_by_table["workloads_workload"] for plan in plans)


def entries_read(reader: ApiClient, text: str, path: str, **query: str) -> int:
    """Return how many image rows the page read."""
    with plans_of("workloads_workload", analyze=True) as plans:
        reader.get(path, {"filter": text, "page_size": "10", **query})
    return sum(plan.rows_by_table["workloads_workloadimage"] for plan in plans)


def test_each_filter_is_served_by_an_index(reader: ApiClient) -> None:
    cluster = Cluster.objects.order_by("id")[7]
    rows_in_error = Workload.objects.filter(health_status="ERROR").values_list(
        "namespace", flat=True
    )
    # The planner expects four of these rows, for which sorting costs as much as reading in order:
    # it chooses by the dead rows that earlier tests left in the table.
    namespace, errors = next(
        (name, count)
        for name, count in sorted(Counter(rows_in_error).items())
        if AT_ONCE < count < 2 * AT_ONCE
    )
    one = Workload.objects.filter(cluster=cluster, namespace=namespace).order_by("name")[0]
    named, bank = f"field['name'] = '{one.name}'", f"field['namespace'] = '{one.namespace}'"
    own, healthy = f"field['cluster'] = '{cluster.name}'", "field['health_status'] = 'HEALTHY'"
    for text, rows in {
        "": AT_ONCE,
        healthy: AT_ONCE,
        "field['health_status'] = 'UNSPECIFIED'": AT_ONCE,
        # The cluster's rows of each health, until the page is full.
        own: AT_ONCE,
        f"{own} AND {healthy}": AT_ONCE,
        named: 1,
        f"{named} AND {healthy}": 1,
        bank: errors,
        f"{bank} AND {healthy}": AT_ONCE,
        # Looked for in the cluster, once to find and once to see whether that was all.
        f"{own} AND labels['nobody'] EXISTS": 2 * IN_A_CLUSTER,
        f"{own} AND labels['nobody'] EXISTS AND {healthy}": 2 * IN_A_CLUSTER,
        f"{own} AND {bank}": 3 * IN_A_CLUSTER,
        # Searched in pieces of half as many rows as for a comparison; in this order the first three
        # healths have few rows.
        "labels['nobody'] EXISTS": 4 * MOST_ROWS,
        f"labels['nobody'] EXISTS AND {healthy}": MOST_ROWS,
        # Each row is looked up among the resources of states.
        f"field['managed'] = 'true' AND {healthy}": 2 * LEAST_ROWS,
        f"field['cpu_used_millicores'] < 0 AND {healthy}": 2 * MOST_ROWS,
    }.items():
        assert rows_read(reader, text) <= rows, text


def test_late_page_reads_no_more_rows_than_the_first(reader: ApiClient) -> None:
    for text in ("", "field['health_status'] = 'HEALTHY'"):
        token = ""
        for _ in range(5):
            query = {"filter": text, "page_size": 10, "page_token": token}
            token = reader.get(LIST, query).json()["next_page_token"]
        assert rows_read(reader, text, page_token=token) <= AT_ONCE


def test_where_an_image_runs_is_read_in_the_order_of_the_list(reader: ApiClient) -> None:
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        rebuild(cluster_id)
    analyze(WorkloadImage, ClusterImage)
    cluster = Cluster.objects.order_by("id")[7]
    own, healthy = f"field['cluster'] = '{cluster.name}'", "field['health_status'] = 'HEALTHY'"
    everywhere = "field['image.repository'] = 'registry.example.com/proxy'"
    for text, rows in {
        everywhere: AT_ONCE,
        f"{everywhere} AND {healthy}": AT_ONCE,
        f"{everywhere} AND {own}": AT_ONCE,
        f"{everywhere} AND {own} AND {healthy}": AT_ONCE,
        "field['image.repository'] = 'nobody'": 0,
        "field['image.digest'] = 'sha256:nobody'": 0,
        f"{everywhere} AND {healthy} AND labels['nobody'] EXISTS": MOST_ROWS // 4,
    }.items():
        assert rows_read(reader, text) <= rows, text
    for path in (LIST, f"/api/v1/clusters/{cluster.pk}/workloads"):
        token = ""
        for _ in range(5):
            query = {"filter": everywhere, "page_size": 10, "page_token": token}
            token = reader.get(path, query).json()["next_page_token"]
        for text in (everywhere, f"{everywhere} AND {healthy}"):
            assert rows_read(reader, text, path) <= AT_ONCE
        assert rows_read(reader, everywhere, path, page_token=token) <= AT_ONCE
        assert entries_read(reader, everywhere, path, page_token=token) <= 4 * AT_ONCE


def test_images_are_read_in_an_index(reader: ApiClient) -> None:
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        rebuild(cluster_id)
    analyze(WorkloadImage, ClusterImage)
    for text in (
        "",
        "field['repository'] = 'registry.example.com/proxy'",
        "field['repository'] STARTS_WITH 'registry.example.com/'",
        "field['digest'] = ''",
        "field['tag'] = '3.3'",
    ):
        with plans_of("workloads_clusterimage", analyze=True) as plans:
            assert (
                reader.get("/api/v1/images", {"filter": text, "page_size": 10}).status_code == 200
            )
        assert not [plan.sql for plan in plans if "Seq Scan" in plan.types], text
