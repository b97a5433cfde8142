"""The admin's first page: what it tells, to whom, and with how many queries."""

import datetime as dt
import re
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys import actions
from apikeys.audit import Actor, record
from apikeys.models import User
from apikeys.scopes import Scope
from apikeys.tokens import TokenKind
from infra_service import overview
from infra_service.demo.states import load_states
from infra_service.demo.workloads import load_clusters
from states.models import State, StateVersion
from tests.people import person, text_of
from workloads.models import Cluster

ACTOR = Actor(name="test")
DAY = dt.timedelta(days=1)
MINUTE = dt.timedelta(minutes=1)
NOW = timezone.now


def nothing(_done: int) -> None:
    """Report no progress."""


def lock(state: State, since: dt.timedelta, who: str = "ada@laptop") -> None:
    State.objects.filter(pk=state.pk).update(
        lock_id=uuid.uuid4(), lock_info={"Who": who}, lock_acquired_at=NOW() - since
    )


def pushed(ago: dt.timedelta) -> None:
    """Make one more version that was pushed so long ago."""
    moment = NOW() - ago
    key = uuid.UUID(int=int(moment.timestamp() * 1000) << 80 | 0x7 << 76 | uuid.uuid4().int >> 64)
    version = StateVersion.objects.exclude(pk__in=State.objects.values("current_version")).first()
    version = version or StateVersion.objects.get(pk=State.objects.all()[0].current_version_id)
    number = StateVersion.objects.order_by("-number")[0].number + 1
    document = bytes(StateVersion.objects.values_list("document", flat=True)[0])
    StateVersion.objects.create(
        id=key, state_id=version.state_id, number=number, serial=1, md5="0" * 32, size_bytes=1,
        document=document, encryption_key="x", created_by="test", created_at=moment,
    )  # fmt: skip


def sections(*groups: str) -> dict[str, Any]:
    context: dict[str, Any] = person(*groups).get("/admin/").context["overview"]
    return context


def test_nothing_is_there(db: None) -> None:
    page = person("viewer").get("/admin/").content.decode()

    assert "No state is locked." in page
    assert "No cluster is registered." in page
    assert "No key and no issued token." in page
    assert "group.change" in page  # the groups were made


def test_who_may_see_nothing_sees_nothing(db: None) -> None:
    answer = person().get("/admin/")

    assert answer.status_code == 200
    assert answer.context["overview"] == {}


def test_locks(db: None) -> None:
    load_states(40, nothing)
    State.objects.update(lock_id=None, lock_info=None, lock_acquired_at=None)
    states = list(State.objects.order_by("id"))
    ages = [dt.timedelta(minutes=5), dt.timedelta(hours=2), dt.timedelta(hours=23), 3 * DAY]
    for state, age in zip(states, ages, strict=False):
        lock(state, age)
    lock(states[9], 9 * DAY)
    State.objects.filter(pk=states[9].pk).update(deleted_at=NOW())

    shown = sections("viewer")["states"]

    assert (shown["count"], shown["is_exact"], shown["locked"]) == (40, True, 4)
    assert [number for *_, number in shown["locked_parts"]] == [1, 2, 1]
    assert [state.pk for state in shown["oldest"]] == [s.pk for s in reversed(states[:4])]


def test_pushes_per_day(db: None) -> None:
    load_states(1, nothing)  # pushed in 2025
    for days in (0, 0, 1, 13, 14):
        pushed(days * DAY)

    days = overview.pushes_per_day(NOW())

    assert len(days) == 14
    assert days[-1] == (f"{NOW():%d %b}", 2)
    assert [number for _, number in days] == [1, *[0] * 11, 1, 2]


