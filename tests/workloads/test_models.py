"""The constraints of clusters and workloads, each by its name."""

import datetime as dt
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from tests.conftest import LONG_AGO
from tests.workloads.conftest import CONTAINER, NewWorkload
from workloads.models import Cluster, Workload

LATER = LONG_AGO + dt.timedelta(seconds=1)


def refused(name: str) -> Any:
    """Expect a violation of this constraint; for a unique constraint, SQLite names its columns."""
    return pytest.raises(IntegrityError, match=name)


def test_the_name_of_a_cluster_is_its_own(cluster: Cluster) -> None:
    with refused("cluster_name_unique|workloads_cluster.name"), transaction.atomic():
        Cluster.objects.create(name=cluster.name)


@pytest.mark.both
@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("cluster_name_present", {"name": ""}),
        ("cluster_uid_present", {"uid": ""}),
        ("cluster_report_interval_in_range", {"report_interval_seconds": 0}),
        ("cluster_report_interval_in_range", {"report_interval_seconds": 86401}),
        ("cluster_report_whole_or_absent", {"last_report_at": LATER}),
        ("cluster_report_whole_or_absent", {"last_received_at": LATER}),
        (
            "cluster_snapshot_not_after_report",
            {"last_report_at": LONG_AGO, "last_received_at": LATER, "last_snapshot_at": LATER},
        ),
        ("cluster_counts_not_negative", {"workloads_unspecified": -1}),
        ("cluster_counts_not_negative", {"workloads_healthy": -1}),
        ("cluster_counts_not_negative", {"workloads_degraded": -1}),
        ("cluster_counts_not_negative", {"workloads_error": -1}),
    ],
)
def test_cluster_constraints_are_enforced(
    cluster: Cluster, constraint: str, fields: dict[str, Any]
) -> None:
    with refused(constraint), transaction.atomic():
        Cluster.objects.update(**fields)


def test_constraints_of_a_reporting_cluster_are_enforced(cluster: Cluster) -> None:
    Cluster.objects.update(
        last_report_at=LATER, last_received_at=LONG_AGO, last_snapshot_at=LATER, uid="a"
    )


@pytest.mark.parametrize("other", ["namespace", "name", "kind", "cluster"])
def test_a_workload_is_there_once(workload: NewWorkload, other: str) -> None:
    workload()
    unique = "workload_of_cluster|workloads_workload.cluster_id"
    with refused(unique), transaction.atomic():
        workload()
    different: dict[str, Any] = {
        "namespace": "bank",
        "name": "api",
        "kind": "DaemonSet",
        "cluster": Cluster.objects.create(name="other"),
    }
    workload(**{other: different[other]})


_FIGURES = [
    field.name
    for field in Workload._meta.fields
    if field.name.startswith(("replicas", "cpu", "memory"))
]


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("workload_names_present", {"namespace": ""}),
        ("workload_names_present", {"name": ""}),
        ("workload_kind_known", {"kind": "CronJob"}),
        ("workload_health_known", {"health_status": "FINE"}),
        *[("workload_figures_not_negative", {figure: -1}) for figure in _FIGURES],
        ("workload_labels_are_an_object", {"labels": ["app"]}),
        ("workload_containers_are_an_array", {"containers": {}}),
    ],
)
def test_workload_constraints_are_enforced(
    workload: NewWorkload, constraint: str, fields: dict[str, Any]
) -> None:
    with refused(constraint), transaction.atomic():
        workload(**fields)


def test_usage_may_be_unknown(workload: NewWorkload) -> None:
    workload(cpu_used_millicores=None, memory_used_bytes=None)


def test_containers_keep_the_order_of_their_fields(workload: NewWorkload) -> None:
    workload()

    (container,) = Workload.objects.get().containers
    assert list(container.items()) == list(CONTAINER.items())
    assert Workload.objects.values_list("containers", flat=True).get() == [container]


def test_containers_of_many_rows_are_changed_at_once(workload: NewWorkload) -> None:
    rows = [workload(), workload(name="api")]
    for row in rows:
        row.containers = [{"name": row.name, "image": ""}]
    Workload.objects.bulk_update(rows, ["containers"])

    for row in Workload.objects.all():
        assert [list(container.items()) for container in row.containers] == [
            [("name", row.name), ("image", "")]
        ]


def test_workloads_end_with_their_cluster(cluster: Cluster, workload: NewWorkload) -> None:
    workload()
    cluster.delete()

    assert not Workload.objects.exists()


def test_names_are_readable(cluster: Cluster, workload: NewWorkload) -> None:
    assert str(cluster) == "prod-eu-1"
    assert str(workload()) == "Deployment shop/web"
