"""``Collector.follow``: snapshots, and the changes of the watches between them."""

from __future__ import annotations

import copy
import threading
import time
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
    METRICS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    UNAVAILABLE,
    Fault,
    ReplayServer,
    event,
    lines,
)
from tests.support.waiting import wait_until
from tests.workloads.collector.conftest import no_progress
from tests.workloads.records import REPORTER, apply, comparable, record, report, stored
from workloads.collection import FailureReason
from workloads.collector import connect, database, sync, watching
from workloads.collector.backoff import Backoff
from workloads.collector.client import ClusterClient
from workloads.collector.database import DatabaseDestination
from workloads.collector.destinations import NotReportedError, ReportingEndedError
from workloads.collector.mirror import WORKLOADS, Mirror
from workloads.collector.sync import Collector, Synced
from workloads.collector.troubles import Trouble
from workloads.collector.watching import Reflector
from workloads.kubernetes.facts import WorkloadKind
from workloads.models import Cluster
from workloads.reporting.errors import StaleReport
from workloads.reporting.reports import Applied, Place

HISTORY = "watch-deployments-history.jsonl"
Follow = Callable[[Callable[[list[Synced]], bool]], list[Synced]]


@pytest.fixture
def fresh(api: ReplayServer, cluster: Cluster, tmp_path: Path) -> Collector:
    """A second collector, which knows nothing of the first."""
    client = connect.from_kubeconfig(str(api.kubeconfig(tmp_path)), "replay")
    return Collector(client, DatabaseDestination(cluster.pk, REPORTER), progress=no_progress)


@pytest.fixture
def follow(collector: Collector, stop: threading.Event) -> Follow:
    """Follow until the reports fulfil the condition."""

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


