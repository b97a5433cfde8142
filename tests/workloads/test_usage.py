"""Usage changes all the time: the frequency of writes of usage alone, and their cost."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from tests.workloads.records import apply, place, record, report, stored
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.records import WorkloadRecord
from workloads.models import Cluster, Workload
from workloads.reporting import applying
from workloads.reporting.reports import Applied

USAGE = ("cpu_used_millicores", "memory_used_bytes")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "_FEW_MEASURED", 3)


def using(millicores: int, numbers: Iterable[int] = range(4)) -> list[WorkloadRecord]:
    return [record(f"w{n}", cpu_used_millicores=millicores) for n in numbers]


def used(cluster: Cluster) -> list[int | None]:
    rows = Workload.objects.filter(cluster=cluster).order_by("name")
    return list(rows.values_list("cpu_used_millicores", flat=True))


def pass_time(cluster: Cluster, minutes: float) -> None:
    ago = dt.timedelta(minutes=minutes)
    Cluster.objects.filter(pk=cluster.pk).update(usage_stored_at=F("usage_stored_at") - ago)


def test_the_usage_of_few_is_written_with_each_report(cluster: Cluster) -> None:
    apply(cluster, report(0, *using(1)))
    for seconds in (1, 2):
        few = using(10 + seconds, range(3))
        applied = apply(cluster, report(seconds, *few, *using(1, [3])))
        assert applied == Applied(created=0, updated=3, deleted=0, unchanged=1)
    assert used(cluster) == [12, 12, 12, 1]


@pytest.mark.parametrize("complete", [True, False])
def test_the_usage_of_many_is_written_every_five_minutes(cluster: Cluster, complete: bool) -> None:
    apply(cluster, report(0, *using(1)))
    assert apply(cluster, report(60, *using(2), complete=complete)).updated == 4

    pass_time(cluster, 4)
    applied = apply(cluster, report(120, *using(3), complete=complete))
    assert (applied, used(cluster)) == (Applied(0, 0, 0, 4), [2] * 4)

    pass_time(cluster, 1)
    assert apply(cluster, report(180, *using(4), complete=complete)).updated == 4
    assert used(cluster) == [4] * 4


def test_the_usage_of_many_is_written_after_the_clock_was_set_back(cluster: Cluster) -> None:
    apply(cluster, report(0, *using(1)))
    apply(cluster, report(60, *using(2)))
    pass_time(cluster, -60)

    assert apply(cluster, report(120, *using(3))).updated == 4
    assert apply(cluster, report(180, *using(4))).updated == 0
    assert used(cluster) == [3] * 4


def test_other_changes_include_the_usage(cluster: Cluster) -> None:
    apply(cluster, report(0, *using(1, range(5))))
    apply(cluster, report(60, *using(2, range(5))))

    worse = record("w0", cpu_used_millicores=3, health_status=HealthStatus.ERROR)
    new = record("w9", cpu_used_millicores=3)
    applied = apply(cluster, report(120, worse, new, *using(3, range(1, 5))))

    assert applied == Applied(created=1, updated=1, deleted=0, unchanged=4)
    assert used(cluster) == [3, 2, 2, 2, 2, 3]
    cluster.refresh_from_db()
    assert cluster.workloads_error == 1


def test_usage_is_updated_with_a_single_narrow_statement(cluster: Cluster) -> None:
    apply(cluster, report(0, *using(1)))

    with CaptureQueriesContext(connection) as captured:
        apply(cluster, report(60, *using(2)))

    (update,) = [q["sql"] for q in captured if 'UPDATE "workloads_workload"' in q["sql"]]
    columns = {field.column for field in Workload._meta.concrete_fields}
    written = update.partition(" SET ")[2].partition(" FROM " if " FROM " in update else " WHERE ")
    assert {name for name in columns if f'"{name}" =' in written[0]} == {*USAGE, "observed_at"}
    assert stored(cluster)[place("w0")].labels == {"app": "w0"}


def test_measured_columns_are_not_indexed(db: None) -> None:
    """Otherwise each measurement would write an entry into each index of the table."""
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, Workload._meta.db_table)
    indexed = {
        column for found in constraints.values() if found["index"] or found["unique"]
        or found["primary_key"] for column in found["columns"]
    }  # fmt: skip
    assert not indexed & {*USAGE, "observed_at"}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="pages with room are PostgreSQL's")
def test_pages_have_room_for_updates(db: None) -> None:
    with connection.cursor() as cursor:
        table = Workload._meta.db_table
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = %s", [table])
        assert cursor.fetchone() == (["fillfactor=50"],)
