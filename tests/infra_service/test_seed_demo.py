"""manage.py seed_demo."""

import datetime as dt
import io
import json
import uuid
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import Count, F, Model
from django.utils import timezone

from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, AuditArchive, AuditEvent, TrustPolicy, User
from infra_service.demo.seeded_random import SeededRandom
from infra_service.demo.stacks import PARTS, Stack
from infra_service.webhooks.models import Delivery
from states.actions import catalogue
from states.lock_holders import STALE_AFTER
from states.lockinfo import LockInfo
from states.models import (
    Application,
    Component,
    Environment,
    State,
    StateDependency,
    StateVersion,
    VersionFacts,
)
from states.resources.indexing import index_due
from states.targets import StateTarget
from tests.conftest import ClientWith
from tests.support.terminal import Terminal
from tools.bench.bulk_states import load_states
from workloads.availability import availability, known_spans
from workloads.cluster_health import ClusterHealth, cluster_health
from workloads.models import Cluster, ReportGap, Transition, Workload

#: As many as have every situation among them.
WITH_A_PAST = 24
DAY = dt.timedelta(days=1)


pytestmark = pytest.mark.usefixtures("db")


def seed(**options: Any) -> dict[str, Any]:
    out = io.StringIO()
    call_command("seed_demo", **options, json=True, stdout=out)
    summary: dict[str, Any] = json.loads(out.getvalue())
    assert summary.pop("seconds") >= 0
    return summary


def counts() -> dict[type[Model], int]:
    models = (
        AccessToken, ApiKey, AuditEvent, Application, Cluster, Component, Environment, State,
        StateVersion, User, Workload,
    )  # fmt: skip
    return {model: model._default_manager.count() for model in models}


@pytest.mark.slow
def test_requested_numbers_are_created() -> None:
    summary = seed(states=10, clusters=3, workloads=70)

    assert summary == {
        "applications": Application.objects.count(),
        "components": 3,
        "environments": 8,
        "states": 10,
        "versions": StateVersion.objects.count(),
        "locks": 2,
        "users": 4,
        "access_tokens": 5,
        "api_keys": 4,
        "issuers": 2,
        "trust_policies": 3,
        "webhooks": 2,
        "clusters": 3,
        "workloads": 70,
        "reported_clusters": 3,
    }
    assert State.objects.count() == 10
    assert StateVersion.objects.count() > 10
    assert Component.objects.count() == 3
    assert set(Cluster.objects.annotate(n=Count("workload")).values_list("n", flat=True)) == {
        23, 24,
    }  # fmt: skip


@pytest.mark.slow
def test_second_run_adds_only_missing_rows() -> None:
    seed(states=6, clusters=1, workloads=10)
    State.objects.filter(serial=1).update(serial=2)
    before = counts()

    again = seed(states=6, clusters=1, workloads=10)

    assert again.pop("reported_clusters") == 1
    assert set(again.values()) == {0}
    assert counts() == before
    added = seed(states=9, clusters=2, workloads=25)
    assert (added["states"], added["clusters"], added["workloads"]) == (3, 1, 15)
    assert (State.objects.count(), Workload.objects.count()) == (9, 25)


def test_other_workloads_of_a_demo_cluster_stay() -> None:
    seed(states=0, clusters=1, workloads=5)
    other = Workload.objects.all()[0]
    Workload.objects.filter(pk=other.pk).update(name="web")

    assert seed(states=0, clusters=1, workloads=5)["workloads"] == 1
    assert Workload.objects.count() == 6


def test_second_run_reports_nothing_added() -> None:
    seed(states=1, clusters=0, workloads=0)
    out = io.StringIO()
    call_command("seed_demo", states=1, clusters=0, workloads=0, stdout=out)

    assert out.getvalue().startswith("added nothing in ")


def test_zero_of_everything_is_accepted() -> None:
    assert set(seed(states=0, clusters=0, workloads=0).values()) == {0}
    assert set(counts().values()) == {0}


