"""Health is judged by the API server's clock, whatever ours shows; reports are ordered by ours."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from django.utils.http import http_date

from tests.apiserver import DEPLOYMENTS, LISTS, METRICS, ReplayServer, event
from tests.workloads.records import place, stored
from workloads.collector.client import ClusterClient, Resource
from workloads.collector.clock import ServerClock
from workloads.collector.sync import Collector
from workloads.collector.usage import METRICS as USAGE
from workloads.models import Cluster

HOUR = 3600.0
Read = Callable[[], str]


def deployment(age: float, lead: float, **status: Any) -> dict[str, Any]:
    """Return a Deployment without ready pods; `age` is by a clock that is `lead` seconds ahead."""
    created = timezone.now() + dt.timedelta(seconds=lead - age)
    return {
        "metadata": {
            "namespace": "shop", "name": "web", "uid": "uid-web", "generation": 1,
            "creationTimestamp": f"{created:%Y-%m-%dT%H:%M:%SZ}",
        },
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, **status},
    }  # fmt: skip


def row(cluster: Cluster) -> Any:
    return stored(cluster)[place("web")]


@pytest.fixture(params=["--once", "--watch: snapshot", "--watch: delta"])
def collect(
    request: pytest.FixtureRequest, collector: Collector, api: ReplayServer, stop: threading.Event
) -> Callable[[dict[str, Any]], None]:
    """Collect a cluster of this single Deployment."""

    def run(raw: dict[str, Any]) -> None:
        api.lists = {path: [] for path in LISTS}
        if request.param == "--watch: delta":

            def reported(synced: Any) -> None:
                if synced.complete:
                    api.watches.send(DEPLOYMENTS, event("ADDED", raw))
                else:
                    stop.set()

            collector.follow(stop, reported)
            return
        api.lists[DEPLOYMENTS] = [raw]
        if request.param == "--once":
            collector.once(stop)
        else:
            collector.follow(stop, lambda _: stop.set())

    return run


@pytest.mark.parametrize("case", [
    (-HOUR, 60, "DEGRADED"),  # by our clock it would be older than the grace
    (HOUR, 600, "ERROR"),  # by our clock it would be made in the future, and always young
    (0, 60, "DEGRADED"),
    (0, 600, "ERROR"),
])  # fmt: skip
def test_the_grace_is_by_the_api_servers_clock(
    collect: Callable[[dict[str, Any]], None],
    api: ReplayServer,
    cluster: Cluster,
    case: tuple[float, float, str],
) -> None:
    lead, age, status = case
    api.clock_lead = lead
    before = timezone.now()

    collect(deployment(age, lead))

    found = row(cluster)
    assert (found.health_status, found.status_reason) == (status, "NoReadyReplicas")
    # The local clock still decides the time of the observation and the order of reports.
    assert before <= found.observed_at <= timezone.now()
    cluster.refresh_from_db()
    assert cluster.last_report_at is not None
    assert before <= cluster.last_report_at <= timezone.now()


def lead_of(client: ClusterClient) -> float:
    now = timezone.now()
    return (client.server_time(now) - now).total_seconds()


def test_it_is_known_to_a_second(client: ClusterClient, api: ReplayServer) -> None:
    assert lead_of(client) == 0
    api.clock_lead = -HOUR

    started = time.monotonic()
    list(client.pages(Resource(DEPLOYMENTS)))

    assert abs(lead_of(client) + HOUR) <= 1 + time.monotonic() - started


def test_equal_clocks_have_no_lead(client: ClusterClient) -> None:
    for _ in range(5):
        list(client.pages(Resource(DEPLOYMENTS)))

    assert lead_of(client) == 0


def test_the_metrics_servers_clock_is_another(client: ClusterClient, api: ReplayServer) -> None:
    """The API server hands its answer on as it is, with its date."""
    api.metrics_clock_lead = HOUR

    list(client.unpaged(USAGE, within=30))
    (namespaced,) = USAGE.scoped(["demo"])
    list(client.unpaged(namespaced, within=30))

    assert len(api.queries_of(METRICS)) == 1
    assert lead_of(client) == 0


def shown(seconds: float) -> dict[str, str]:
    return {"Date": http_date(time.time() + seconds)}


@pytest.mark.parametrize("headers", [
    {}, {"Date": ""}, {"Date": "yesterday"}, {"Date": "Thu, 01 Jan 1970 00:00:00 GMT"},
    {"Date": "Fri, 31 Dec 9999 23:59:59 GMT"}, shown(48 * HOUR), shown(-48 * HOUR),
])  # fmt: skip
def test_impossible_date_is_ignored(headers: dict[str, str]) -> None:
    clock = ServerClock()
    clock.learn(shown(-2 * HOUR), took=0)
    moment = timezone.now()
    known = clock.at(moment)

    clock.learn(headers, took=0)

    assert clock.at(moment) == known
    assert abs((known - moment).total_seconds() + 2 * HOUR) < 60


def test_slow_response_changes_the_clock_only_if_it_contradicts() -> None:
    clock = ServerClock()
    clock.learn(shown(-40), took=60)
    moment = timezone.now()
    assert clock.at(moment) == moment, "it may have been written 40 s ago"

    clock.learn(shown(-HOUR), took=60)
    assert moment - clock.at(moment) > dt.timedelta(minutes=55)

    clock.learn(shown(0), took=0)
    assert abs((clock.at(moment) - moment).total_seconds()) < 30, "it was set"
