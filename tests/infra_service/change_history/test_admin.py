"""Changes in the admin: the overview, the pages of states and workloads, and filters."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys.models import User
from infra_service.change_history import latest
from infra_service.change_history.models import Change
from infra_service.change_history.recording import ids_at
from infra_service.console.overview import changes as section
from states.models import Environment
from tests.infra_service.change_history.test_recording import push, thing
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.support.people import person, text_of
from tests.workloads.records import apply, place, record, report, stored
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster

LIST = "/admin/change_history/change/"
HOUR = dt.timedelta(hours=1)


def moved(change: Change, ago: dt.timedelta) -> None:
    """Set the age of a change."""
    moment = timezone.now() - ago
    (key,) = ids_at(moment, 1)
    Change.objects.filter(pk=change.pk).update(id=key, occurred_at=moment)


def addresses(client: Any, url: str) -> list[str]:
    return [change.address for change in client.get(url).context["cl"].result_list]


@pytest.fixture
def changed(backend: Backend, cluster: Cluster) -> str:
    """An added and a removed resource, an unhealthy workload; the id of the workload."""
    push(backend, 1, thing("a"))
    push(backend, 2, thing("b"))
    index()
    apply(cluster, report(0, record()))
    down = record(health_status=HealthStatus.ERROR, status_reason="CrashLoopBackOff")
    apply(cluster, report(60, down))
    moved(Change.objects.get(kind="WORKLOAD"), HOUR)
    return str(stored(cluster)[place()].pk)


def test_a_moved_resource_is_found_by_its_former_address(backend: Backend) -> None:
    push(backend, 1, thing("old", "i-1"))
    push(backend, 2, thing("new", "i-1"))
    index()

    assert addresses(person("viewer"), f"{LIST}?q=thing.old") == ["thing.new", "thing.old"]


def test_overview_counts_the_changes_of_a_day(backend: Backend, changed: str) -> None:
    Environment.objects.filter(pk=backend.environment_id).update(name="Production", slug="prod")
    moved(Change.objects.get(version_number=1), 23 * HOUR)
    client = person("viewer")

    found = client.get("/admin/").context["overview"]["changes"]

    assert str(found["number"]) == "4"
    environment, workloads = found["rows"]
    assert (environment["name"], str(environment["number"])) == ("Production", "3")
    assert [(word, number) for _, word, number in environment["parts"]] == [
        ("Added", 2), ("Removed", 1),
    ]  # fmt: skip
    assert (workloads["name"], str(workloads["number"])) == ("Workloads", "1")
    assert sorted(addresses(client, environment["url"])) == ["thing.a", "thing.a", "thing.b"]
    assert len(addresses(client, workloads["url"])) == 1
    text = text_of(client.get("/admin/"))
    assert "Changes in 24 hours 4 Production" in text
    assert "2 added, 1 removed 3" in text
    Change.objects.all().delete()
    assert "No changes in the last 24 hours." in text_of(client.get("/admin/"))


@pytest.mark.usefixtures("changed")
def test_overview_is_bounded(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    moved(Change.objects.get(version_number=1), 25 * HOUR)
    monkeypatch.setattr(section, "_SHOWN", 1)
    with CaptureQueriesContext(connection) as queries:
        found = section.latest_changes()

    assert [len(found["rows"]), found["others"], len(queries)] == [1, 1, 2]
    assert str(found["number"]) == "3"
    monkeypatch.setattr(section, "EXACT", 2)
    assert str(section.latest_changes()["number"]) == "2+"


def test_pages_of_a_state_and_a_workload_show_their_changes(
    backend: Backend, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = person("viewer")
    state = f"/admin/states/state/{backend.record.pk}/change/"
    workload = f"/admin/workloads/workload/{changed}/change/"
    for page, expected, other in (
        (state, "Removed thing.a", "CrashLoopBackOff"),
        (workload, "Healthy → Error: CrashLoopBackOff", "thing."),
    ):
        answer = client.get(page)
        text = text_of(answer).partition("Latest changes")[2].partition("All changes")[0]
        assert expected in text
        assert other not in text
        found = answer.context["latest"]
        shown = [row["change"].address for row in found["rows"]]
        assert addresses(client, found["url"]) == shown
    (change,) = Change.objects.filter(kind="WORKLOAD")
    assert "Before: Healthy After: Error" in text_of(client.get(f"{LIST}{change.pk}/change/"))
    monkeypatch.setattr(latest, "SHOWN", 2)
    assert len(client.get(state).context["latest"]["rows"]) == 2
    Change.objects.all().delete()
    assert "No changes are stored." in text_of(client.get(state))


@pytest.mark.usefixtures("cluster")
def test_sections_need_the_permission(backend: Backend, changed: str) -> None:
    client = person()
    user = User.objects.get(username="nobody-person")
    user.user_permissions.add(
        *Permission.objects.filter(codename__in=("view_state", "view_workload"))
    )

    assert "changes" not in client.get("/admin/").context["overview"]
    for page in (f"states/state/{backend.record.pk}", f"workloads/workload/{changed}"):
        assert "Latest changes" not in text_of(client.get(f"/admin/{page}/change/"))


def test_sections_cost_a_query_each(backend: Backend, changed: str) -> None:
    client = person("viewer")
    for page in (f"states/state/{backend.record.pk}", f"workloads/workload/{changed}"):
        for _ in range(2):
            with CaptureQueriesContext(connection) as queries:
                client.get(f"/admin/{page}/change/")
        reads = [q for q in queries if "change_history_change" in q["sql"]]
        assert len(reads) == 1
        assert "LIMIT 5" in reads[0]["sql"]


def test_filters_by_environment_and_workload(backend: Backend, changed: str) -> None:
    Environment.objects.filter(pk=backend.environment_id).update(slug="prod")
    client = person("viewer")
    for query, number in {
        "environment=prod": 3,
        f"environment={backend.environment_id}": 3,
        "environment=other": 0,
        f"environment={changed}": 0,
        f"workload={changed}": 1,
        f"workload={backend.environment_id}": 0,
        "workload=x": 0,
    }.items():
        assert len(addresses(client, f"{LIST}?{query}")) == number, query
