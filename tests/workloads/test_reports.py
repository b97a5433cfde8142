"""The effect of a report on the workloads, and the reasons to reject it."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apikeys.models import AuditEvent
from tests.workloads.records import apply, at, comparable, place, record, report, statements, stored
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.records import ContainerRecord
from workloads.models import Cluster, Workload
from workloads.reporting import applying, differences
from workloads.reporting.errors import ClusterBusy, ClusterUidMismatch, StaleReport
from workloads.reporting.reports import Applied


def counts(cluster: Cluster) -> dict[str, int]:
    cluster.refresh_from_db()
    return cluster.workload_counts()


def test_first_snapshot_creates_workloads(cluster: Cluster) -> None:
    before = timezone.now()

    applied = apply(cluster, report(0, record("api"), record("web")))

    assert applied == Applied(created=2, updated=0, deleted=0, unchanged=0)
    rows = stored(cluster)
    assert {p: comparable(row) for p, row in rows.items()} == {
        place("api"): comparable(record("api")),
        place("web"): comparable(record("web")),
    }
    assert {row.observed_at for row in rows.values()} == {at(0)}
    cluster.refresh_from_db()
    assert (cluster.last_report_at, cluster.last_snapshot_at) == (at(0), at(0))
    assert cluster.last_received_at is not None
    assert before <= cluster.last_received_at <= timezone.now()
    assert cluster.uid is None


def test_a_snapshot_changes_adds_deletes_and_leaves(cluster: Cluster) -> None:
    apply(cluster, report(0, record("api"), record("web"), record("old")))
    before = stored(cluster)

    changed = record("web", replicas_ready=1)
    applied = apply(cluster, report(1, record("api"), changed, record("new")))

    assert applied == Applied(created=1, updated=1, deleted=1, unchanged=1)
    after = stored(cluster)
    assert set(after) == {place("api"), place("web"), place("new")}
    assert comparable(after[place("web")]) == comparable(changed)
    assert after[place("web")].pk == before[place("web")].pk
    assert after[place("web")].observed_at == at(1)
    # Not even written.
    assert after[place("api")].observed_at == at(0)


@pytest.mark.parametrize("change", [
    {"uid": ""}, {"labels": {}}, {"labels": {"app": "web", "tier": "back"}},
    {"health_status": HealthStatus.ERROR}, {"status_reason": "CrashLoopBackOff"},
    {"replicas_desired": 3}, {"replicas_ready": 1}, {"replicas_available": 1},
    {"cpu_requests_millicores": 1}, {"cpu_limits_millicores": 1}, {"cpu_used_millicores": 1},
    {"cpu_used_millicores": None}, {"memory_requests_bytes": 1}, {"memory_limits_bytes": 2**63 - 1},
    {"memory_used_bytes": None}, {"ephemeral_storage_requests_bytes": 1}, {"containers": ()},
    {"containers": (ContainerRecord("app", "registry.example/web:1", 0, "running", False),)},
])  # fmt: skip
def test_changed_fields_are_stored(cluster: Cluster, change: dict[str, Any]) -> None:
    apply(cluster, report(0, record()))

    applied = apply(cluster, report(1, record(**change)))

    # A reporter without the uid leaves the known uid.
    kept = {"uid": "uid-web"} if "uid" in change else change
    assert comparable(stored(cluster)[place()]) == comparable(record(**kept))
    assert applied.updated == (0 if "uid" in change else 1)
    assert apply(cluster, report(2, record(**change))).unchanged == 1


def test_a_new_workload_keeps_every_character(cluster: Cluster) -> None:
    text = r"\N \t" + "\t\n\r\\ “quoted” None"
    containers = (ContainerRecord("app", f'"{text}', 0, "", False),)
    odd = record("odd", status_reason=text, containers=containers)
    null = record("null", status_reason=r"\N", cpu_used_millicores=None, memory_used_bytes=None)

    apply(cluster, report(0, odd, null, record("none", status_reason="None")))

    rows = stored(cluster)
    assert comparable(rows[place("odd")]) == comparable(odd)
    assert comparable(rows[place("null")]) == comparable(null)
    assert rows[place("none")].status_reason == "None"
    # And they are known again.
    assert apply(cluster, report(1, odd, null, complete=False)).unchanged == 2


def test_containers_that_are_written_otherwise_are_the_same(cluster: Cluster) -> None:
    apply(cluster, report(0, record()))
    row = stored(cluster)[place()]
    text = json.dumps(row.containers, indent=1)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workloads_workload SET containers = %s", [text])

    assert apply(cluster, report(1, record())).unchanged == 1


def test_order_of_labels_is_ignored(cluster: Cluster) -> None:
    apply(cluster, report(0, record(labels={"a": "1", "bb": "2"})))

    assert apply(cluster, report(1, record(labels={"bb": "2", "a": "1"}))).unchanged == 1


def test_the_same_name_with_another_uid_is_another_workload(cluster: Cluster) -> None:
    apply(cluster, report(0, record()))
    before = stored(cluster)[place()]

    assert apply(cluster, report(1, record(uid="other"))) == Applied(0, 1, 0, 0)

    after = stored(cluster)[place()]
    assert after.pk != before.pk
    assert after.uid == "other"


def test_a_uid_is_learned(cluster: Cluster) -> None:
    apply(cluster, report(0, record(uid="")))
    before = stored(cluster)[place()]

    apply(cluster, report(1, record()))

    after = stored(cluster)[place()]
    assert (after.pk, after.uid) == (before.pk, "uid-web")


def test_delta_is_applied(cluster: Cluster) -> None:
    apply(cluster, report(0, record("api"), record("web"), record("old")))

    applied = apply(
        cluster,
        report(
            1,
            record("web", replicas_ready=0),
            record("new"),
            record("api"),
            complete=False,
            deleted=frozenset({place("old"), place("never")}),
        ),
    )

    assert applied == Applied(created=1, updated=1, deleted=1, unchanged=1)
    assert set(stored(cluster)) == {place("api"), place("web"), place("new")}
    cluster.refresh_from_db()
    assert (cluster.last_report_at, cluster.last_snapshot_at) == (at(1), at(0))


def test_delta_deletes_only_named_workloads(cluster: Cluster) -> None:
    """Namespaces and names are looked up apart, and must not be mixed up."""
    places = [(n, name) for n in ("a", "b") for name in ("x", "y")]
    apply(cluster, report(0, *(record(name, namespace=n, uid="") for n, name in places)))
    deleted = frozenset({place("x", "a"), place("y", "b")})

    assert apply(cluster, report(1, complete=False, deleted=deleted)).deleted == 2
    assert set(stored(cluster)) == {place("y", "a"), place("x", "b")}


def test_delta_of_thousands_is_applied(cluster: Cluster) -> None:
    many = [record(f"w-{n}", namespace=f"n-{n % 7}") for n in range(2100)]
    assert apply(cluster, report(0, *many, complete=False)).created == 2100
    assert apply(cluster, report(1, *many, complete=False)).unchanged == 2100

    deleted = frozenset(place(r.name, r.namespace) for r in many)
    assert apply(cluster, report(2, complete=False, deleted=deleted)).deleted == 2100


def test_empty_snapshot_deletes_all_workloads(cluster: Cluster) -> None:
    apply(cluster, report(0, record()))

    assert apply(cluster, report(1)) == Applied(0, 0, 1, 0)
    assert counts(cluster)["total"] == 0


def test_counts_follow(cluster: Cluster) -> None:
    kinds = [HealthStatus.HEALTHY] * 3 + [HealthStatus.DEGRADED] * 2 + [HealthStatus.ERROR]
    kinds.append(HealthStatus.UNSPECIFIED)
    apply(cluster, report(0, *(record(f"w{n}", health_status=s) for n, s in enumerate(kinds))))
    expected = {"total": 7, "healthy": 3, "degraded": 2, "error": 1, "unspecified": 1}
    assert counts(cluster) == expected

    apply(cluster, report(1, record("w0", health_status=HealthStatus.ERROR), complete=False))
    assert counts(cluster) == {**expected, "healthy": 2, "error": 2}


def test_other_clusters_are_left_alone(cluster: Cluster) -> None:
    other = Cluster.objects.create(name="other")
    apply(other, report(0, record()))
    apply(cluster, report(0, record()))

    apply(cluster, report(1))

    assert set(stored(other)) == {place()}
    assert counts(other)["total"] == 1


@pytest.mark.parametrize("seconds", [0, -1, 5])
@pytest.mark.parametrize("complete", [True, False])
def test_older_report_is_refused(cluster: Cluster, seconds: float, complete: bool) -> None:
    apply(cluster, report(5, record()))

    with pytest.raises(StaleReport) as caught:
        apply(cluster, report(seconds, record("late"), complete=complete))

    assert caught.value.metadata["last_report_at"] == "2026-11-20T12:00:05.000000Z"
    assert set(stored(cluster)) == {place()}
    assert counts(cluster)["total"] == 1


def test_the_first_uid_stays(cluster: Cluster) -> None:
    apply(cluster, report(0, record(), cluster_uid="mine"))
    apply(cluster, report(1, record(), cluster_uid="mine"))
    apply(cluster, report(2, record()))
    cluster.refresh_from_db()
    assert cluster.uid == "mine"
    (event,) = AuditEvent.objects.filter(action="cluster.identify")
    assert (event.resource_id, event.details) == (str(cluster.pk), {"uid": "mine"})
    assert event.actor_name == "reporter"

    with pytest.raises(ClusterUidMismatch) as caught:
        apply(cluster, report(3, cluster_uid="theirs"))

    assert caught.value.metadata == {"cluster_uid": "theirs", "expected_cluster_uid": "mine"}
    cluster.refresh_from_db()
    assert cluster.last_report_at == at(2)
    assert set(stored(cluster)) == {place()}


def test_a_foreign_report_is_foreign_even_when_late(cluster: Cluster) -> None:
    apply(cluster, report(5, cluster_uid="mine"))

    with pytest.raises(ClusterUidMismatch):
        apply(cluster, report(0, cluster_uid="theirs"))


def test_the_interval_is_the_reporters(cluster: Cluster) -> None:
    apply(cluster, report(0, interval_seconds=15))
    apply(cluster, report(1))

    cluster.refresh_from_db()
    assert cluster.report_interval_seconds == 15


def test_unknown_cluster_is_not_found(db: None) -> None:
    with pytest.raises(Cluster.DoesNotExist):
        apply(Cluster(pk=uuid.uuid4()), report(0))


def test_rejected_report_makes_no_changes(cluster: Cluster) -> None:
    apply(cluster, report(0, record()))

    with pytest.raises(Exception, match="workload_figures_not_negative"):
        apply(cluster, report(1, record("new", replicas_ready=-1)))

    cluster.refresh_from_db()
    assert cluster.last_report_at == at(0)
    assert set(stored(cluster)) == {place()}


def test_the_same_name_of_another_kind(cluster: Cluster) -> None:
    kinds = [record(kind=kind, uid=kind.value) for kind in WorkloadKind]

    assert apply(cluster, report(0, *kinds)).created == 3
    assert apply(cluster, report(1, *kinds)).unchanged == 3


@pytest.mark.parametrize("size", [10, 200])
def test_query_budget_is_met(cluster: Cluster, size: int) -> None:
    many = [record(f"w-{n}") for n in range(size)]
    apply(cluster, report(0, *many))

    unchanged = statements(cluster, report(1, *many))
    # The cluster and its rows are read, then the report is claimed.
    assert unchanged == ["SELECT", "SELECT", "UPDATE"]

    changed = statements(
        cluster, report(2, *many[:5], record("w-6", replicas_ready=1), record("new"))
    )
    # The history of the removed workload; then the claim, a deletion, an insert, an update, the
    # transitions, the changes; then the image rows that go and come, and their counts subtracted
    # and added; the counts by health read and written.
    assert changed == [
        "SELECT", "SELECT", "SELECT", "UPDATE",
        "DELETE", "INSERT", "UPDATE", "INSERT", "INSERT",
        "DELETE", "INSERT", "INSERT", "DELETE", "UPDATE", "SELECT", "UPDATE",
    ]  # fmt: skip


def test_reports_keep_their_zone(cluster: Cluster) -> None:
    zone = dt.timezone(dt.timedelta(hours=9))
    apply(cluster, report(0, reported_at=at(0).astimezone(zone)))

    with pytest.raises(StaleReport):
        apply(cluster, report(0))
    assert Workload.objects.count() == 0


def test_reports_are_compared_outside_of_a_transaction(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    outside = len(connection.savepoint_ids)
    real = applying.compare

    def compare(*given: Any) -> Any:
        found = real(*given)
        compared.append(len(connection.savepoint_ids) - outside)
        return found

    monkeypatch.setattr(applying, "compare", compare)
    apply(cluster, report(0, record()))

    assert compared == [0]
    assert set(stored(cluster)) == {place()}


def meanwhile(monkeypatch: pytest.MonkeyPatch, *others: Callable[[], object]) -> list[int]:
    """Let these happen after the first, second … comparison; return how often it compared."""
    compared: list[int] = []
    pending = list(others)
    real = applying.compare

    def compare(*given: Any) -> Any:
        found = real(*given)
        compared.append(1)
        if pending:
            pending.pop(0)()
        return found

    monkeypatch.setattr(applying, "compare", compare)
    return compared


def test_another_report_is_applied_meanwhile(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(cluster, report(0, record("web"), record("old")))
    older = report(1, record("web", replicas_ready=0), record("new"), complete=False)

    def apply_older() -> None:
        monkeypatch.setattr(applying, "compare", differences.compare)
        apply(cluster, older)
        monkeypatch.setattr(applying, "compare", compare)

    compared = meanwhile(monkeypatch, apply_older)
    compare = applying.compare
    applied = apply(cluster, report(2, record("web")))

    assert len(compared) == 2
    assert applied == Applied(created=0, updated=1, deleted=2, unchanged=0)
    assert set(stored(cluster)) == {place("web")}
    assert stored(cluster)[place("web")].replicas_ready == 2


def test_older_reports_do_not_restart_a_report_without_limit(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[StaleReport] = []

    def apply_older(seconds: float) -> None:
        monkeypatch.setattr(applying, "compare", differences.compare)
        try:
            apply(cluster, report(seconds, record(f"w{seconds}"), complete=False))
        except StaleReport as error:
            refused.append(error)
        monkeypatch.setattr(applying, "compare", compare)

    compared = meanwhile(monkeypatch, lambda: apply_older(1), lambda: apply_older(2))
    compare = applying.compare
    apply(cluster, report(9, record()))

    assert len(compared) == 2
    assert [error.metadata["last_report_at"] for error in refused] == [
        "2026-11-20T12:00:09.000000Z"
    ]
    assert set(stored(cluster)) == {place()}
    # Those that are newer are taken as ever.
    monkeypatch.setattr(applying, "compare", differences.compare)
    apply(cluster, report(10, record("next")))


def test_concurrently_applied_newer_report_is_detected(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apply_newer() -> None:
        monkeypatch.setattr(applying, "compare", differences.compare)
        apply(cluster, report(9, record("newer")))

    meanwhile(monkeypatch, apply_newer)

    with pytest.raises(StaleReport):
        apply(cluster, report(5, record("older")))

    assert set(stored(cluster)) == {place("newer")}


def test_repeatedly_overtaken_report_is_refused(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    uids = iter("abcdef")

    def move() -> None:
        Cluster.objects.update(uid=next(uids))

    meanwhile(monkeypatch, *[move] * 6)

    with pytest.raises(ClusterBusy):
        apply(cluster, report(0, record()))

    assert not stored(cluster)


def test_collector_version_is_kept(cluster: Cluster) -> None:
    apply(cluster, report(0, collector_version="agent/1.2"))
    apply(cluster, report(1))

    cluster.refresh_from_db()
    assert cluster.collector_version == "agent/1.2"
