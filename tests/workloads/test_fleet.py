"""``GET /api/v1/workloads`` and ``:summary``: the workloads of all clusters that a token sees."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra_service.lib.database.bounded_pages import segments as segments_module
from infra_service.lib.database.bounded_pages.segments import read_segments
from infra_service.lib.database.keyset import position_of
from tests.conftest import LONG_AGO, ApiClient, ClientWith, error_reason
from tests.workloads.conftest import NewWorkload
from workloads.models import HEALTH_STATUSES, KINDS, Cluster, Workload
from workloads.worst_first import PLACE, by_health

LIST, SUMMARY = "/api/v1/workloads", "/api/v1/workloads:summary"
WORST_FIRST = ("ERROR", "DEGRADED", "WORKLOAD_HEALTH_STATUS_UNSPECIFIED", "HEALTHY")


def place(item: Any) -> tuple[Any, ...]:
    health = WORST_FIRST.index(item["health_status"])
    return health, item["cluster_id"], item["namespace"], item["name"], item["kind"]


def names(client: ApiClient, text: str = "", **query: Any) -> list[str]:
    return [one["name"] for one in client.items(LIST, "workloads", filter=text, **query)]


def test_item_equals_the_item_of_its_cluster(
    reader: ApiClient, workload: NewWorkload, cluster: Cluster, other: Cluster
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(
        last_report_at=LONG_AGO, last_received_at=LONG_AGO, last_snapshot_at=LONG_AGO
    )
    workload(labels={"ä": "ü"}, cpu_used_millicores=None)
    workload(cluster=other, health_status="DEGRADED")

    found = reader.get(LIST).json()

    shown = [
        reader.get(f"/api/v1/clusters/{one.pk}/workloads").json()["workloads"][0]
        for one in (other, cluster)
    ]
    assert found == {"workloads": shown, "next_page_token": ""}
    assert [one["cluster_name"] for one in shown] == [other.name, cluster.name]


@pytest.mark.slow
@pytest.mark.both
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("field['cluster'] = 'prod-eu-1'", "ab"),
        ("field['cluster'] != 'prod-eu-1'", "c"),
        ("field['cluster'] IN ('prod-us-1', 'nowhere')", "c"),
        ("field['cluster'] IN ('prod-us-1', 'prod-eu-1')", "abc"),
        ("field['cluster'] NOT IN ('prod-us-1', 'prod-eu-1')", ""),
        ("field['cluster'] = 'nowhere'", ""),
        ("field['cluster'] != 'nowhere'", "abc"),
        ("field['cluster'] = '{cluster}'", "ab"),
        ("field['cluster_name'] = 'prod-eu-1'", "ab"),
        ("field['cluster_name'] = '{cluster}'", ""),
        ("field['cluster_name'] ~= 'EU'", "ab"),
        ("field['cluster_name'] CONTAINS 'prod'", "abc"),
        ("NOT field['cluster_name'] ENDS_WITH 'eu-1'", "c"),
        ("field['cluster_id'] = '{cluster}'", "ab"),
        ("field['cluster_id'] = '{cluster}' AND field['cluster'] = 'prod-us-1'", ""),
        ("field['cluster'] = 'prod-us-1' OR field['name'] = 'b'", "bc"),
        ("field['health_status'] = 'ERROR'", "a"),
        ("field['health_status'] IN ('ERROR', 'HEALTHY')", "abc"),
        ("field['health_status'] = 'ERROR' AND field['health_status'] = 'HEALTHY'", ""),
        ("field['health_status'] = 'HEALTHY' AND field['health_status'] = 'HEALTHY'", "bc"),
        ("field['health_status'] NOT IN ('ERROR') AND field['cluster'] = 'prod-eu-1'", "b"),
        ("field['namespace'] = 'shop'", "ab"),
        ("field['namespace'] STARTS_WITH 'ba'", "c"),
        ("labels['app'] = 'web' AND field['kind'] = 'DaemonSet'", "c"),
    ],
)
def test_filters_select_matching_items(
    reader: ApiClient,
    workload: NewWorkload,
    cluster: Cluster,
    *,
    other: Cluster,
    text: str,
    wanted: str,
) -> None:
    workload(name="a", health_status="ERROR")
    workload(name="b")
    workload(name="c", cluster=other, namespace="bank", kind="DaemonSet")
    text = text.format(cluster=cluster.pk)

    assert sorted(names(reader, text)) == list(wanted)
    summary = reader.get(SUMMARY, {"filter": text}).json()["summary"]
    assert summary["total"]["workloads"] == len(wanted)


@pytest.mark.parametrize("path", [LIST, SUMMARY])
def test_scope_is_required(anonymous: Client, client_with: ClientWith, path: str) -> None:
    assert error_reason(anonymous.get(path)) == "CREDENTIALS_MISSING"
    assert error_reason(client_with("state:read").get(path)) == "SCOPE_INSUFFICIENT"
    assert error_reason(client_with("cluster:report").get(path)) == "SCOPE_INSUFFICIENT"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"filter": "field['clusters'] = 'x'"}, "INVALID_FILTER"),
        ({"filter": "field['cluster_id'] = 'prod-eu-1'"}, "INVALID_FILTER"),
        ({"filter": "field['cluster'] CONTAINS 'eu'"}, "INVALID_FILTER"),
        ({"page_size": "101"}, "INVALID_FIELDS"),
        ({"order_by": "name"}, "INVALID_FIELDS"),
        ({"page_token": "x"}, "INVALID_PAGE_TOKEN"),
    ],
)
def test_invalid_queries_are_rejected(
    reader: ApiClient, query: dict[str, str], reason: str
) -> None:
    answer = reader.get(LIST, query)

    assert (answer.status_code, error_reason(answer)) == (400, reason)


def test_page_token_of_a_cluster_list_is_rejected(
    reader: ApiClient, workload: NewWorkload, cluster: Cluster
) -> None:
    for name in "ab":
        workload(name=name)
    query = {"page_size": 1}
    own = reader.get(f"/api/v1/clusters/{cluster.pk}/workloads", query).json()["next_page_token"]

    assert error_reason(reader.get(LIST, {"page_token": own})) == "INVALID_PAGE_TOKEN"
    assert names(reader, page_size=1) == ["a", "b"]


def test_statements_do_not_grow_with_the_rows(
    reader: ApiClient, workload: NewWorkload, other: Cluster
) -> None:
    def statements(text: str, path: str = LIST) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert reader.get(path, {"filter": text}).status_code == 200
        return len(captured)

    reader.get(LIST)
    for number in range(12):
        workload(name=str(number), health_status=WORST_FIRST[number % 4])
        if number not in (3, 11):
            continue
        # The token, and the page: the other healths are ruled out without a statement.
        assert statements("field['health_status'] = 'DEGRADED'") == 2
        in_error = "field['cluster'] = 'prod-eu-1' AND field['health_status'] = 'ERROR'"
        assert statements(in_error) == 3  # and the id of the cluster
        assert statements("field['cluster_name'] CONTAINS 'prod-eu'") == statements(
            "field['cluster'] = 'prod-eu-1'"
        )
        assert statements("field['cluster'] = 'nowhere'") == 2
        # The cluster's rows are counted, and looked through for all healths at once.
        assert statements("field['cluster'] = 'prod-eu-1' AND labels['x'] EXISTS") == 4
        assert statements("field['cluster'] = 'prod-eu-1'", SUMMARY) == 4


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("counts", [(3, 3, 3, 2), (2, 1, 0, 0), (0, 0, 1, 1)])
@pytest.mark.parametrize("is_few", [True, False])
def test_a_list_of_segments_is_read_both_ways(
    workload: NewWorkload,
    cluster: Cluster,
    other: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_few: bool,
    counts: tuple[int, ...],
    size: int,
) -> None:
    """An operator turns the pages. If the rows are few, all segments are read at once."""
    if not is_few:
        monkeypatch.setattr(segments_module, "few_rows", lambda *_: None)
    names = [f"w{rank}{n}" for rank, count in enumerate(counts) for n in range(count)]
    for name in names:
        workload(name=name, health_status=WORST_FIRST[int(name[1])])
        workload(name=name, cluster=other)
    rows = Workload.objects.filter(cluster=cluster, replicas_desired__gte=0)
    segments = by_health(PLACE)

    def walk(position: Any, *, backwards: bool) -> list[list[str]]:
        pages = []
        while True:
            page = read_segments(
                rows, segments=segments, position=position, size=size, backwards=backwards
            )
            pages.append([row.name for row in page.rows])
            for first in page.rows[:1]:
                assert page.start == [int(first.name[1]), *position_of(first, PLACE)]
            position = page.end
            if position is None:
                return pages

    def pages(wanted: list[str]) -> list[list[str]]:
        return [wanted[at : at + size] for at in range(0, len(wanted), size)] or [[]]

    assert walk(None, backwards=False) == pages(names)
    last = Workload.objects.get(cluster=cluster, name=names[-1])
    end = [int(last.name[1]), *position_of(last, PLACE)]
    assert walk(end, backwards=True) == pages(names[-2::-1])
    assert walk([2], backwards=False) == pages([name for name in names if name[1] in "23"])


@pytest.mark.parametrize(
    "position", [[4], [-1], ["0"], [0, "in-a-cluster"], [0, str(uuid.UUID(int=1))]]
)
def test_a_position_outside_the_segments_is_rejected(position: list[Any], db: None) -> None:
    rows, segments = Workload.objects.all(), by_health(PLACE)
    assert len(segments) == 4

    with pytest.raises(ValidationError):
        read_segments(rows, segments=segments, position=position, size=2)


def test_the_summary_is_by_cluster(
    reader: ApiClient, workload: NewWorkload, cluster: Cluster, other: Cluster
) -> None:
    workload(name="a")
    workload(name="b", namespace="bank")
    workload(cluster=other, health_status="ERROR", cpu_used_millicores=None)

    summary = reader.get(SUMMARY).json()["summary"]

    summaries = [
        (group["cluster_id"], group["kind"], group["health_status"], group["workloads"])
        for group in summary["groups"]
    ]
    assert summaries == [
        (str(cluster.pk), "Deployment", "HEALTHY", 2),
        (str(other.pk), "Deployment", "ERROR", 1),
    ]
    assert summary["groups"][1]["cpu_used_millicores"] is None
    assert summary["total"]["cpu_requests_millicores"] == 600
    assert summary["total"]["by_health_status"] == {
        "WORKLOAD_HEALTH_STATUS_UNSPECIFIED": 0, "HEALTHY": 2, "DEGRADED": 0, "ERROR": 1
    }  # fmt: skip


_WORDS = st.sampled_from(["a", "a-b", "b"])
_ROWS = st.dictionaries(
    st.tuples(st.integers(0, 2), _WORDS, _WORDS, st.sampled_from([kind for kind, _ in KINDS])),
    st.sampled_from([status for status, _ in HEALTH_STATUSES]),
    max_size=20,
)
# To one of the three clusters (by number), a deleted cluster, no object, or an object without
# clusters.
_BINDINGS = st.one_of(
    st.integers(0, 2), st.sampled_from([None, "gone", "component_ids", "environment_ids"])
)
#: A filter, and its condition on a cluster's number, a place, and a health.
_FILTERS = {
    "": lambda *_: True,
    "field['cluster'] = 'c1'": lambda number, *_: number == 1,
    "field['cluster'] != 'c1'": lambda number, *_: number != 1,
    "field['cluster'] IN ('c0', 'c2')": lambda number, *_: number in (0, 2),
    "field['health_status'] = 'ERROR'": lambda *row: row[-1] == "ERROR",
    "field['health_status'] IN ('ERROR', 'HEALTHY') AND field['kind'] = 'DaemonSet'": (
        lambda *row: row[-1] in ("ERROR", "HEALTHY") and row[3] == "DaemonSet"
    ),
    "field['name'] = 'a' AND field['cluster'] = 'c0'": lambda *row: (row[0], row[2]) == (0, "a"),
    "field['namespace'] STARTS_WITH 'a'": lambda *row: row[1].startswith("a"),
    "labels['app'] = 'web'": lambda *_: True,
    "labels['app'] = 'web' AND field['cluster'] = 'c0'": lambda number, *_: number == 0,
    "labels['app'] = 'web' AND field['cluster'] = 'c0' AND NOT field['health_status'] = 'ERROR'": (
        lambda *row: row[0] == 0 and row[-1] != "ERROR"
    ),
}


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=_ROWS,
    bound=_BINDINGS,
    text=st.sampled_from(sorted(_FILTERS)),
    size=st.integers(1, 9),
)
def test_lists_and_sums_are_of_the_clusters_that_the_token_sees(
    client_with: ClientWith,
    workload: NewWorkload,
    *,
    rows: dict[tuple[int, str, str, str], str],
    bound: int | str | None,
    text: str,
    size: int,
) -> None:
    Workload.objects.all().delete()
    clusters = [Cluster.objects.get_or_create(name=f"c{number}")[0] for number in range(3)]
    for (number, namespace, name, kind), health in rows.items():
        workload(
            cluster=clusters[number], namespace=namespace, name=name, kind=kind,
            health_status=health,
        )  # fmt: skip
    binding: dict[str, Any] = {}
    if isinstance(bound, int):
        binding = {"bound_cluster_id": clusters[bound].pk}
    elif bound == "gone":
        binding = {"bound_cluster_id": uuid.uuid4()}
    elif bound is not None:
        binding = {f"bound_{bound}": [str(uuid.uuid4())]}
    client = client_with("cluster:read", **binding)

    items: list[Any] = client.items(LIST, "workloads", page_size=size, filter=text)

    seen = [row for row in rows.items() if bound is None or row[0][0] == bound]
    wanted = sorted(
        (WORST_FIRST.index(health), str(clusters[number].pk), namespace, name, kind)
        for (number, namespace, name, kind), health in seen
        if _FILTERS[text](number, namespace, name, kind, health)
    )
    assert [place(item) for item in items] == wanted
    summary = client.get(SUMMARY, {"filter": text}).json()["summary"]
    assert summary["total"]["workloads"] == len(wanted)
    assert {g["cluster_id"] for g in summary["groups"]} == {cluster for _, cluster, *_ in wanted}