@pytest.fixture
def soon_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a watch that follows a failure prove itself quickly."""
    monkeypatch.setattr(watching, "_PROOF_SECONDS", 0.2)


def stored_records(cluster: Cluster) -> dict[Place, Any]:
    return {p: comparable(row) for p, row in stored(cluster).items()}


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
    api.watches.scripts[DEPLOYMENTS].append(lines(HISTORY))

    # The last of the recorded events.
    follow(knows(cluster, "dep-new"))
    watched = stored_records(cluster)

    api.lists[DEPLOYMENTS] = final
    assert fresh.once(threading.Event()).applied == Applied(0, 0, 0, unchanged=54)
    assert stored_records(cluster) == watched


def test_bookmarks_and_deletions_are_followed(
    follow: Follow, api: ReplayServer, cluster: Cluster
) -> None:
    api.watches.scripts[DEPLOYMENTS].append(lines("watch-bookmarks.jsonl"))
    # The rest is still being listed when the deletion comes, or it is not: both end the same.
    reports = follow(lambda _: Place("prod", "api", "Deployment") not in stored(cluster))

    assert sum(r.applied.created - r.applied.deleted for r in reports) == 53


def test_a_watch_goes_on_where_it_ended(
    api: ReplayServer, client: ClusterClient, stop: threading.Event, pauses: list[float]
) -> None:
    def advance(_path: str, query: dict[str, str]) -> None:
        if "watch" in query:
            api.version = "1512"  # of the last bookmark

    api.watches.hold = False
    api.before_answer = advance
    api.watches.scripts[DEPLOYMENTS].append(lines("watch-bookmarks.jsonl"))
    deployments = WORKLOADS[WorkloadKind.DEPLOYMENT]
    reflector = Reflector(client, deployments, Mirror(), stop, no_progress)
    reflector.start()
    wait_until(lambda: sum("watch" in query for query in api.queries_of(DEPLOYMENTS)) > 1)
    stop.set()
    client.close()
    reflector.join(60)

    versions = [q["resourceVersion"] for q in api.queries_of(DEPLOYMENTS) if "watch" in q]
    assert versions[:2] == ["1500", "1512"]
    lists = [q for q in api.queries_of(DEPLOYMENTS) if "watch" not in q and q["limit"] != "1"]
    assert len(lists) == 1


@pytest.mark.usefixtures("soon_believed")
def test_a_watch_that_is_too_old_is_listed_again(
    follow: Follow, api: ReplayServer, cluster: Cluster
) -> None:
    """The changes in the new list are reported at once, not after the interval."""
    late = copy.deepcopy(api.lists[DEPLOYMENTS][0])
    late["metadata"] |= {"name": "late", "uid": "late"}
    reported = threading.Event()

    def change_the_list(path: str, query: dict[str, str]) -> None:
        if path == DEPLOYMENTS and "watch" in query:
            reported.wait(10)
            api.lists[DEPLOYMENTS] = [*api.lists[DEPLOYMENTS][1:], late]
            api.before_answer = lambda *_: None

    api.before_answer = change_the_list
    api.watches.scripts[DEPLOYMENTS].append(lines("watch-410-too-old.jsonl"))

    def enough(reports: list[Synced]) -> bool:
        reported.set()
        return knows(cluster, "late")(reports)

    follow(enough)

    assert sum("watch" not in query for query in api.queries_of(DEPLOYMENTS)) == 2
    assert len(stored(cluster)) == 54


@pytest.mark.usefixtures("soon_believed")
@pytest.mark.parametrize("version", ["1500", "1499"])
def test_a_server_that_was_restored_from_a_backup_is_listed_again(
    follow: Follow, api: ReplayServer, cluster: Cluster, version: str
) -> None:
    """It would accept a watch from the later version, and send no events until it reaches it."""
    lost = api.lists[DEPLOYMENTS][0]
    is_restored = version != api.version

    def restore(path: str, query: dict[str, str]) -> None:
        if path == DEPLOYMENTS and "watch" in query:
            api.before_answer = lambda *_: None
            api.version = version
            if is_restored:
                api.lists[DEPLOYMENTS].remove(lost)

    api.before_answer = restore
    api.faults[f"{DEPLOYMENTS}?watch"].append(UNAVAILABLE)

    follow(one)

    queries = api.queries_of(DEPLOYMENTS)
    assert [q["resourceVersion"] for q in queries if "watch" in q] == ["1500", version]
    lists = [q for q in queries if "watch" not in q and q["limit"] != "1"]
    assert len(lists) == (2 if is_restored else 1)
    assert len(stored(cluster)) == (53 if is_restored else 54)


@pytest.mark.usefixtures("small_pages", "soon_believed")
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
    """While a resource is not followed, a report would be incomplete."""
    for _ in range(1000):
        api.faults[PODS].append(UNAVAILABLE)
    threading.Timer(1, stop.set).start()

    assert follow(lambda reports: not reports) == []
    assert not stored(cluster)


def test_changes_between_snapshots_are_reported(
    follow: Follow, api: ReplayServer, cluster: Cluster
) -> None:
    gone, kept = api.lists[STATEFULSETS][:2]
    new = copy.deepcopy(kept)
    new["metadata"] |= {"name": "new", "uid": "new"}

    def after_the_first(reports: list[Synced]) -> bool:
        if len(reports) == 1:
            api.watches.send(STATEFULSETS, event("DELETED", gone), event("ADDED", new))
        return (
            sum(r.applied.created for r in reports) == 55
            and sum(r.applied.deleted for r in reports) == 1
        )

    reports = follow(after_the_first)

    assert [report.complete for report in reports] == [True, *[False] * (len(reports) - 1)]
    names = {place.name for place in stored(cluster)}
    assert "new" in names
    assert gone["metadata"]["name"] not in names


def test_snapshot_is_sent_each_interval(
    follow: Follow, collector: Collector, api: ReplayServer
) -> None:
    collector._interval = 1

    reports = follow(lambda reports: len(reports) == 3)

    assert [report.complete for report in reports] == [True] * 3
    assert reports[-1].applied.unchanged == 54


def test_missing_metrics_are_accepted(follow: Follow, api: ReplayServer, cluster: Cluster) -> None:
    api.metrics_fault = DEAD_METRICS

    follow(one)

    assert {row.memory_used_bytes for row in stored(cluster).values()} == {None}


def test_request_for_the_uid_is_repeated_until_it_succeeds(
    follow: Follow, api: ReplayServer, cluster: Cluster
) -> None:
    api.faults[KUBE_SYSTEM] += [UNAVAILABLE, UNAVAILABLE]

    follow(one)

    cluster.refresh_from_db()
    assert cluster.uid


def failing_once(monkeypatch: pytest.MonkeyPatch, number: int, error: Exception) -> None:
    """Let the so-manieth report fail."""
    calls = []
    real = database.apply_report

    def apply_report(**given: Any) -> Applied:
        calls.append(given)
        if len(calls) == number:
            raise error
        return real(**given)

    monkeypatch.setattr(database, "apply_report", apply_report)


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
            api.watches.send(STATEFULSETS, event("DELETED", gone))
        return sum(r.applied.deleted for r in reports) == 1

    reports = follow(after_the_first)

    assert len(stored(cluster)) == 53
    assert [report.complete for report in reports] == [True, number == 2]


def test_another_cluster_ends_it(
    collector: Collector, cluster: Cluster, stop: threading.Event
) -> None:
    apply(cluster, report(0, record(), cluster_uid="another"))

    with pytest.raises(ReportingEndedError, match="has the uid another"):
        collector.follow(stop, lambda _synced: None)
    assert len(stored(cluster)) == 1
    assert stop.is_set()


def test_a_namespace_that_appears_needs_no_snapshot(
    follow: Follow, fresh: Collector, api: ReplayServer
) -> None:
    """Usage is that of the whole cluster, of one moment."""
    final = api.lists[DEPLOYMENTS]
    moved = [raw for raw in final if raw["metadata"]["namespace"] == "prod"]
    api.lists[DEPLOYMENTS] = [raw for raw in final if raw not in moved]

    def after_the_first(reports: list[Synced]) -> bool:
        if len(reports) == 1:
            api.watches.send(DEPLOYMENTS, *(event("ADDED", raw) for raw in moved))
        return sum(r.applied.created for r in reports) == 54

    reports = follow(after_the_first)

    assert [report.complete for report in reports] == [True, *[False] * (len(reports) - 1)]
    assert len(api.queries_of(METRICS)) == 1
    api.lists[DEPLOYMENTS] = final
    assert fresh.once(threading.Event()).applied.unchanged == 54


def test_a_metrics_api_that_hangs_keeps_no_report(
    follow: Follow, api: ReplayServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It delays the first report by a few seconds, and the later reports not at all."""
    monkeypatch.setattr(sync, "_FIRST_USAGE_SECONDS", 0.5)
    hang(api, METRICS)
    gone = api.lists[STATEFULSETS][0]
    moments: list[float] = []

    def enough(reports: list[Synced]) -> bool:
        moments.append(time.monotonic())
        if len(reports) == 1:
            api.watches.send(STATEFULSETS, event("DELETED", gone))
        return sum(r.applied.deleted for r in reports) == 1

    follow(enough)

    assert moments[-1] - moments[0] < 15
    assert {row.cpu_used_millicores for row in stored(cluster).values()} == {None}


