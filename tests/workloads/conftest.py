"""Fixtures of the tests of clusters and workloads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from django.db.models import F

from apikeys.tokens import TokenKind
from infra_service.demo.workloads import load_clusters, load_workloads
from tests.apiserver import ReplayServer
from tests.conftest import LONG_AGO, ApiClient, ClientWith
from tests.support.multiplied import another, multiply
from tests.support.plans import rows_of_a_module
from tests.workloads.agent import Agent
from workloads import availability
from workloads.models import Cluster, Workload

CLUSTERS = 20
IN_A_CLUSTER = 1_000
COPIES = 8
CONTAINER = {
    "name": "app",
    "image": "registry.example.com/app:1.4.2",
    "restart_count": 0,
    "state": "running",
    "ready": True,
}


class NewWorkload(Protocol):
    """``workload(name="web")``: a healthy Deployment of the cluster, except for the arguments."""

    def __call__(self, **fields: Any) -> Workload: ...


@pytest.fixture(autouse=True)
def known_however_late_the_tests_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their data is of November 2026."""
    monkeypatch.setattr(availability, "KEPT", dt.timedelta(days=36_500))


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="prod-eu-1")


@pytest.fixture
def other(db: None) -> Cluster:
    return Cluster.objects.create(name="prod-us-1")


@pytest.fixture
def reader(client_with: ClientWith) -> ApiClient:
    return client_with("cluster:read")


@pytest.fixture
def api() -> Iterator[ReplayServer]:
    with ReplayServer() as server:
        yield server


@pytest.fixture(scope="module")
def many_workloads(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """20 clusters with 1,000 workloads each, to which each test of a module rolls back."""
    yield from rows_of_a_module(django_db_blocker, make_many_workloads, Cluster, Workload)


def make_many_workloads() -> None:
    """Make an eighth of them as the demo data has them, and seven copies under other names."""
    load_clusters(CLUSTERS)
    load_workloads(CLUSTERS * IN_A_CLUSTER // COPIES, CLUSTERS, lambda _done: None)
    multiply(
        Workload,
        COPIES,
        order="cluster_id, n",
        id=another("id"),
        name="name || '-' || n",
        labels="""jsonb_set(labels, '{app.kubernetes.io/instance}', to_jsonb(name || '-' || n))""",
    )
    counts = [name for name in vars(Cluster) if name.startswith("workloads_")]
    Cluster.objects.update(**{name: COPIES * F(name) for name in counts})


@pytest.fixture
def workload(cluster: Cluster) -> NewWorkload:
    def make(**fields: Any) -> Workload:
        usual: dict[str, Any] = {
            "cluster": cluster,
            "namespace": "shop",
            "name": "web",
            "kind": "Deployment",
            "uid": "0b8b2a52-0000-4000-8000-000000000001",
            "labels": {"app": "web"},
            "health_status": "HEALTHY",
            "replicas_desired": 2,
            "replicas_ready": 2,
            "replicas_available": 2,
            "cpu_requests_millicores": 200,
            "cpu_limits_millicores": 400,
            "cpu_used_millicores": 31,
            "memory_requests_bytes": 268435456,
            "memory_limits_bytes": 536870912,
            "memory_used_bytes": 190000000,
            "containers": [CONTAINER],
            "observed_at": LONG_AGO,
        }
        return Workload.objects.create(**{**usual, **fields})

    return make


@pytest.fixture
def agent(client_with: ClientWith, cluster: Cluster) -> Agent:
    client = client_with("cluster:report", kind=TokenKind.SERVICE, bound_cluster_id=cluster.pk)
    return Agent(client, cluster.pk)