def test_a_day_is_counted_up_to_a_bound(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    load_states(1, nothing)
    for _ in range(4):
        pushed(dt.timedelta(0))
    monkeypatch.setattr(overview, "EXACT", 3)

    assert overview.pushes_per_day(NOW())[-1][1] == 3


def test_many_are_estimated(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    load_states(30, nothing)
    monkeypatch.setattr(overview, "EXACT", 10)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE states_state")

    count, is_exact = overview.about_how_many(State)

    assert count == 30
    assert is_exact == (connection.vendor != "postgresql")


def test_clusters_by_health(db: None) -> None:
    load_clusters(5)
    Cluster.objects.update(
        workloads_error=0, workloads_degraded=0, last_report_at=NOW(), last_received_at=NOW()
    )
    a, b, c, d, e = Cluster.objects.order_by("id")
    Cluster.objects.filter(pk=a.pk).update(workloads_error=1)
    Cluster.objects.filter(pk=b.pk).update(workloads_degraded=1)
    Cluster.objects.filter(pk=c.pk).update(last_received_at=NOW() - DAY)
    Cluster.objects.filter(pk=d.pk).update(
        last_report_at=None, last_received_at=None, last_snapshot_at=None
    )

    shown = sections("viewer")["clusters"]

    assert [(label, number) for _, label, number in shown["parts"]] == [
        ("Error", 1), ("Degraded", 1), ("Unreachable", 1), ("Pending", 1), ("Healthy", 1),
    ]  # fmt: skip
    assert [row["cluster"].pk for row in shown["unwell"]] == [a.pk, b.pk, c.pk, d.pk]
    assert e.name not in [row["cluster"].name for row in shown["unwell"]]


def test_a_healthy_cluster_that_cannot_be_read(db: None) -> None:
    load_clusters(1)
    now = NOW()
    Cluster.objects.update(
        last_report_at=now - MINUTE, last_received_at=now - MINUTE, collection_error_at=now,
        collection_failing_since=now, collection_error_reason="FORBIDDEN",
    )  # fmt: skip

    assert "Healthy Failing: forbidden 1 minute ago" in text_of(person("viewer").get("/admin/"))


def test_what_expires(db: None, operator: User) -> None:
    for name, days in {"third": 29, "first": 1, "second": 2, "later": 31}.items():
        end = NOW() + days * DAY
        scopes = [Scope.STATE_READ]
        actions.create_api_key(
            user_id=operator.pk, name=name, scopes=scopes, expires_at=end, actor=ACTOR
        )
        actions.issue_access_token(
            kind=TokenKind.SERVICE, user=operator, name=name, scopes=scopes, expires_at=end,
            actor=ACTOR,
        )  # fmt: skip

    shown = sections("viewer")

    for kind in ("keys", "tokens"):
        assert [credential.name for credential in shown[kind]] == ["first", "second", "third"]


def test_the_latest_events(db: None) -> None:
    member = person("viewer")
    for n in range(12):
        record(ACTOR, "test.done", n)

    events = member.get("/admin/").context["overview"]["events"]

    assert [event.resource_id for event in events] == [str(n) for n in range(11, 1, -1)]


def test_queries(db: None, operator: User) -> None:
    client = person("viewer")
    counted = []
    for total in (20, 60):
        load_states(total, nothing)
        load_clusters(total // 4)
        for state in State.objects.all()[: total // 4]:
            lock(state, DAY)
        record(ACTOR, "test.done", total)
        with CaptureQueriesContext(connection) as captured:
            assert client.get("/admin/").status_code == 200
        counted.append(len(captured))
    assert counted[0] == counted[1] <= 27

    for query in captured.captured_queries:
        sql = query["sql"]
        # A count has a bound within; every other list has one as well.
        if "COUNT(*)" in sql:
            assert re.search(r"LIMIT \d+\) \"?subquery", sql), sql
        elif " FROM " in sql and "django_session" not in sql and "permission" not in sql:
            assert " LIMIT " in sql, sql


def test_charts_speak(db: None) -> None:
    load_states(5, nothing)
    lock(State.objects.all()[0], DAY * 2)

    page = person("viewer").get("/admin/").content.decode()

    for title in ("Pushes of the last two weeks, per day", "Locked states, by how long"):
        assert re.search(rf'<title id="\w+-title">{title}', page)
    assert '<desc id="locks-desc">up to an hour: 0, up to a day: 0, longer: 1</desc>' in page
    for heading in ("States", "Clusters", "Expire within 30 days", "Latest audit events"):
        assert re.search(rf'<h2 id="\w+-heading">{heading}</h2>', page)
    assert "<script>" not in page
    assert " style=" not in page
    assert " onclick=" not in page