def hang(api: ReplayServer, hung: str) -> None:
    """Let the server not answer for a path until the end."""
    api.before_answer = lambda path, _query: (  # type: ignore[misc]
        api.watches.hang_up.wait(60) if path == hung else None
    )


@pytest.mark.parametrize("path", LISTS)
def test_a_watch_that_hangs_up_at_once_is_not_believed(
    collector: Collector, api: ReplayServer, cluster: Cluster, stop: threading.Event, path: str
) -> None:
    """As the watch of ReplicaSets did on every real server: 200, and the end, without an event."""
    for _ in range(1000):
        api.faults[f"{path}?watch"].append(Fault(200, b""))
    # The first report waits for the uid: until then, the lists alone could be believed.
    api.before_answer = lambda path, _query: (
        wait_until(lambda: collector.troubles) if path == KUBE_SYSTEM else None
    )
    published: list[list[Trouble]] = []

    def troubled(troubles: list[Trouble]) -> None:
        published.append(troubles)
        stop.set()

    collector.follow(stop, lambda _: None, troubled)

    assert not stored(cluster)
    ((trouble,),) = published
    resource = path.rpartition("/")[2]
    assert (trouble.resource, trouble.reason) == (resource, FailureReason.WATCH_LOST)
    assert trouble.failures >= 3
    assert "without an event" in trouble.error
    cluster.refresh_from_db()
    assert cluster.collection_error_reason == "WATCH_LOST"
    assert cluster.collection_error_resource == resource


@pytest.mark.usefixtures("soon_believed")
def test_a_watch_that_works_again_is_believed_again(
    follow: Follow, api: ReplayServer, cluster: Cluster
) -> None:
    for _ in range(4):
        api.faults[f"{REPLICASETS}?watch"].append(Fault(200, b""))

    follow(one)

    assert len(stored(cluster)) == 54


