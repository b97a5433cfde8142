"""GET /api/v1/clusters/{cluster_id}/workloads."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import LONG_AGO, ApiClient, ClientWith, error_reason
from tests.workloads.conftest import CONTAINER, NewWorkload
from workloads.models import HEALTH_STATUSES, KINDS, Cluster, Workload

LATER = LONG_AGO + dt.timedelta(hours=1)


@pytest.fixture
def path(cluster: Cluster) -> str:
    return f"/api/v1/clusters/{cluster.pk}/workloads"


def test_empty_list(reader: ApiClient, path: str) -> None:
    answer = reader.get(path)

    assert (answer.status_code, answer.content) == (200, b'{"workloads":[],"next_page_token":""}')


def test_workload_has_all_fields(
    reader: ApiClient, path: str, cluster: Cluster, workload: NewWorkload
) -> None:
    stored = workload(
        labels={"app.kubernetes.io/name": "web", "quote\"'%": "\u2028 ü"},
        status_reason="RolloutInProgress",
        cpu_used_millicores=None,
    )

    answer = reader.get(path).json()
    assert answer["next_page_token"] == ""
    (shown,) = answer["workloads"]
    assert shown == {
        "id": str(stored.pk),
        "cluster_id": str(cluster.pk),
        "cluster_name": cluster.name,
        "namespace": "shop",
        "name": "web",
        "kind": "Deployment",
        "labels": {"app.kubernetes.io/name": "web", "quote\"'%": "\u2028 ü"},
        "health_status": "HEALTHY",
        "status_reason": "RolloutInProgress",
        "replicas_desired": 2,
        "replicas_ready": 2,
        "replicas_available": 2,
        "cpu_requests_millicores": 200,
        "cpu_limits_millicores": 400,
        "cpu_used_millicores": None,
        "memory_requests_bytes": 268435456,
        "memory_limits_bytes": 536870912,
        "memory_used_bytes": 190000000,
        "ephemeral_storage_requests_bytes": 0,
        "containers": [CONTAINER],
        "last_updated_at": "2020-01-01T00:00:00.000000Z",
    }
    # The order of the specification's tables.
    assert [name for name in shown if name != "cluster_name"][:8] == [
        "id", "cluster_id", "namespace", "name", "kind", "labels", "health_status", "status_reason",
    ]  # fmt: skip
    assert list(shown)[-2:] == ["containers", "last_updated_at"]
    assert list(shown["containers"][0]) == list(CONTAINER)


@pytest.mark.both
@pytest.mark.parametrize(
    ("observed", "snapshot", "shown"),
    [
        (LONG_AGO, None, "2020-01-01T00:00:00.000000Z"),
        (LONG_AGO, LATER, "2020-01-01T01:00:00.000000Z"),
        (LATER, LONG_AGO, "2020-01-01T01:00:00.000000Z"),
    ],
)
def test_last_updated_at_is_derived(
    reader: ApiClient,
    path: str,
    workload: NewWorkload,
    *,
    observed: dt.datetime,
    snapshot: dt.datetime | None,
    shown: str,
) -> None:
    workload(observed_at=observed)
    if snapshot:
        Cluster.objects.update(
            last_report_at=snapshot, last_received_at=snapshot, last_snapshot_at=snapshot
        )

    (found,) = reader.get(path).json()["workloads"]
    assert found["last_updated_at"] == shown


def names(reader: ApiClient, path: str, text: str, page_size: int = 100) -> list[str]:
    items = reader.items(path, "workloads", filter=text, page_size=page_size)
    return [item["name"] for item in items]


def test_filters_select_workloads(reader: ApiClient, path: str, workload: NewWorkload) -> None:
    workload(name="a", namespace="one", labels={"team": "red", "0": "x"})
    workload(name="b", namespace="two", kind="DaemonSet", health_status="DEGRADED")
    workload(
        name="c",
        namespace="two",
        kind="StatefulSet",
        health_status="ERROR",
        status_reason="CrashLoopBackOff",
        memory_used_bytes=None,
        replicas_ready=0,
        cpu_used_millicores=5000,
    )
    workload(name="d", namespace="z", health_status="WORKLOAD_HEALTH_STATUS_UNSPECIFIED")
    # In another cluster; never shown.
    workload(name="e", cluster=Cluster.objects.create(name="other"))

    for text, expected in {
        "field['namespace'] = 'two'": "bc",
        "field['kind'] = 'DaemonSet'": "b",
        "field['kind'] IN ('DaemonSet', 'StatefulSet')": "bc",
        "field['name'] = 'c'": "c",
        "field['name'] = 'e'": "",
        "field['name'] IN ('a', 'd', 'e')": "ad",
        "field['health_status'] = 'DEGRADED'": "b",
        "field['health_status'] = 'WORKLOAD_HEALTH_STATUS_DEGRADED'": "b",
        "field['health_status'] = 'UNSPECIFIED'": "d",
        "field['health_status'] != 'HEALTHY'": "bcd",
        "labels['team'] = 'red'": "a",
        "field['labels.team'] = 'red'": "a",
        "labels['0'] = 'x'": "a",
        "labels['team'] != 'red'": "bcd",
        "labels['team'] EXISTS": "a",
        "labels['app'] CONTAINS 'we'": "bcd",
        "field['status_reason'] STARTS_WITH 'Crash'": "c",
        "field['replicas_ready'] < 2": "c",
        "field['cpu_used_millicores'] >= 5000": "c",
        "field['memory_used_bytes'] > 0": "abd",
        "field['namespace'] = 'two' AND field['kind'] = 'DaemonSet'": "b",
        "field['kind'] = 'Deployment' AND field['health_status'] = 'HEALTHY'": "a",
        "field['kind'] = 'DaemonSet' AND field['kind'] = 'Deployment'": "",
        "NOT (field['namespace'] = 'two' OR labels['team'] = 'red')": "d",
    }.items():
        for size in (1, 100):
            assert "".join(names(reader, path, text, size)) == expected, text


def test_versions_are_ordered(reader: ApiClient, path: str, workload: NewWorkload) -> None:
    """By the bytes of namespace, name and kind, whatever the server's language."""
    keys = sorted(
        (namespace, name, kind)
        for namespace in ("a", "a-b", "aa", "ab")
        for name in ("x", "x-1", "x.1", "x1")
        for kind in ("DaemonSet", "Deployment")
    )
    for namespace, name, kind in reversed(keys):
        workload(namespace=namespace, name=name, kind=kind)

    for size in (1, 7, 100):
        items = reader.items(path, "workloads", page_size=size)
        assert [(i["namespace"], i["name"], i["kind"]) for i in items] == keys


