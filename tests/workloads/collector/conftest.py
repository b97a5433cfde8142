"""Fixtures of the collector's tests: a replayed API server, and no long pauses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from apikeys.actors import Actor
from tests.apiserver import ReplayServer
from tests.support.server import LiveServer
from tests.support.waiting import MAX_WAIT
from tests.workloads.collector.between import Between
from tests.workloads.collector.registered import Registered
from workloads.collector import client as client_module
from workloads.collector import connect, sync
from workloads.collector.backoff import Backoff
from workloads.collector.client import ClusterClient
from workloads.collector.database import DatabaseDestination
from workloads.collector.sync import Collector
from workloads.models import Cluster


def no_progress(_resource: str, _done: int, _left: int | None) -> None:
    pass


@pytest.fixture
def client(api: ReplayServer, tmp_path: Path) -> Iterator[ClusterClient]:
    client = connect.from_kubeconfig(str(api.kubeconfig(tmp_path)), "replay")
    yield client
    client.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Make pauses short, and keep how long the server wished them to be."""
    wished: list[float] = []

    def next_pause(_self: Backoff, at_least: float = 0.0) -> float:
        wished.append(at_least)
        return 0.01

    monkeypatch.setattr(Backoff, "next_pause", next_pause)
    monkeypatch.setattr(sync, "_GATHER_SECONDS", 0.01)
    return wished


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PAGE_SIZE", 10)


@pytest.fixture
def collector(client: ClusterClient, cluster: Cluster, pauses: list[float]) -> Collector:
    destination = DatabaseDestination(cluster.pk, Actor(name="sync_workloads"))
    return Collector(client, destination, progress=no_progress, interval=3600)


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    """An event that comes by itself, so that no test waits for ever."""
    event = threading.Event()
    timer = threading.Timer(MAX_WAIT, event.set)
    timer.start()
    yield event
    timer.cancel()


@pytest.fixture(scope="session")
def reader(live: LiveServer) -> str:
    return live.token("cluster:read", "cluster:write")


@pytest.fixture
def registered(live: LiveServer, reader: str) -> Registered:
    return Registered(live, reader)


@pytest.fixture
def between(live: LiveServer) -> Iterator[Between]:
    with Between(live) as proxy:
        yield proxy
