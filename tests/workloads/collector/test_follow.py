"""``Collector.follow``: snapshots, and between them what the watches bring."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from tests.apiserver import (
    DEAD_METRICS,
    DEPLOYMENTS,
    EXPIRED,
    FORBIDDEN,
    KUBE_SYSTEM,
    LISTS,
    PODS,
    STATEFULSETS,
    UNAVAILABLE,
    ReplayServer,
    event,
    lines,
)
from tests.workloads.collector.conftest import no_progress
from tests.workloads.records import REPORTER, apply, as_said, record, report, stored
from workloads.collector import connect, sync
from workloads.collector.mirror import Mirror
from workloads.collector.sync import Collector, Synced
from workloads.models import Cluster
from workloads.report_errors import ClusterUidMismatch, StaleReport
from workloads.reports import Applied, Place

HISTORY = "watch-deployments-history.jsonl"
Follow = Callable[[Callable[[list[Synced]], bool]], list[Synced]]


@pytest.fixture
def fresh(api: ReplayServer, cluster: Cluster, tmp_path: Path) -> Collector:
    """A second collector, which knows nothing of the first."""
    client = connect.from_kubeconfig(str(api.kubeconfig(tmp_path)), "replay")
    return Collector(client, cluster.pk, actor=REPORTER, progress=no_progress)


@pytest.fixture
def follow(collector: Collector, stop: threading.Event) -> Follow:
    """Follow until the reports so far are what was waited for."""

    def run(enough: Callable[[list[Synced]], bool]) -> list[Synced]:
        reports: list[Synced] = []

        def reported(synced: Synced) -> None:
            reports.append(synced)
            if enough(reports):
                stop.set()

        collector.follow(stop, reported)
        assert enough(reports), reports
        assert not [t for t in threading.enumerate() if t.name.startswith("watch-")]
        return reports

    return run


def said(cluster: Cluster) -> dict[Place, Any]:
    return {p: as_said(row) for p, row in stored(cluster).items()}


def one(reports: list[Synced]) -> bool:
    return len(reports) == 1


def test_the_first_report_is_a_snapshot(follow: Follow, cluster: Cluster) -> None:
    (synced,) = follow(one)

    assert (synced.complete, synced.applied) == (True, Applied(54, 0, 0, 0))
    cluster.refresh_from_db()
    assert cluster.uid == "229cb448-7af2-40c4-bf31-ace29c1771bb"


def knows(cluster: Cluster, name: str) -> Callable[[list[Synced]], bool]:
    return lambda _reports: any(place.name == name for place in stored(cluster))


def test_replaying_the_watch_ends_in_the_rows_of_a_fresh_list(
    follow: Follow, fresh: Collector, api: ReplayServer, cluster: Cluster
) -> None:
    final = api.lists[DEPLOYMENTS]
    api.lists[DEPLOYMENTS] = []
    api.watches[DEPLOYMENTS].append(lines(HISTORY))

    # The last of the recorded events.
    follow(knows(cluster, "dep-new"))
    watched = said(cluster)

    api.lists[DEPLOYMENTS] = final
    assert fresh.once(threading.Event()).applied == Applied(0, 0, 0, unchanged=54)
    assert said(cluster) == watched


def test_bookmarks_and_a_deletion(follow: Follow, api: ReplayServer, cluster: Cluster) -> None:
    api.watches[DEPLOYMENTS].append(lines("watch-bookmarks.jsonl"))
    # The rest is still being listed when the deletion comes, or it is not: both end the same.
    reports = follow(lambda _: Place("prod", "api", "Deployment") not in stored(cluster))

    assert sum(r.applied.created - r.applied.deleted for r in reports) == 53


def test_a_watch_goes_on_where_it_ended(follow: Follow, api: ReplayServer) -> None:
    api.hold = False
    api.watches[DEPLOYMENTS].append(lines("watch-bookmarks.jsonl"))

    follow(lambda _: sum("watch" in query for query in api.asked(DEPLOYMENTS)) > 1)

    versions = [q["resourceVersion"] for q in api.asked(DEPLOYMENTS) if "watch" in q]
    assert versions[:2] == ["1500", "1512"]
    assert sum("watch" not in query for query in api.asked(DEPLOYMENTS)) == 1


def test_a_watch_that_is_too_old_is_listed_again(
    follow: Follow, api: ReplayServer, cluster: Cluster
) -> None:
    """And what the new list has changed is reported at once, not after the interval."""
    late = copy.deepcopy(api.lists[DEPLOYMENTS][0])
    late["metadata"] |= {"name": "late", "uid": "late"}
    reported = threading.Event()

    def change_the_list(path: str, query: dict[str, str]) -> None:
        if path == DEPLOYMENTS and "watch" in query:
            reported.wait(10)
            api.lists[DEPLOYMENTS] = [*api.lists[DEPLOYMENTS][1:], late]
            api.before_answer = lambda *_: None

    api.before_answer = change_the_list
    api.watches[DEPLOYMENTS].append(lines("watch-410-too-old.jsonl"))

    def enough(reports: list[Synced]) -> bool:
        reported.set()
        return knows(cluster, "late")(reports)

    follow(enough)

    assert sum("watch" not in query for query in api.asked(DEPLOYMENTS)) == 2
    assert len(stored(cluster)) == 54


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("fault", [EXPIRED, UNAVAILABLE, FORBIDDEN])
def test_a_list_that_fails_is_tried_again(follow: Follow, api: ReplayServer, fault: Any) -> None:
    for path in LISTS:
        api.faults[path].append(fault)
    api.faults[f"{PODS}?continue"].append(fault)

    (synced,) = follow(one)

    assert synced.applied == Applied(54, 0, 0, 0)


def test_a_dead_server_is_not_reported(
    follow: Follow, api: ReplayServer, cluster: Cluster, stop: threading.Event
) -> None:
    """While one resource is not followed, a report would pretend to know."""
    for _ in range(1000):
        api.faults[PODS].append(UNAVAILABLE)
    threading.Timer(1, stop.set).start()

    assert follow(lambda reports: not reports) == []
    assert not stored(cluster)


def test_changes_between_snapshots(follow: Follow, api: ReplayServer, cluster: Cluster) -> None:
    gone, kept = api.lists[STATEFULSETS][:2]
    new = copy.deepcopy(kept)
    new["metadata"] |= {"name": "new", "uid": "new"}

    def after_the_first(reports: list[Synced]) -> bool:
        if len(reports) == 1:
            api.watches[STATEFULSETS].append([event("DELETED", gone), event("ADDED", new)])
            api.hang_up.set()  # the watches end, and are opened again
        return (
            sum(r.applied.created for r in reports) == 55
            and sum(r.applied.deleted for r in reports) == 1
        )

    reports = follow(after_the_first)

    assert [report.complete for report in reports] == [True, *[False] * (len(reports) - 1)]
    names = {place.name for place in stored(cluster)}
    assert "new" in names
    assert gone["metadata"]["name"] not in names


def test_a_snapshot_each_interval(follow: Follow, collector: Collector, api: ReplayServer) -> None:
    collector._interval = 1

    reports = follow(lambda reports: len(reports) == 3)

    assert [report.complete for report in reports] == [True] * 3
    assert reports[-1].applied.unchanged == 54


def test_without_metrics(follow: Follow, api: ReplayServer, cluster: Cluster) -> None:
    api.metrics_fault = DEAD_METRICS

    follow(one)

    assert {row.memory_used_bytes for row in stored(cluster).values()} == {None}


def test_the_uid_is_asked_until_it_is_told(
    follow: Follow, api: ReplayServer, cluster: Cluster
) -> None:
    api.faults[KUBE_SYSTEM] += [UNAVAILABLE, UNAVAILABLE]

    follow(one)

    cluster.refresh_from_db()
    assert cluster.uid


def failing_once(monkeypatch: pytest.MonkeyPatch, number: int, error: Exception) -> None:
    """Let the so-manieth report fail."""
    calls = []
    real = sync.apply_report

    def apply_report(**given: Any) -> Applied:
        calls.append(given)
        if len(calls) == number:
            raise error
        return real(**given)

    monkeypatch.setattr(sync, "apply_report", apply_report)


STALE = StaleReport(report(1).reported_at, report(2).reported_at)


@pytest.mark.parametrize("failure", [
    (number, error) for number in (1, 2) for error in (OperationalError("gone"), STALE)
])  # fmt: skip
def test_a_report_that_failed_is_made_good_by_a_snapshot(
    follow: Follow,
    api: ReplayServer,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    failure: tuple[int, Exception],
) -> None:
    number, error = failure
    failing_once(monkeypatch, number, error)
    gone = api.lists[STATEFULSETS][0]

    def after_the_first(reports: list[Synced]) -> bool:
        if len(reports) == 1:
            api.watches[STATEFULSETS].append([event("DELETED", gone)])
            api.hang_up.set()
        return sum(r.applied.deleted for r in reports) == 1

    reports = follow(after_the_first)

    assert len(stored(cluster)) == 53
    assert [report.complete for report in reports] == [True, number == 2]


def test_another_cluster_ends_it(
    collector: Collector, cluster: Cluster, stop: threading.Event
) -> None:
    apply(cluster, report(0, record(), cluster_uid="another"))

    with pytest.raises(ClusterUidMismatch):
        collector.follow(stop, lambda _synced: None)
    assert len(stored(cluster)) == 1
    assert stop.is_set()


def test_a_namespace_that_appears_meanwhile_is_measured(
    follow: Follow, fresh: Collector, api: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pods' usage was not read, and must not be taken for none."""
    real, calls = Mirror.namespaces, []

    def namespaces(mirror: Mirror) -> set[str]:
        calls.append(mirror)
        return real(mirror) - ({"demo"} if len(calls) == 1 else set())

    monkeypatch.setattr(Mirror, "namespaces", namespaces)

    follow(one)

    assert len(calls) == 2
    assert fresh.once(threading.Event()).applied == Applied(0, 0, 0, unchanged=54)


