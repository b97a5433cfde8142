"""The start page of the admin: its content, permissions, and number of queries."""

import datetime as dt
import re
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys import actions
from apikeys.actors import Actor
from apikeys.audit import authorize_and_record
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from apikeys.scopes import Scope
from apikeys.tokens import TokenKind
from infra_service.console.overview import counting, credentials, events, states
from infra_service.console.overview.attention import Finding
from infra_service.demo.workloads import load_clusters, load_workloads
from infra_service.models import HousekeepingPart
from states.lockinfo import LockInfo
from states.models import State, StateVersion
from tests.support.people import person, text_of
from tools.bench.bulk_states import load_states
from workloads.models import Cluster, Workload

ACTOR = Actor(name="test")
DAY = dt.timedelta(days=1)
HOUR = dt.timedelta(hours=1)
MINUTE = dt.timedelta(minutes=1)
NOW = timezone.now


def nothing(_done: int) -> None:
    """Report no progress."""


def lock(state: State, since: dt.timedelta, token: AccessToken | None = None) -> None:
    key = str(uuid.uuid4())
    info = LockInfo(key, Operation="OperationTypeApply", Who="ada@laptop").as_dict()
    taken = token and {"lock_id": key, "name": "ci", "token_id": token.pk}
    State.objects.filter(pk=state.pk).update(
        lock_id=key, lock_info=info, lock_acquired_at=NOW() - since, lock_taken_by=taken
    )


def token(owner: User, name: str, expires_at: dt.datetime | None = None) -> AccessToken:
    return actions.issue_access_token(
        kind=TokenKind.SERVICE, user=owner, name=name, scopes=[Scope.STATE_READ],
        expires_at=expires_at, actor=ACTOR,
    )[0]  # fmt: skip


def key(owner: User, name: str, expires_at: dt.datetime | None = None) -> ApiKey:
    return actions.create_api_key(
        user_id=owner.pk, name=name, scopes=[Scope.STATE_READ], expires_at=expires_at, actor=ACTOR
    )[0]


def pushed(moment: dt.datetime) -> None:
    """Add a version pushed at this time."""
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


def findings(*groups: str) -> dict[str, Finding]:
    found: list[Finding] = sections(*groups)["findings"]
    return {finding.name: finding for finding in found}


def test_empty_installation_has_no_findings(db: None) -> None:
    answer = person("viewer").get("/admin/")

    assert "attention" not in answer.context["overview"]
    text = text_of(answer)
    assert "Needs attention All checks passed. 0 Locked for over an hour" in text
    assert "No cluster is registered." in text
    assert "group.change viewer command setup_groups" not in text  # another actor
    assert "group.change viewer test just now" in text


def test_user_without_permissions_gets_an_empty_overview(db: None) -> None:
    answer = person().get("/admin/")

    assert "Your groups do not permit any section of the overview." in text_of(answer)
    assert answer.context["overview"] == {}


@pytest.mark.parametrize(
    ("permission", "names"),
    [
        ("view_state", ["locks", "freezes", "leaked", "unindexed"]),
        ("view_cluster", ["silent"]),
        ("view_workload", []),
        ("view_apikey", ["ending", "unused"]),
        ("view_accesstoken", ["ending", "unused"]),
        ("view_auditevent", ["logins"]),
        ("view_housekeepingpart", ["jobs"]),
        ("view_delivery", ["undelivered"]),
    ],
)
def test_finding_needs_the_permission_for_its_pages(
    permission: str, names: list[str], db: None
) -> None:
    client = person()
    user = User.objects.get(username="nobody-person")
    user.user_permissions.add(Permission.objects.get(codename=permission))

    found = client.get("/admin/").context["overview"].get("findings", [])

    assert [finding.name for finding in found] == names


def test_tokens_are_not_counted_without_permission(db: None, operator: User) -> None:
    for name in ("one", "two"):
        key(operator, name, NOW() + DAY)
        token(operator, name, NOW() + DAY)
    client = person()
    user = User.objects.get(username="nobody-person")
    user.user_permissions.add(Permission.objects.get(codename="view_apikey"))

    (ending,) = client.get("/admin/").context["overview"]["attention"]

    assert str(ending.number) == "2"
    assert [text for text, _ in ending.links] == ["2 API keys"]
    assert {row["kind"] for row in ending.rows} == {"API key"}


