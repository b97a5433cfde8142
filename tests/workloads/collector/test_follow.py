"""``Collector.follow``: snapshots, and between them what the watches bring."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError

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
from tests.workloads.records import apply, as_said, record, report, stored
from workloads.collector import client as client_module
from workloads.collector import sync
from workloads.collector.sync import Collector, Synced
from workloads.models import Cluster
from workloads.report_errors import ClusterUidMismatch, StaleReport
from workloads.reports import Applied, Place

HISTORY = "watch-deployments-history.jsonl"
Follow = Callable[[Callable[[list[Synced]], bool]], list[Synced]]


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
        assert threading.active_count() < 20
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


def test_replaying_the_watch_ends_in_the_rows_of_a_fresh_list(
    follow: Follow, collector: Collector, api: ReplayServer, cluster: Cluster
) -> None:
    final = api.lists[DEPLOYMENTS]
    api.lists[DEPLOYMENTS] = []
    api.watches[DEPLOYMENTS].append(lines(HISTORY))

    follow(lambda reports: sum(r.applied.created - r.applied.deleted for r in reports) == 54
           and reports[-1].applied == Applied(0, 0, 0, 0) or watched_all(cluster, final))  # fmt: skip
    watched = said(cluster)

    assert watched.keys() >= {Place("demo", "dep-new", "Deployment")}
    api.lists[DEPLOYMENTS] = final
    fresh = Collector(
        sync_client(api), cluster.pk, actor=collector._actor, progress=collector._progress
    )
    fresh.once(threading.Event())
    assert said(cluster) == watched


def watched_all(cluster: Cluster, final: list[Any]) -> bool:
    """Whether the last of the recorded events has arrived."""
    names = {p.name for p in stored(cluster) if p.kind == "Deployment"}
    return names == {raw["metadata"]["name"] for raw in final}
