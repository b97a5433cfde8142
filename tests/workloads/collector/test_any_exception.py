"""The collector continues after any exception in an object, a report or a cluster."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.apiserver import DEPLOYMENTS, Fault, ReplayServer
from tests.workloads.records import stored
from workloads.collection import FailureReason
from workloads.collector.database import DatabaseDestination
from workloads.collector.errors import KubernetesError
from workloads.collector.sync import Collector
from workloads.collector.troubles import Trouble
from workloads.kubernetes import health, records, reduce
from workloads.models import Cluster

MODULES = {"reduce": reduce, "records": records, "health": health}


@pytest.mark.parametrize(
    "function",
    ["reduce.pod_resources", "reduce.read_containers", "reduce._replicas", "reduce._changed_at",
     "records.derive_health", "health.most_frequent"],
)  # fmt: skip
def test_exception_in_an_object_skips_only_that_object(
    collector: Collector,
    cluster: Cluster,
    stop: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
) -> None:
    module, _, name = function.partition(".")
    collector.once(stop)
    before = stored(cluster)
    real, calls = getattr(MODULES[module], name), []

    def failing(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise ZeroDivisionError("a fault of ours")
        return real(*arguments, **named)

    monkeypatch.setattr(MODULES[module], name, failing)

    with capture_logs() as logged:
        collector.once(stop)

    after = stored(cluster)
    assert set(after) == set(before)
    named = [e for e in logged if e["event"] in ("object_unreadable", "workload_unreadable")]
    assert len(named) == 1
    assert named[0]["name"]
    unreadable = [row for row in after.values() if row.status_reason == "Unreadable"]
    of_pod = name in ("pod_resources", "read_containers")
    assert len(unreadable) == (0 if of_pod else 1)
    assert all(row.health_status.endswith("UNSPECIFIED") for row in unreadable)
    cluster.refresh_from_db()
    assert cluster.collection_error_at is None


def test_report_is_repeated_after_any_exception(
    collector: Collector,
    cluster: Cluster,
    stop: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, calls = DatabaseDestination.apply, []

    def apply(self: DatabaseDestination, report: Any) -> Any:
        calls.append(report)
        if len(calls) <= 4:
            raise ZeroDivisionError("a fault of ours")
        return real(self, report)

    monkeypatch.setattr(DatabaseDestination, "apply", apply)
    published: list[list[Trouble]] = []

    with capture_logs() as logged:
        collector.follow(stop, lambda _: stop.set(), published.append)

    assert len(stored(cluster)) == 54
    assert [entry["event"] for entry in logged].count("report_failed_unexpectedly") == 4
    assert [t.reason for t in published[0]] == [FailureReason.OTHER]
    assert published[0][0].error == "a fault of ours"


def test_any_exception_of_a_list_is_recorded(
    collector: Collector, cluster: Cluster, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(*_: Any) -> Any:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("workloads.collector.sync.read_cluster", listed)

    with pytest.raises(ZeroDivisionError):
        collector.once(stop)

    cluster.refresh_from_db()
    assert cluster.collection_error_reason == "OTHER"
    assert cluster.collection_error_message == "a fault of ours"


def test_failure_that_cannot_be_published_is_logged(
    collector: Collector, api: ReplayServer, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish(*_: Any) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(DatabaseDestination, "publish", publish)
    api.faults[DEPLOYMENTS] += [Fault(403, b"{}")]

    with capture_logs() as logged, pytest.raises(KubernetesError):
        collector.once(stop)

    assert "failure_not_recorded" in [entry["event"] for entry in logged]