def test_locks_are_counted(db: None, operator: User) -> None:
    load_states(40, nothing)
    State.objects.update(lock_id=None, lock_info=None, lock_acquired_at=None)
    found = list(State.objects.order_by("id"))
    ages = [5 * MINUTE, 2 * HOUR, 23 * HOUR, 3 * DAY]
    pipeline = token(operator, "deploy of billing")
    for state, age in zip(found, ages, strict=False):
        lock(state, age, pipeline if age == 3 * DAY else None)
    lock(found[9], 9 * DAY)
    State.objects.filter(pk=found[9].pk).update(deleted_at=NOW())

    viewer, client = person("viewer"), person("operator")
    locks = findings("viewer")["locks"]

    assert str(locks.number) == "3"
    assert [row["state"].pk for row in locks.rows] == [s.pk for s in reversed(found[1:4])]
    oldest = f"{found[3].component.name} in {found[3].environment.name}"
    row = f"{oldest} apply by ada@laptop, 3 days ago ; deploy of billing of ci"
    assert row in text_of(viewer.get("/admin/"))
    ((_, url),) = locks.links
    assert client.get(url).context["cl"].result_count == 3
    # Only the state's page releases the lock: its button cannot be that of another row.
    page, state_page = (f"/admin/{path}" for path in ("", f"states/state/{found[3].pk}/change/"))
    assert "Force-unlock" not in text_of(client.get(page))
    assert state_page in client.get(page).content.decode()
    assert text_of(client.get(state_page)).count("Force-unlock") == 1


def test_token_name_of_a_lock_is_hidden_without_permission(db: None, operator: User) -> None:
    load_states(4, nothing)
    lock(State.objects.all()[0], DAY, token(operator, "deploy of billing"))
    client = person()
    user = User.objects.get(username="nobody-person")
    user.user_permissions.add(Permission.objects.get(codename="view_state"))

    text = text_of(client.get("/admin/"))

    assert "apply by ada@laptop, 1 day ago; ci" in text.replace(" ;", ";")
    assert "deploy of billing" not in text