def test_a_change_in_a_new_namespace_brings_a_snapshot(
    follow: Follow, fresh: Collector, api: ReplayServer
) -> None:
    final = api.lists[DEPLOYMENTS]
    moved = [raw for raw in final if raw["metadata"]["namespace"] == "prod"]
    api.lists[DEPLOYMENTS] = [raw for raw in final if raw not in moved]

    def after_the_first(reports: list[Synced]) -> bool:
        if len(reports) == 1:
            api.watches[DEPLOYMENTS].append([event("ADDED", raw) for raw in moved])
            api.hang_up.set()
        return sum(r.applied.created for r in reports) == 54

    reports = follow(after_the_first)

    assert [report.complete for report in reports] == [True, True]
    api.lists[DEPLOYMENTS] = final
    assert fresh.once(threading.Event()).applied.unchanged == 54


@pytest.mark.parametrize("in_transaction", [True, False])
def test_a_connection_that_failed_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch, in_transaction: bool
) -> None:
    calls: list[str] = []
    wrapper = connection._connections[connection._alias]  # type: ignore[attr-defined]
    monkeypatch.setattr(wrapper, "in_atomic_block", in_transaction)
    monkeypatch.setattr(wrapper, "close", lambda: calls.append("close"))

    sync._drop_connection()

    assert calls == ([] if in_transaction else ["close"])