@pytest.mark.slow
def test_demo_data_has_a_history(client_with: ClientWith) -> None:
    """Each version, lock and expiry has its event, at the time stored in the row."""
    now = timezone.now()
    seed(states=WITH_A_PAST, clusters=0, workloads=0)

    assert State.objects.count() == WITH_A_PAST
    for state in State.objects.all():
        versions = list(StateVersion.objects.filter(state=state).order_by("number"))
        events = list(AuditEvent.objects.filter(resource_id=str(state.pk)).order_by("id"))
        actions_seen = Counter(event.action for event in events)
        written = [e for e in events if e.action in {"state.push", "state.restore"}]
        assert len(versions) > 1
        assert [(v.created_at, v.md5, v.created_by, v.token_id) for v in versions] == [
            (e.occurred_at, e.details["md5"], e.actor_name, e.token_id) for e in written
        ]
        assert [e.occurred_at for e in events] == sorted({e.occurred_at for e in events})
        assert (events[0].action, events[0].occurred_at) == ("state.create", state.created_at)
        assert events[-1].occurred_at < now
        assert state.lock_acquired_at in (None, events[-1].occurred_at)
        assert state.deleted_at in (None, events[-1].occurred_at)
        assert actions_seen["state.lock"] == (
            actions_seen["state.unlock"]
            + actions_seen["state.force_unlock"]
            + (state.lock_id is not None)
        )
    assert {"state.restore", "state.force_unlock", "state.delete"} <= set(
        AuditEvent.objects.values_list("action", flat=True)
    )
    by_pipelines = StateVersion.objects.filter(created_by="demo-ci").values_list("pk", flat=True)
    assert set(VersionFacts.objects.values_list("pk", flat=True)) == set(by_pipelines)
    list(index_due())
    read = StateDependency.objects.values_list("target_component_id", flat=True)
    assert set(read) == set(
        Component.objects.filter(name__startswith="network").values_list("pk", flat=True)
    )
    locks = [now - moment for moment in held()]
    assert (min(locks) < STALE_AFTER < max(locks), len(locks)) == (True, 2)
    reader = client_with("state:read")
    restored = AuditEvent.objects.get(action="state.restore")
    answer = reader.get(f"/api/v1/states/{restored.resource_id}/versions/2/diff")
    assert answer.status_code == 200
    assert answer.json()["diff"]["resources"]


@pytest.mark.parametrize("part", PARTS)
def test_each_apply_changes_a_resource(part: str) -> None:
    stack = Stack(part, "production", SeededRandom(9, 1), {})
    documents = [json.loads(stack.document())["resources"]]
    for _ in range(100):
        stack.change()
        documents.append(json.loads(stack.document())["resources"])

    assert all(a != b for a, b in pairwise(documents))


def held() -> list[dt.datetime]:
    """Return the times of the current locks, after checking their owners."""
    locked = State.objects.exclude(lock_id=None)
    for state in locked:
        taken = LockInfo(**state.lock_info).described(state.lock_taken_by)["taken_by"]
        assert AccessToken.objects.get(pk=taken["token_id"]).created_by.username == taken["name"]
    return [state.lock_acquired_at for state in locked if state.lock_acquired_at]


def test_ids_are_of_the_moment() -> None:
    """Lists, and the pushes of each day, are read by ids."""
    began = timezone.now()
    seed(states=2, clusters=0, workloads=0)

    for model, time in ((AuditEvent, "occurred_at"), (StateVersion, "created_at")):
        # Rows of the command itself have two readings of the clock, in the ID and the time.
        past = model._default_manager.filter(**{f"{time}__lt": began})
        assert past.exists()
        for key, moment in past.values_list("id", time):
            made = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=key.int >> 80)
            assert dt.timedelta(0) <= moment - made < dt.timedelta(milliseconds=1)
    keys = ApiKey.objects.order_by("id")
    assert list(keys) == list(keys.order_by("created_at"))
    assert keys[0].created_at < timezone.now() - 300 * DAY


def test_demo_has_expiring_and_unused_credentials() -> None:
    seed(states=1, clusters=0, workloads=0)

    for model in (ApiKey, AccessToken):
        assert model.objects.expiring().count() == 3
        assert model.objects.filter(last_used_at=None).exists()
        assert model.objects.exclude(last_used_at=None).exists()
    assert not User.objects.get(username="demo-ada").has_usable_password()


def test_slugs_equal_names_also_beside_real_data() -> None:
    Environment.objects.create(name="Production of the company", slug="production")
    seed(states=1, clusters=0, workloads=0)

    demo = Environment.objects.exclude(name__startswith="Production")
    assert {*demo.values_list("slug")} == {*demo.values_list("name")}
    assert demo.filter(name="demo-production").exists()
    assert not demo.filter(name__startswith="demo-").exclude(name="demo-production").exists()
    assert not Application.objects.exclude(slug=F("name")).exists()


def test_demo_has_webhooks_and_trust_policies() -> None:
    seed(states=1, clusters=0, workloads=0)

    assert set(Delivery.objects.values_list("endpoint__disabled_reason", "status")) == {
        ("", "WAITING"), ("OPERATOR", "FAILED"),
    }  # fmt: skip
    assert {policy.issuer.name for policy in TrustPolicy.objects.select_related("issuer")} == {
        "demo GitHub", "demo GitLab",
    }  # fmt: skip


def test_history_beside_an_archive_is_refused() -> None:
    key = uuid.uuid4()
    AuditArchive.objects.create(number=1, digest="0" * 64, events=1, first_id=key, last_id=key)

    with pytest.raises(CommandError, match="have been archived"):
        seed(states=1, clusters=0, workloads=0)
    assert seed(states=0, clusters=1, workloads=1)["workloads"] == 1