def test_more_locks_than_are_looked_at(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    load_states(4, nothing)
    for state in State.objects.all():
        lock(state, DAY)
    monkeypatch.setattr(states, "MAX_LOCKS", 3)

    shown = sections("viewer")

    assert str(shown["states"]["locked"]) == "3+"
    assert str(shown["attention"][0].number) == "3+"


def test_a_lock_of_the_release_before(db: None) -> None:
    """The owner is unknown, and data of an earlier lock is not shown for this lock."""
    load_states(4, nothing)
    state = State.objects.all()[0]
    lock(state, DAY)
    State.objects.filter(pk=state.pk).update(
        lock_taken_by={"lock_id": "another", "name": "earlier", "token_id": "tok-1"}
    )

    assert "earlier" not in text_of(person("operator").get("/admin/"))


def test_pushes_are_counted_per_day(db: None) -> None:
    load_states(1, nothing)  # pushed in 2025
    now = NOW()
    for days in (0, 0, 1, 13, 14):
        pushed(now - days * DAY)

    days = states.pushes_per_day(now)

    assert len(days) == 14
    assert days[-1] == (f"{now:%d %b}", 2)
    assert [number for _, number in days] == [1, *[0] * 11, 1, 2]


def test_a_day_is_counted_up_to_a_bound(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    load_states(1, nothing)
    now = NOW()
    for _ in range(4):
        pushed(now)
    monkeypatch.setattr(states, "EXACT", 3)

    assert states.pushes_per_day(now)[-1][1] == 3


def test_deleted_states_are_not_counted(db: None) -> None:
    load_states(3, nothing)
    State.objects.filter(pk__in=State.objects.values_list("pk")[:1]).update(deleted_at=NOW())

    assert states.state_figures(states.held_locks())["count"] == 2


def test_many_are_estimated(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    load_states(40, nothing)
    State.objects.filter(pk__in=State.objects.values_list("pk")[:10]).update(deleted_at=NOW())
    monkeypatch.setattr(counting, "EXACT", 10)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE states_state")

    count, is_exact = counting.about_how_many(State.objects.visible(), "state_present")

    assert count == 30
    assert is_exact == (connection.vendor != "postgresql")


@pytest.fixture
def five(db: None) -> list[Cluster]:
    """Five recently heard clusters without a workload in error."""
    load_clusters(5)
    Cluster.objects.update(
        workloads_error=0, workloads_degraded=0, last_report_at=NOW(), last_received_at=NOW()
    )
    return list(Cluster.objects.order_by("id"))


def change(cluster: Cluster, **values: Any) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(**values)


def test_clusters_are_counted_by_health(five: list[Cluster]) -> None:
    a, b, c, d, _ = five
    change(a, workloads_error=1)
    change(b, workloads_degraded=1)
    change(c, last_received_at=NOW() - DAY)
    change(d, last_report_at=None, last_received_at=None, last_snapshot_at=None)

    shown = sections("viewer")["clusters"]

    assert [(label, number) for _, label, number in shown["parts"]] == [
        ("Error", 1), ("Unreachable", 1), ("Degraded", 1), ("Pending", 1), ("Healthy", 1),
    ]  # fmt: skip
    assert str(shown["count"]) == "5"


def test_silent_clusters_are_listed(five: list[Cluster]) -> None:
    a, b, c, d, _ = five
    change(a, last_received_at=NOW() - 2 * DAY)
    never = {"last_report_at": None, "last_received_at": None, "last_snapshot_at": None}
    change(b, **never, created_at=NOW() - 9 * DAY)
    change(c, **never, created_at=NOW())
    change(
        d, last_received_at=NOW() - MINUTE, collection_error_at=NOW(),
        collection_failing_since=NOW() - MINUTE, collection_error_reason="INVALID_ANSWER",
    )  # fmt: skip
    client = person("viewer")

    silent = findings("viewer")["silent"]

    assert [row["cluster"].pk for row in silent.rows] == [b.pk, a.pk, d.pk]
    assert [(row["sign"], row["status"]) for row in silent.rows] == [
        ("idle", "Pending"), ("lost", "Silent"), ("error", "Failing"),
    ]  # fmt: skip
    text = text_of(client.get("/admin/"))
    assert f"{b.name} no report since it was registered 1 week ago Pending" in text
    assert f"{d.name} last report 1 minute ago Failing: invalid answer" in text
    ((_, url),) = silent.links
    assert {cluster.pk for cluster in client.get(url).context["cl"].result_list} == {
        a.pk, b.pk, d.pk,
    }  # fmt: skip


def test_workloads_in_error_are_listed(five: list[Cluster]) -> None:
    a, b, c, *_ = five
    load_workloads(50, 5, nothing)
    Workload.objects.update(health_status="HEALTHY")
    one = Workload.objects.filter(cluster=b).order_by("namespace", "name", "kind")[2]
    Workload.objects.filter(pk=one.pk).update(health_status="ERROR", status_reason="CrashLoop")
    Cluster.objects.update(workloads_error=0, report_interval_seconds=60)
    change(a, workloads_error=2)
    change(b, workloads_error=7)
    change(c, workloads_error=9, last_received_at=NOW() - DAY)  # its current workloads are unknown

    errors = findings("viewer")["errors"]

    assert str(errors.number) == "9"
    assert [row["cluster"].pk for row in errors.rows] == [b.pk, a.pk]
    text = text_of(person("viewer").get("/admin/"))
    assert f"{b.name} {one.namespace}/{one.name} : CrashLoop 7 in error" in text


def test_keys_and_tokens_near_expiry_are_listed(db: None, operator: User) -> None:
    for name, days in {"third": 29, "first": 1, "second": 2, "later": 31}.items():
        key(operator, name, NOW() + days * DAY)
        token(operator, name, NOW() + days * DAY + MINUTE)
    minted = token(operator, "minted", NOW() + HOUR)
    AccessToken.objects.filter(pk=minted.pk).update(api_key=ApiKey.objects.all()[0])

    ending = findings("viewer")["ending"]

    names = [row["credential"].name for row in ending.rows]
    assert names == ["first", "first", "second", "second", "third"]
    assert [text for text, _ in ending.links] == ["3 API keys", "3 access tokens"]
    assert str(ending.number) == "6"
    client = person("viewer")
    assert "first API key of operator expires in" in text_of(client.get("/admin/"))
    for _, url in ending.links:
        assert client.get(url).context["cl"].result_count == 3


def test_unused_keys_and_tokens_are_listed(db: None, operator: User) -> None:
    for make in (key, token):
        for name in ("used", "new", "ended", "revoked", "never"):
            made = make(operator, name)
            old = {"created_at": NOW() - 30 * DAY} if name != "new" else {}
            more: dict[str, Any] = {
                "used": {"last_used_at": NOW()},
                "ended": {"expires_at": NOW() - DAY},
                "revoked": {"revoked_at": NOW()},
            }.get(name, {})
            type(made).objects.filter(pk=made.pk).update(**old, **more)

    unused = findings("viewer")["unused"]

    assert [(row["credential"].name, row["kind"]) for row in unused.rows] == [
        ("never", "API key"), ("never", "access token"),
    ]  # fmt: skip
    assert [text for text, _ in unused.links] == ["1 API key", "1 access token"]
    client = person("viewer")
    for _, url in unused.links:
        (shown,) = client.get(url).context["cl"].result_list
        assert shown.name == "never"


def test_failed_logins_are_counted(db: None, operator: User) -> None:
    def fail(address: str, name: str = "") -> None:
        details = {"name": name} if name else {}
        authorize_and_record(Actor(name="", address=address), "user.login_failed", "", **details)

    fail("192.0.2.1")
    for _ in range(3):
        fail("192.0.2.2", "operator")
    AuditEvent.objects.bulk_create(
        [AuditEvent(action="user.login_failed", occurred_at=NOW() - 2 * DAY, actor_name="")]
    )

    logins = findings("viewer")["logins"]

    assert str(logins.number) == "4"
    assert [(row["name"], row["tries"]) for row in logins.rows] == [("operator", 3), ("", 1)]
    text = text_of(person("viewer").get("/admin/"))
    assert "operator from 192.0.2.2, last just now 3 attempts" in text
    assert "an unknown name from 192.0.2.1, last just now 1 attempt" in text


def test_so_many_are_counted(monkeypatch: pytest.MonkeyPatch, db: None, operator: User) -> None:
    for number in range(4):
        authorize_and_record(ACTOR, "user.login_failed", "")
        key(operator, str(number), NOW() + DAY)
    ApiKey.objects.update(created_at=NOW() - 30 * DAY)
    for module in (counting, credentials, events):
        monkeypatch.setattr(module, "MOST", 3)

    found = findings("viewer")

    for name in ("ending", "unused", "logins"):
        assert str(found[name].number) == "3+", name


def test_late_jobs_are_listed(db: None) -> None:
    assert findings("viewer")["jobs"].number.value == 0
    late = {"succeeded_at": NOW() - 3 * DAY}
    HousekeepingPart.objects.update_or_create(name="tokens", defaults=late)

    jobs = findings("viewer")["jobs"]

    assert [row.name for row in jobs.rows] == ["tokens"]
    text = text_of(person("viewer").get("/admin/"))
    assert "housekeeping of tokens last completed 3 days ago" in text


def test_latest_events_are_listed(db: None) -> None:
    member = person("viewer")
    for n in range(12):
        authorize_and_record(ACTOR, "test.done", n)

    latest = member.get("/admin/").context["overview"]["events"]

    assert [row["event"].resource_id for row in latest] == [str(n) for n in range(11, 1, -1)]


def test_events_have_names_for_ids(db: None, operator: User) -> None:
    viewer = person("viewer")
    load_states(4, nothing)
    load_clusters(1)
    state, cluster = State.objects.all()[0], Cluster.objects.get()
    made = token(operator, "a token")
    authorize_and_record(ACTOR, "state.push", state.pk)
    authorize_and_record(ACTOR, "state.push", uuid.uuid4())
    authorize_and_record(ACTOR, "cluster.update", cluster.pk)
    authorize_and_record(ACTOR, "cluster.delete", uuid.uuid4(), name="a gone cluster")
    authorize_and_record(ACTOR, "user.login", operator.pk)
    authorize_and_record(ACTOR, "user.login_failed", "")
    authorize_and_record(ACTOR, "access_token.remove", "access_tokens", tokens=3)

    page = viewer.get("/admin/")

    latest = page.context["overview"]["events"]
    named = {(row["event"].action, row["name"], row["url"]) for row in latest if row["name"]}
    assert named >= {
        ("state.push", str(state), f"/admin/states/state/{state.pk}/change/"),
        ("cluster.update", cluster.name, f"/admin/workloads/cluster/{cluster.pk}/change/"),
        ("user.login", "operator", f"/admin/apikeys/user/{operator.pk}/change/"),
        ("access_token.issue", "a token", f"/admin/apikeys/accesstoken/{made.pk}/change/"),
    }
    assert "cluster.delete a gone cluster" in text_of(page)


def test_resource_names_in_events_are_hidden_without_permission(db: None) -> None:
    # Created without its event, whose details contain the name.
    cluster = Cluster.objects.create(name="prod-eu-1")
    authorize_and_record(ACTOR, "cluster.update", cluster.pk)
    client = person()
    user = User.objects.get(username="nobody-person")
    user.user_permissions.add(Permission.objects.get(codename="view_auditevent"))

    assert cluster.name not in text_of(client.get("/admin/"))


@pytest.mark.slow
def test_number_of_queries_is_constant(db: None, operator: User) -> None:
    """So many at most, however much there is of everything; and each reads no more than so much."""
    client = person("operator")
    counted = []
    for total in (20, 60):
        load_states(total, nothing)
        load_clusters(total // 4)
        load_workloads(total, total // 4, nothing)
        reported = {"last_received_at": NOW(), "last_report_at": NOW()}
        Cluster.objects.update(**reported, report_interval_seconds=60, workloads_error=1)
        for number, state in enumerate(State.objects.all()[: total // 4]):
            lock(state, DAY, token(operator, f"token {number}", NOW() + DAY))
            key(operator, f"key {number}", NOW() + DAY)
        for model in (ApiKey, AccessToken):
            model.objects.update(created_at=NOW() - 30 * DAY)
        late = Cluster.objects.values_list("pk", flat=True)[: total // 8]
        Cluster.objects.filter(pk__in=list(late)).update(last_received_at=NOW() - DAY)
        done = {"succeeded_at": NOW() - 3 * DAY}
        HousekeepingPart.objects.update_or_create(name="tokens", defaults=done)
        for _ in range(total):
            authorize_and_record(ACTOR, "user.login_failed", operator.pk)
        with CaptureQueriesContext(connection) as captured:
            answer = client.get("/admin/")
        assert len(answer.context["overview"]["attention"]) == 8
        counted.append(len(captured))
    assert counted[0] == counted[1] <= 49

    for query in captured.captured_queries:
        sql = query["sql"]
        # A count has a limit inside. Every other list has a limit too, or selects by ID.
        if "COUNT(" in sql:
            assert re.search(r'LIMIT \d+\) (\"?subquery|"counted")', sql), sql
        elif " FROM " in sql and not re.search("django_session|permission|housekeepingpart", sql):
            assert " LIMIT " in sql or " IN (" in sql, sql


def test_the_page_is_for_everybody_and_without_styles_or_scripts(five: list[Cluster]) -> None:
    load_states(5, nothing)
    lock(State.objects.all()[0], DAY * 2)
    pushed(NOW())

    page = person("viewer").get("/admin/").content.decode()

    for title in ("Pushes of the last two weeks, per day", "Clusters by health"):
        assert re.search(rf'<title id="\w+-title">{title}', page)
    for level, heading in ((2, "Needs attention"), (2, "Activity"), (3, "States")):
        assert re.search(rf'<h{level} id="[\w-]+-heading">{heading}</h{level}>', page)
    assert re.search(r'<time datetime="[^"]+" title="[-\d]+ [:\d]+ UTC">2\sdays ago</time>', page)
    assert "<script>" not in page
    assert " style=" not in page
    assert " onclick=" not in page
