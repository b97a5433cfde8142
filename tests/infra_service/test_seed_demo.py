"""manage.py seed_demo."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Count, F

from infra_service.demo import loading
from states import actions
from states.models import Application, Component, Environment, State, StateVersion
from tests.conftest import ClientWith
from tests.terminal import Terminal
from workloads.models import Cluster, Workload


@pytest.fixture(autouse=True)
def in_a_transaction(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """VACUUM runs in none, so the tests, which do, only see which tables it is asked for."""
    monkeypatch.setattr(loading, "_STATISTICS", "ANALYZE")


def seed(**options: Any) -> dict[str, Any]:
    out = io.StringIO()
    call_command("seed_demo", **options, json=True, stdout=out)
    told: dict[str, Any] = json.loads(out.getvalue())
    assert told.pop("seconds") >= 0
    return told


def test_so_many_of_each() -> None:
    told = seed(states=250, clusters=3, workloads=70)

    assert told == {
        "applications": Application.objects.count(),
        "components": 63,
        "environments": 8,
        "states": 250,
        "clusters": 3,
        "workloads": 70,
    }
    assert State.objects.count() == StateVersion.objects.count() == 250
    assert Component.objects.count() == 63
    assert set(Cluster.objects.annotate(n=Count("workload")).values_list("n", flat=True)) == {
        23, 24,
    }  # fmt: skip


def test_again_adds_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "BATCH", 7)
    seed(states=20, clusters=1, workloads=10)
    State.objects.filter(serial=1).update(serial=2)

    assert set(seed(states=20, clusters=1, workloads=10).values()) == {0}
    added = seed(states=50, clusters=2, workloads=25)
    assert (added["states"], added["clusters"], added["workloads"]) == (30, 1, 15)
    assert (State.objects.count(), Workload.objects.count()) == (50, 25)


def test_nothing() -> None:
    assert set(seed(states=0, clusters=0, workloads=0).values()) == {0}


def test_the_states_hold_together(client_with: ClientWith) -> None:
    seed(states=600, clusters=0, workloads=0)

    assert not State.objects.exclude(application_id=F("component__application_id")).exists()
    assert not State.objects.exclude(current_version__state=F("pk")).exists()
    assert not State.objects.exclude(md5=F("current_version__md5")).exists()
    assert State.objects.exclude(lock_id=None).exists()
    assert Environment.objects.get(name="production").name == "production"
    state = State.objects.order_by("id")[77]
    reader = client_with("state:read")
    answer = reader.get(f"/api/v1/state/{state.component_id}/env/{state.environment_id}")
    assert answer.status_code == 200
    document = answer.json()
    assert (document["serial"], document["lineage"]) == (state.serial, state.lineage)
    assert len(answer.content) == state.size_bytes
    assert actions.find(state.component_id, state.environment_id) == state


def test_the_clusters_count_their_workloads() -> None:
    seed(states=0, clusters=2, workloads=400)

    for cluster in Cluster.objects.all():
        counted = Workload.objects.filter(cluster=cluster).values("health_status")
        by_status = dict(counted.annotate(n=Count("pk")).values_list("health_status", "n"))
        assert cluster.workloads_healthy == by_status.get("HEALTHY", 0)
        assert cluster.workloads_degraded == by_status.get("DEGRADED", 0)
        assert cluster.workloads_error == by_status.get("ERROR", 0)
        assert cluster.workloads_unspecified == by_status.get(
            "WORKLOAD_HEALTH_STATUS_UNSPECIFIED", 0
        )
        assert cluster.last_snapshot_at is not None


@pytest.mark.parametrize(
    "options",
    [{"states": -1}, {"workloads": 5, "clusters": 0}, {"clusters": -1, "workloads": 0}],
)
def test_what_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(CommandError, match="not negative"):
        call_command("seed_demo", **options)


def test_progress_on_a_terminal(each_count_is_drawn: None) -> None:
    out, terminal = io.StringIO(), Terminal()
    call_command("seed_demo", states=8, clusters=1, workloads=4, stdout=out, stderr=terminal)

    assert out.getvalue().startswith(
        "added 1 applications, 2 components, 8 environments, 8 states, 1 clusters, 4 workloads in "
    )
    assert [text for text in terminal.drawn if "100%" in text and " 8 of 8, " in text]
    assert terminal.drawn[-1].startswith("workloads 100% |")
    assert " 4 of 4, " in terminal.drawn[-1]