@pytest.mark.slow
def test_clusters_are_heard_of() -> None:
    seed(states=0, clusters=4, workloads=400)
    first = {cluster.name: cluster for cluster in Cluster.objects.timed()}

    def healths(later: dt.timedelta) -> list[ClusterHealth]:
        return [
            cluster_health(c, c.read_at + later) for c in Cluster.objects.timed().order_by("id")
        ]

    names = ["ERROR", "DEGRADED", "HEALTHY", "UNREACHABLE"]
    assert healths(DAY) == [ClusterHealth(name) for name in names]
    assert seed(states=0, clusters=4, workloads=400)["reported_clusters"] == 3
    for cluster in Cluster.objects.all():
        before = first[cluster.name]
        is_silent = cluster.last_report_at == before.last_report_at
        assert is_silent == (cluster.name == "edge-us-west-2-003")
        assert cluster.uid == before.uid
    assert Cluster.objects.exclude(collection_error_reason="").count() == 1


@pytest.mark.slow
def test_workloads_have_a_past() -> None:
    """Each transition continues from the previous transition, up to the current status."""
    now = timezone.now()
    seed(states=0, clusters=3, workloads=300)
    (gap,) = ReportGap.objects.all()
    pasts: dict[uuid.UUID, list[Transition]] = {}
    for row in Transition.objects.order_by("number"):
        assert row.at < now
        assert not (row.cluster_id == gap.cluster_id and gap.began_at < row.at < gap.ended_at)
        pasts.setdefault(row.workload_id, []).append(row)

    for workload in Workload.objects.all():
        past = pasts.pop(workload.pk)
        assert [row.number for row in past] == list(range(1, len(past) + 1))
        assert [(row.since, row.from_health_status) for row in past] == [
            (None, None), *((row.at, row.to_health_status) for row in past[:-1]),
        ]  # fmt: skip
        last = past[-1]
        assert (last.at, last.to_health_status, last.status_reason) == (
            workload.health_since, workload.health_status, workload.status_reason,
        )  # fmt: skip
    assert not pasts
    cluster = Cluster.objects.timed().order_by("id")[0]
    week = cluster.read_at - 7 * DAY
    shares = {
        availability(known_spans(cluster, key, week, now), week, now).healthy_ratio
        for key in Workload.objects.filter(cluster=cluster).values_list("pk", flat=True)
    }
    assert 1 in shares
    assert len(shares) > 10


@pytest.mark.slow
def test_it_is_known_which_images_run(client_with: ClientWith) -> None:
    seed(states=0, clusters=2, workloads=200)

    images: list[Any] = client_with("cluster:read").items("/api/v1/images", "images")
    digests: dict[str, set[str]] = {}
    for image in images:
        digests.setdefault(f"{image['repository']}:{image['tag']}", set()).add(image["digest"])
    moved = [tag for tag, of_tag in digests.items() if len(of_tag - {""}) == 2]
    assert moved
    assert max(image["workloads"] for image in images) > 20
    assert {image["clusters"] for image in images} == {1, 2}


def test_the_states_hold_together(client_with: ClientWith) -> None:
    load_states(600, lambda _done: None)

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
    assert StateTarget.of(state).find(Actor(name="test")) == state


@pytest.mark.slow
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
def test_negative_numbers_are_rejected(options: dict[str, int]) -> None:
    with pytest.raises(CommandError, match="must not be negative"):
        call_command("seed_demo", **options)


def test_more_states_than_have_a_history_are_refused() -> None:
    with pytest.raises(CommandError, match="at most 120"):
        call_command("seed_demo", states=121)


@pytest.mark.slow
def test_terminal_shows_progress(each_count_is_drawn: None) -> None:
    out, terminal = io.StringIO(), Terminal()
    call_command("seed_demo", states=8, clusters=1, workloads=4, stdout=out, stderr=terminal)

    assert out.getvalue().startswith(
        "added 1 applications, 2 components, 8 environments, 8 states, "
    )
    assert "\n1 demo clusters reported" in out.getvalue()
    assert [text for text in terminal.drawn if "100%" in text and " 8 of 8, " in text]
    assert terminal.drawn[-1].startswith("workloads 100% |")
    assert " 4 of 4, " in terminal.drawn[-1]


def test_object_that_another_run_created_meanwhile_is_an_error() -> None:
    is_created = False

    def create_first(execute: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        nonlocal is_created
        if not is_created and sql.startswith("INSERT") and "staging" in (params or ()):
            is_created = True
            fields = {"name": "staging", "slug": "staging"}
            catalogue.create(model=Environment, fields=fields, actor=Actor(name="another run"))
        return execute(sql, params, many, context)

    with (
        connection.execute_wrapper(create_first),
        pytest.raises(CommandError, match="run the command again"),
    ):
        seed(states=4, clusters=0, workloads=0)

    assert is_created
