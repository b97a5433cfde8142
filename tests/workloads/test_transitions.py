"""The transitions of the health of workloads, and the gaps between reports."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from infra_service.lib.database import batches
from tests.workloads.records import apply, at, place, record, report, statements, stored
from workloads import history
from workloads.history import remove_old_history
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster, ReportGap, Transition, Workload
from workloads.reporting import transitions

DOWN: dict[str, Any] = {"health_status": HealthStatus.ERROR, "status_reason": "CrashLoopBackOff"}


def transitions_of(workload_id: object) -> list[tuple[Any, ...]]:
    """Return the values of a workload's rows, times as seconds after the start."""
    rows = Transition.objects.filter(workload_id=workload_id).order_by("number").with_type()
    return [
        (row.type, row.since and seconds(row.since), seconds(row.at), row.from_health_status,
         row.to_health_status, row.status_reason)
        for row in rows
    ]  # fmt: skip


def seconds(moment: dt.datetime) -> float:
    return (moment - at(0)).total_seconds()


def test_from_its_first_appearance_to_its_end(cluster: Cluster) -> None:
    apply(cluster, report(0, record()))
    row = stored(cluster)[place()]
    apply(cluster, report(60, record(**DOWN)))
    apply(cluster, report(120, record(**DOWN, replicas_ready=0)))
    apply(cluster, report(180, record(**{**DOWN, "status_reason": "OOMKilled"})))
    assert stored(cluster)[place()].health_since == at(180)
    apply(cluster, report(240))

    assert transitions_of(row.pk) == [
        ("APPEARED", None, 0, None, "HEALTHY", ""),
        ("CHANGED", 0, 60, "HEALTHY", "ERROR", "CrashLoopBackOff"),
        ("CHANGED", 60, 180, "ERROR", "ERROR", "OOMKilled"),
        ("DISAPPEARED", 180, 240, "ERROR", None, ""),
    ]
    assert set(Transition.objects.values_list("cluster_id", flat=True)) == {cluster.pk}


def test_each_workload_has_its_own_numbers(cluster: Cluster) -> None:
    apply(cluster, report(0, record("api"), record("web"), record("old")))
    ids = {name: stored(cluster)[place(name)].pk for name in ("api", "web", "old")}
    Transition.objects.filter(workload_id=ids["old"]).delete()  # as of a release before them
    apply(cluster, report(60, record("api", **DOWN), record("web"), record("old", **DOWN)))
    apply(cluster, report(120, record("api"), record("web", **DOWN), record("old", **DOWN)))

    numbers = {
        name: [*Transition.objects.filter(workload_id=key).values_list("number", flat=True)]
        for name, key in ids.items()
    }
    assert {name: sorted(found) for name, found in numbers.items()} == {
        "api": [1, 2, 3],
        "web": [1, 2],
        "old": [1],
    }


def test_another_object_of_the_same_name(cluster: Cluster) -> None:
    apply(cluster, report(0, record()))
    before = stored(cluster)[place()]
    apply(cluster, report(60, record(uid="other", **DOWN)))
    after = stored(cluster)[place()]

    assert transitions_of(before.pk)[1:] == [("DISAPPEARED", 0, 60, "HEALTHY", None, "")]
    assert transitions_of(after.pk) == [("APPEARED", None, 60, None, "ERROR", "CrashLoopBackOff")]


def test_delta_is_applied(cluster: Cluster) -> None:
    apply(cluster, report(0, record("api"), record("web")))
    rows = stored(cluster)
    gone = frozenset({place("api")})
    apply(cluster, report(5, record("web", **DOWN), complete=False, deleted=gone))

    assert [row[0] for row in transitions_of(rows[place("api")].pk)] == ["APPEARED", "DISAPPEARED"]
    assert [row[0] for row in transitions_of(rows[place("web")].pk)] == ["APPEARED", "CHANGED"]


@pytest.mark.parametrize("change", [{}, {"replicas_ready": 1}, {"cpu_used_millicores": 7}])
def test_other_changes_record_no_transition(cluster: Cluster, change: dict[str, Any]) -> None:
    apply(cluster, report(0, record()))
    apply(cluster, report(60, record(**change)))

    assert Transition.objects.count() == 1
    assert stored(cluster)[place()].health_since == at(0)


def test_rows_of_the_previous_release_get_a_transition(cluster: Cluster) -> None:
    """It has no transitions, and does not know the columns."""
    apply(cluster, report(0, record()))
    row = stored(cluster)[place()]
    Transition.objects.all().delete()
    Workload.objects.update(health_since=at(30))
    apply(cluster, report(60, record(**DOWN)))

    assert transitions_of(row.pk) == [("CHANGED", 30, 60, "HEALTHY", "ERROR", "CrashLoopBackOff")]