@pytest.mark.usefixtures("soon_believed")
def test_in_a_quiet_cluster_a_failure_is_over_when_the_watch_holds(
    api: ReplayServer, client: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event comes, and the watch goes on: the trouble would last until its end."""
    after_failures: list[tuple[bool, bool]] = []

    def state() -> tuple[bool, bool]:
        return reflector.is_current, reflector.trouble is not None

    def next_pause(*_: Any) -> float:
        after_failures.append(state())
        return 0.01

    monkeypatch.setattr(Backoff, "next_pause", next_pause)
    stop = threading.Event()
    api.faults[f"{DEPLOYMENTS}?watch"] += [UNAVAILABLE] * 4
    reflector = Reflector(client, WORKLOADS[WorkloadKind.DEPLOYMENT], Mirror(), stop, no_progress)
    reflector.start()
    states: list[tuple[bool, bool]] = []

    def recovered() -> bool:
        states.append(state())
        return states[-1] == (True, False)

    try:
        wait_until(lambda: len(after_failures) == 4)
        wait_until(recovered)
        time.sleep(0.3)
        assert recovered()
        # Another failure is the first of its row.
        api.watches.send(DEPLOYMENTS, b"no JSON")
        wait_until(lambda: len(after_failures) == 5)
        wait_until(recovered)
    finally:
        stop.set()
        client.close()
        reflector.join(60)

    assert set(states) <= {(False, True), (False, False), (True, False)}
    untroubled, troubled = (False, False), (False, True)
    assert after_failures[:5] == [untroubled, untroubled, troubled, troubled, untroubled]


@pytest.mark.usefixtures("soon_believed")
def test_a_fault_of_ours_does_not_freeze_the_mirror(
    follow: Follow, api: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that dies would leave its part of the mirror as it was, and believed."""
    real, calls = Mirror.change, []

    def change(mirror: Mirror, *arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise RuntimeError("a fault of ours")
        real(mirror, *arguments)

    monkeypatch.setattr(Mirror, "change", change)
    gone = api.lists[STATEFULSETS][0]

    def enough(reports: list[Synced]) -> bool:
        if len(reports) == 1:
            api.lists[STATEFULSETS].remove(gone)
            api.watches.send(STATEFULSETS, event("DELETED", gone))
        return sum(r.applied.deleted for r in reports) == 1

    follow(enough)

    lists = [q for q in api.queries_of(STATEFULSETS) if "watch" not in q]
    assert len(lists) == 2


def test_a_410_begins_with_the_shortest_pause(
    api: ReplayServer, client: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list after it is the remedy; a second 410 in a row waits longer all the same."""
    backoff_calls: list[str] = []
    monkeypatch.setattr(Backoff, "next_pause", lambda *_: backoff_calls.append("pause") or 0.0)
    monkeypatch.setattr(Backoff, "reset", lambda *_: backoff_calls.append("reset"))
    stop = threading.Event()
    api.faults[DEPLOYMENTS] += [UNAVAILABLE, UNAVAILABLE]
    for _ in range(2):
        api.watches.scripts[DEPLOYMENTS].append(lines("watch-410-too-old.jsonl"))
    reflector = Reflector(client, WORKLOADS[WorkloadKind.DEPLOYMENT], Mirror(), stop, no_progress)
    reflector.start()
    try:
        wait_until(lambda: len(api.queries_of(DEPLOYMENTS)) == 8)
    finally:
        stop.set()
        client.close()
        reflector.join(60)

    assert backoff_calls[:5] == ["pause", "pause", "reset", "pause", "pause"]


@pytest.mark.parametrize("in_transaction", [True, False])
def test_a_connection_that_failed_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch, in_transaction: bool
) -> None:
    calls: list[str] = []
    wrapper = connection._connections[connection._alias]  # type: ignore[attr-defined]
    monkeypatch.setattr(wrapper, "in_atomic_block", in_transaction)
    monkeypatch.setattr(wrapper, "close", lambda: calls.append("close"))

    with pytest.raises(NotReportedError), database._understood():
        raise OperationalError("the server closed the connection")

    assert calls == ([] if in_transaction else ["close"])