@pytest.mark.both
@pytest.mark.parametrize("name", ["namespace", "name", "kind", "health_status"])
def test_other_orders(reader: ApiClient, path: str, workload: NewWorkload, name: str) -> None:
    for at, health in enumerate(("HEALTHY", "ERROR", "DEGRADED", "ERROR")):
        kind = "Deployment" if at % 2 else "DaemonSet"
        workload(namespace="ba"[at // 2], name="xyxz"[at], kind=kind, health_status=health)

    def listed(order: str, size: int = 2) -> list[Any]:
        found = reader.items(path, "workloads", page_size=size, order_by=order)
        return [(i[name], i["namespace"], i["name"], i["kind"]) for i in found]

    assert len(listed(name)) == 4
    assert listed(name) == sorted(listed(name))
    assert listed(f"{name} desc", 3) == listed(name)[::-1]


def test_unknown_clusters_are_not_found(reader: ApiClient) -> None:
    for cluster_id in (uuid.uuid4(), "x", "%00"):
        answer = reader.get(f"/api/v1/clusters/{cluster_id}/workloads")
        assert (answer.status_code, error_reason(answer)) == (404, "CLUSTER_NOT_FOUND")


def test_scope_is_required(anonymous: Client, client_with: ClientWith, path: str) -> None:
    assert error_reason(anonymous.get(path)) == "CREDENTIALS_MISSING"
    assert error_reason(client_with("state:read").get(path)) == "SCOPE_INSUFFICIENT"


def test_bound_tokens_see_only_their_part(
    client_with: ClientWith, path: str, cluster: Cluster
) -> None:
    assert client_with("cluster:read", bound_cluster_id=cluster.pk).get(path).status_code == 200
    for binding in (
        {"bound_cluster_id": uuid.uuid4()},
        {"bound_component_ids": [str(uuid.uuid4())]},
        {"bound_environment_ids": [str(uuid.uuid4())]},
    ):
        answer = client_with("cluster:read", **binding).get(path)
        assert (answer.status_code, error_reason(answer)) == (404, "CLUSTER_NOT_FOUND")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"filter": "field['kind'] = 'deployment'"}, "INVALID_FILTER"),
        ({"filter": "labels['a'] = 'b\0'"}, "INVALID_FILTER"),
        ({"page_size": "x"}, "INVALID_FIELDS"),
        ({"namespace": "x"}, "INVALID_FIELDS"),
    ],
)
def test_invalid_queries_are_rejected(
    reader: ApiClient, path: str, query: dict[str, str], reason: str
) -> None:
    answer = reader.get(path, query)

    assert (answer.status_code, error_reason(answer)) == (400, reason)


