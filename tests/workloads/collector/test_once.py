"""``Collector.once``: a complete snapshot, or no report at all."""

from __future__ import annotations

import threading

import pytest

from tests.apiserver import (
    DEAD_METRICS,
    DEPLOYMENTS,
    EXPIRED,
    FORBIDDEN,
    KUBE_SYSTEM,
    PODS,
    UNAUTHORIZED,
    UNAVAILABLE,
    Fault,
    ReplayServer,
)
from tests.workloads.records import apply, at, record, report, stored
from workloads.collector.destinations import ReportingEndedError
from workloads.collector.errors import ExpiredError, KubernetesError
from workloads.collector.sync import Collector
from workloads.models import Cluster
from workloads.reporting.reports import Applied


def test_recorded_cluster_is_synced(
    collector: Collector, cluster: Cluster, stop: threading.Event
) -> None:
    synced = collector.once(stop)

    assert synced.complete
    assert synced.applied == Applied(created=54, updated=0, deleted=0, unchanged=0)
    cluster.refresh_from_db()
    assert cluster.uid == "229cb448-7af2-40c4-bf31-ace29c1771bb"
    assert cluster.report_interval_seconds == 3600
    assert cluster.last_snapshot_at == cluster.last_report_at

    assert collector.once(stop).applied == Applied(0, 0, 0, unchanged=54)


@pytest.mark.parametrize("faulty", [
    (path, fault)
    for path in (KUBE_SYSTEM, DEPLOYMENTS, PODS)
    for fault in (UNAVAILABLE, Fault(429, b""), Fault(200, b"{}", cut=1))
])  # fmt: skip
def test_temporary_failure_is_retried(
    collector: Collector,
    api: ReplayServer,
    stop: threading.Event,
    pauses: list[float],
    faulty: tuple[str, Fault],
) -> None:
    path, fault = faulty
    api.faults[path] += [fault, fault]

    assert collector.once(stop).applied.created == 54
    assert len(pauses) == 2


@pytest.mark.usefixtures("small_pages")
def test_a_list_that_takes_too_long_is_begun_again_at_once(
    collector: Collector,
    api: ReplayServer,
    stop: threading.Event,
    pauses: list[float],
) -> None:
    api.faults[f"{PODS}?continue"] += [EXPIRED]

    assert collector.once(stop).applied.created == 54
    assert pauses == []
    firsts = [query for query in api.queries_of(PODS) if "continue" not in query]
    assert len(firsts) == 2


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize(
    "fault",
    [
        EXPIRED,
        Fault(200, b'{"items": []}', cut=3),
        UNAVAILABLE,
        Fault(200, b'{"status": "ok"}'),  # of a proxy
        Fault(200, b"-5\r\n{}", headers={"Transfer_Encoding": "chunked"}),
    ],
)
def test_interrupted_list_deletes_no_workloads(
    collector: Collector,
    api: ReplayServer,
    cluster: Cluster,
    stop: threading.Event,
    fault: Fault,
) -> None:
    apply(cluster, report(0, record("not-listed")))
    for _ in range(4):
        api.faults[f"{DEPLOYMENTS}?continue"].append(fault)

    with pytest.raises(KubernetesError):
        collector.once(stop)

    assert [p.name for p in stored(cluster)] == ["not-listed"]
    cluster.refresh_from_db()
    assert cluster.last_report_at == at(0)


@pytest.mark.parametrize(("path", "fault"), [
    (DEPLOYMENTS, FORBIDDEN), (PODS, FORBIDDEN), (KUBE_SYSTEM, UNAUTHORIZED),
])  # fmt: skip
def test_permanent_errors_are_not_retried(
    collector: Collector, api: ReplayServer, stop: threading.Event, path: str, fault: Fault
) -> None:
    api.faults[path].append(fault)

    with pytest.raises(KubernetesError, match=str(fault.status)):
        collector.once(stop)
    assert len(api.queries_of(path)) == 1


def test_stop_interrupts_the_run(
    collector: Collector, api: ReplayServer, stop: threading.Event
) -> None:
    stop.set()
    api.faults[DEPLOYMENTS].append(EXPIRED)

    with pytest.raises(ExpiredError):
        collector.once(stop)


def test_other_cluster_is_refused(
    collector: Collector, cluster: Cluster, stop: threading.Event
) -> None:
    apply(cluster, report(0, record(), cluster_uid="another"))

    with pytest.raises(ReportingEndedError, match="has the uid another"):
        collector.once(stop)
    assert len(stored(cluster)) == 1


def test_metrics_may_come_and_go(
    collector: Collector, api: ReplayServer, cluster: Cluster, stop: threading.Event
) -> None:
    collector.once(stop)
    api.metrics_fault = DEAD_METRICS
    collector.once(stop)
    assert {row.cpu_used_millicores for row in stored(cluster).values()} == {None}

    api.metrics_fault = None
    collector.once(stop)
    known = [row.cpu_used_millicores is not None for row in stored(cluster).values()]
    assert len(known) == 54
    # Of the other workloads no pod is measured.
    assert sum(known) == 40