def test_a_refused_report_leaves_no_trace(cluster: Cluster) -> None:
    apply(cluster, report(0, record()))
    with pytest.raises(Exception, match="is not newer"):
        apply(cluster, report(0, record(**DOWN)))

    assert Transition.objects.count() == 1


def test_number_of_statements_is_constant(cluster: Cluster) -> None:
    """No more statements when nothing changes; else as many for one workload as for many."""
    many = [f"w-{number}" for number in range(50)]
    apply(cluster, report(0, *map(record, many)))

    assert statements(cluster, report(60, *map(record, many))) == ["SELECT", "SELECT", "UPDATE"]
    # Since when they were as they were; then the claim, the workloads, the transitions, the
    # changes, the health beside their images, the counts.
    expected = [
        "SELECT", "SELECT", "SELECT", "UPDATE", "UPDATE", "INSERT", "INSERT", "UPDATE", "SELECT",
        "UPDATE",
    ]  # fmt: skip
    assert statements(cluster, report(70, *(record(n, **DOWN) for n in many))) == expected
    assert statements(cluster, report(80, record("w-0"), complete=False)) == expected


def test_the_newest_thousand_are_kept(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many workloads flap, and with each report."""
    monkeypatch.setattr(transitions, "MOST_TRANSITIONS", 3)
    names = [f"w-{number}" for number in range(20)]
    for number in range(9):
        health = DOWN if number % 2 else {}
        apply(cluster, report(number, *(record(name, **health) for name in names)))
        assert Transition.objects.count() <= 20 * 3

    for row in stored(cluster).values():
        assert [(since, at) for _, since, at, *_ in transitions_of(row.pk)] == [
            (5, 6),
            (6, 7),
            (7, 8),
        ]


@pytest.mark.slow
def test_flapping_of_thousands_of_workloads_is_recorded(cluster: Cluster) -> None:
    names = [f"w-{number}" for number in range(2_500)]
    apply(cluster, report(0, *map(record, names)))
    # As if each had turned as often as is kept.
    Transition.objects.update(number=history.MOST_TRANSITIONS)
    old = Transition.objects.filter(number=1)
    Transition.objects.bulk_create(
        Transition(
            workload_id=key, number=1, cluster_id=cluster.pk, at=at(-9), to_health_status="ERROR"
        )
        for key in Workload.objects.values_list("pk", flat=True)
    )
    assert old.count() == 2_500
    with CaptureQueriesContext(connection) as found:
        apply(cluster, report(60, *(record(name, **DOWN) for name in names)))

    assert not old.exists()
    assert Transition.objects.filter(number=history.MOST_TRANSITIONS + 1).count() == 2_500
    # SQLite inserts the rows one by one.
    if connection.vendor == "postgresql":
        assert len(found) < 20


def test_gap_is_recorded(cluster: Cluster) -> None:
    apply(cluster, report(0, record()))
    apply(cluster, report(180, record()))
    assert not ReportGap.objects.exists()

    apply(cluster, report(361, record()))
    apply(cluster, report(1000, record(**DOWN)))
    apply(cluster, report(1060, interval_seconds=600))
    apply(cluster, report(1060 + 1800, record()))
    apply(cluster, report(5000, record()))

    gaps = ReportGap.objects.filter(cluster_id=cluster.pk).order_by("ended_at")
    assert [(seconds(gap.began_at), seconds(gap.ended_at)) for gap in gaps] == [
        (180, 361), (361, 1000), (2860, 5000),
    ]  # fmt: skip


def test_housekeeping_deletes_old_rows(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "REMOVED", 2)
    apply(cluster, report(0, record("a"), record("b"), record("c")))
    for number in range(4):
        apply(cluster, report(1000 * number + 500, record("a", status_reason=str(number))))
    now = at(0) + history.KEPT

    assert list(remove_old_history(now)) == []
    # The rows of a report are deleted together: three that appeared; then three that changed or
    # went.
    assert list(remove_old_history(now + dt.timedelta(seconds=501))) == [3, 3, 1]
    assert list(remove_old_history(timezone.now() + history.KEPT)) == [2, 1, 2, 1]
    assert Workload.objects.count() == 1


def test_clock_ahead_is_rejected(cluster: Cluster) -> None:
    """Nothing is noted as of a time that has not come."""
    ahead = timezone.now() + dt.timedelta(minutes=4)
    apply(cluster, report(seconds(ahead), record()))

    assert Transition.objects.get().at <= timezone.now()
    assert stored(cluster)[place()].health_since <= timezone.now()