def test_a_token_is_of_its_cluster(reader: ApiClient, path: str, workload: NewWorkload) -> None:
    other = Cluster.objects.create(name="other")
    for name in "ab":
        workload(name=name)
        workload(name=name, cluster=other)
    token = reader.get(path, {"page_size": 1}).json()["next_page_token"]

    answer = reader.get(f"/api/v1/clusters/{other.pk}/workloads", {"page_token": token})
    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_PAGE_TOKEN")


def test_queries_do_not_grow_with_the_rows(
    reader: ApiClient, path: str, workload: NewWorkload
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert reader.get(path, {"filter": "labels['app'] = 'web'"}).status_code == 200
        return len(captured)

    reader.get(path)
    # The token, the cluster, the page, and, because it is not full, whether the list ends there.
    assert queries() == 4
    for number in range(10):
        workload(name=str(number))
    assert queries() == 4


_NAMES = st.sampled_from(["a", "a-b", "ab", "b", "b.a"])
_KEYS = st.tuples(_NAMES, _NAMES, st.sampled_from([kind for kind, _ in KINDS]))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.dictionaries(_KEYS, st.sampled_from([s for s, _ in HEALTH_STATUSES]), max_size=25),
    size=st.integers(1, 9),
    health=st.sampled_from([None, "HEALTHY", "ERROR"]),
)
def test_pages_are_the_list(
    reader: ApiClient,
    path: str,
    workload: NewWorkload,
    *,
    rows: dict[tuple[str, str, str], str],
    size: int,
    health: str | None,
) -> None:
    Workload.objects.all().delete()
    for (namespace, name, kind), status in rows.items():
        workload(namespace=namespace, name=name, kind=kind, health_status=status)
    text = f"field['health_status'] = '{health}'" if health else ""

    items: list[Any] = reader.items(path, "workloads", page_size=size, filter=text)
    wanted = sorted(key for key, status in rows.items() if health in (None, status))
    assert [(i["namespace"], i["name"], i["kind"]) for i in items] == wanted


@pytest.mark.both
@pytest.mark.parametrize("name", ["replicas_desired", "replicas_ready", "replicas_available"])
@pytest.mark.parametrize(
    ("predicate", "names"),
    [
        ("= 4294967296", ""),
        ("!= 4294967297", "r0 r1 r2"),
        ("IN (4294967296)", ""),
        ("IN (4294967296, 2)", "r2"),
        ("NOT IN (4294967296)", "r0 r1 r2"),
        ("BETWEEN 0 AND 2147483648", "r0 r1 r2"),
        ("BETWEEN 1 AND 4294967296", "r1 r2"),
        ("BETWEEN 4294967296 AND 4294967297", ""),
        ("BETWEEN -4294967296 AND -2147483649", ""),
        ("> 4294967296", ""),
        ("> -4294967296", "r0 r1 r2"),
        ("<= 4294967296", "r0 r1 r2"),
        ("< -4294967296", ""),
    ],
)
def test_integers_beyond_32_bits_are_compared_by_their_value(
    reader: ApiClient, workload: NewWorkload, name: str, predicate: str, names: str
) -> None:
    path = f"/api/v1/clusters/{workload(name='r0', **{name: 0}).cluster_id}/workloads"
    for number in (1, 2):
        workload(name=f"r{number}", uid=str(uuid.uuid4()), **{name: number})

    for prefix, selects in (("", True), ("NOT ", False)):
        text = f"{prefix}field['{name}'] {predicate}"
        found = reader.get(path, {"filter": text}).json()["workloads"]
        wanted = {row for row in ("r0", "r1", "r2") if (row in names.split()) is selects}
        assert {row["name"] for row in found} == wanted, text


@pytest.mark.both
@pytest.mark.parametrize("name", ["cpu_used_millicores", "memory_used_bytes"])
@pytest.mark.parametrize(
    ("predicate", "found"), [("IS NULL", "unmeasured"), ("IS NOT NULL", "measured")]
)
def test_workloads_without_usage_can_be_listed(
    reader: ApiClient, workload: NewWorkload, name: str, predicate: str, found: str
) -> None:
    path = f"/api/v1/clusters/{workload(name='measured').cluster_id}/workloads"
    workload(name="unmeasured", uid=str(uuid.uuid4()), **{name: None})

    answer = reader.get(path, {"filter": f"field['{name}'] {predicate}"}).json()
    assert [row["name"] for row in answer["workloads"]] == [found]


def test_a_field_that_always_has_a_value_cannot_be_null(reader: ApiClient, path: str) -> None:
    answer = reader.get(path, {"filter": "field['replicas_ready'] IS NULL"})

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FILTER")
