"""``workload.health_changed``: a single message per cluster for several minutes."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from infra_service.webhooks.health_changes import MOST_NAMED, publish_health_changes
from infra_service.webhooks.models import Delivery, HealthPosition, WebhookEvent
from tests.conftest import ApiClient, ClientWith
from tests.infra_service.webhooks.conftest import deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver
from tests.infra_service.webhooks.test_slack import section
from tests.infra_service.webhooks.test_timed import MINUTE, long_ago
from tests.infra_service.webhooks.test_trail import on_postgresql
from tests.support.committed import twice_at_once
from tests.support.plans import plans_of
from tests.workloads.records import REPORTER, record
from workloads.actions import delete_cluster
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.records import WorkloadRecord
from workloads.models import Cluster, Transition, Workload
from workloads.reporting.applying import apply_report
from workloads.reporting.reports import Report

TYPE = "workload.health_changed"
DOWN: dict[str, Any] = {"health_status": HealthStatus.ERROR, "status_reason": "CrashLoopBackOff"}


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="prod-eu")


def reported(cluster: Cluster, minutes_ago: float, *records: WorkloadRecord) -> dt.datetime:
    """Apply a report of so long ago, and return its moment."""
    moment = timezone.now() - minutes_ago * MINUTE
    given = Report(reported_at=moment, complete=True, records=records)
    apply_report(cluster_id=cluster.pk, report=given, actor=REPORTER)
    return moment


def published(receiver: Receiver) -> list[Any]:
    return [one.payload["data"] for one in receiver.received]


def written(moment: dt.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_flapping_workload_is_published_once(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    hook_of(client, receiver, TYPE)
    long_ago()
    reported(cluster, 20, record(), record("api"))
    since = reported(cluster, 19, record(**DOWN), record("api"))
    reported(cluster, 18, record(), record("api"))
    at = reported(cluster, 17, record(**DOWN), record("api"))
    reported(cluster, 13, record(**{**DOWN, "status_reason": "OOMKilled"}), record("api"))
    for _ in range(2):
        deliver()

    (one,) = receiver.received
    assert one.payload == {
        "type": TYPE,
        "timestamp": written(at),
        "data": {
            "id": str(cluster.pk),
            "name": "prod-eu",
            "since": written(since),
            "workloads_changed": 1,
            "workloads": [
                {
                    "id": str(Workload.objects.get(name="web").pk),
                    "namespace": "shop",
                    "name": "web",
                    "kind": "Deployment",
                    "from_health_status": "HEALTHY",
                    "to_health_status": "ERROR",
                    "status_reason": "CrashLoopBackOff",
                    "changes": 3,
                    "at": written(at),
                }
            ],
            "workload_counts": {
                "total": 2, "healthy": 1, "degraded": 0, "error": 1, "unspecified": 0,
            },
        },
    }  # fmt: skip

    reported(cluster, 12, record(), record("api"))
    reported(cluster, 6, record(), record("api"))
    deliver()
    (again,) = published(receiver)[1:]
    (web,) = again["workloads"]
    assert (web["from_health_status"], web["to_health_status"]) == ("ERROR", "HEALTHY")
    assert web["changes"] == 1


def test_changes_are_published_after_five_minutes(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    """For five minutes, also on the clock of a reporter that is behind; then with no report."""
    hook_of(client, receiver, TYPE)
    long_ago()
    reported(cluster, 90, record())
    reported(cluster, 64, record(**DOWN))
    reported(cluster, 60, record(**DOWN))
    deliver()
    assert published(receiver) == []

    Cluster.objects.update(last_received_at=timezone.now() - 1.1 * MINUTE)
    deliver()
    assert len(published(receiver)) == 1


def test_change_of_reason_only_is_not_published(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    hook_of(client, receiver, TYPE)
    long_ago()
    for minutes_ago in (40, 34):
        reported(cluster, minutes_ago, record("new"), record(**DOWN))
    deliver()
    receiver.received.clear()
    reported(cluster, 29, record(**{**DOWN, "status_reason": "OOMKilled"}))
    reported(cluster, 20, record(**{**DOWN, "status_reason": "OOMKilled"}))
    deliver()

    assert published(receiver) == []


def test_unhealthy_appearances_and_deletions_are_published(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    hook_of(client, receiver, TYPE)
    long_ago()
    reported(cluster, 30, record("well"), record(**DOWN))
    gone = Workload.objects.get(name="web").pk
    reported(cluster, 24, record("well"), record("next", **DOWN))
    deliver()

    (one,) = published(receiver)
    assert [
        (each["name"], each["from_health_status"], each["to_health_status"], each["changes"])
        for each in one["workloads"]
    ] == [("next", None, "ERROR", 1), (None, None, None, 2)]
    assert one["workloads"][1]["id"] == str(gone)


def test_however_many_have_changed(client: ApiClient, cluster: Cluster, receiver: Receiver) -> None:
    """As many statements as for few, less than 20 KB, and the worst of them."""
    hook_of(client, receiver, TYPE)
    long_ago()

    def statements_for(number: int, minutes_ago: float) -> int:
        names = [f"{number:0240}-{each}" for each in range(number)]
        reported(cluster, minutes_ago, *(record(name, uid="") for name in names))
        unwell = {"health_status": HealthStatus.DEGRADED, "status_reason": "😀" * 1024}
        changed = [
            record(name, uid="", **(DOWN if name == names[-1] else unwell)) for name in names
        ]
        reported(cluster, minutes_ago - 1, *changed)
        reported(cluster, minutes_ago - 7, *changed)
        with CaptureQueriesContext(connection) as queries:
            assert publish_health_changes() == 1
        return len(queries)

    statements_for(2, 90)
    few = statements_for(3, 60)
    many = statements_for(600, 30)
    deliver()

    assert many == few
    assert len(receiver.received) == 3
    assert max(len(one.body) for one in receiver.received) < 20_000
    one = published(receiver)[2]
    # The three of before have gone, unwell.
    assert one["workloads_changed"] == 603
    assert 4 < len(one["workloads"]) <= MOST_NAMED
    assert [each["to_health_status"] for each in one["workloads"][:2]] == ["ERROR", "DEGRADED"]


def test_filter_and_binding_select_events(
    client: ApiClient, client_with: ClientWith, cluster: Cluster, receiver: Receiver
) -> None:
    other = Cluster.objects.create(name="other")
    hook_of(client, receiver, TYPE, filter="field['cluster'] = 'other'")
    scopes = ("webhook:write", "cluster:read")
    bound = client_with(*scopes, bound_cluster_id=cluster.pk)
    hook_of(bound, receiver, TYPE, url=receiver.url + "/bound")
    elsewhere = client_with(*scopes, bound_component_ids=[str(uuid.uuid4())])
    hook_of(elsewhere, receiver, TYPE, url=receiver.url + "/elsewhere")
    long_ago()
    for one in (cluster, other):
        reported(one, 30, record())
        reported(one, 29, record(**DOWN))
        reported(one, 20, record(**DOWN))
    deliver()

    assert sorted((one.path, one.payload["data"]["name"]) for one in receiver.received) == [
        ("/hook", "other"), ("/hook/bound", "prod-eu"),
    ]  # fmt: skip


def test_changes_before_the_subscription_are_not_published(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, "cluster.create")
    long_ago()
    reported(cluster, 40, record())
    reported(cluster, 39, record(**DOWN))
    client.send("PATCH", hook.path, {"event_types": ["cluster.create", TYPE]})
    reported(cluster, 38, record())
    reported(cluster, 30, record())
    deliver()

    (one,) = published(receiver)
    assert [each["changes"] for each in one["workloads"]] == [1]
    assert one["workloads"][0]["from_health_status"] == "ERROR"


def test_changes_while_disabled_are_not_published(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, TYPE)
    long_ago()
    reported(cluster, 40, record())
    client.send("PATCH", hook.path, {"enabled": False})
    reported(cluster, 39, record(**DOWN))
    reported(cluster, 30, record(**DOWN))
    deliver()
    client.send("PATCH", hook.path, {"enabled": True})
    deliver()

    assert published(receiver) == []
    assert not WebhookEvent.objects.exists()


@pytest.mark.parametrize("days_behind", [0.05, 2, 20])
def test_reporter_with_a_slow_clock_is_covered(
    days_behind: float, client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    """Its times precede the webhook and are not compared with the service's clock."""
    minutes = days_behind * 24 * 60
    reported(cluster, minutes + 41, record())
    hook_of(client, receiver, TYPE)
    at = reported(cluster, minutes + 40, record(**DOWN))
    reported(cluster, minutes + 30, record(**DOWN))
    for _ in range(2):
        deliver()

    (one,) = receiver.received
    assert one.payload["timestamp"] == written(at)
    assert one.payload["data"]["name"] == "prod-eu"


def test_clock_that_was_set_back_hides_no_later_change(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    hook_of(client, receiver, TYPE)
    long_ago()
    reported(cluster, 40, record())
    a_year_ahead = timezone.now() + dt.timedelta(days=365)
    HealthPosition.objects.create(cluster=cluster, told_until=a_year_ahead)
    deliver()

    reported(cluster, 30, record(**DOWN))
    reported(cluster, 20, record(**DOWN))
    deliver()

    assert len(published(receiver)) == 1


def test_new_cluster_with_a_slow_clock_is_covered(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, TYPE)
    cluster = Cluster.objects.create(name="late")
    for minutes_ago, records in ((41, record()), (40, record(**DOWN)), (30, record(**DOWN))):
        reported(cluster, 30 * 24 * 60 + minutes_ago, records)
    deliver()

    assert [one["name"] for one in published(receiver)] == ["late"]


def test_changes_while_disabled_are_not_published_by_a_late_worker(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    """The worker runs only when the webhook is enabled again."""
    reported(cluster, 41, record())
    hook = hook_of(client, receiver, TYPE)
    client.send("PATCH", hook.path, {"enabled": False})
    reported(cluster, 40, record(**DOWN))
    reported(cluster, 30, record(**DOWN))
    client.send("PATCH", hook.path, {"enabled": True})
    deliver()
    assert published(receiver) == []

    reported(cluster, 20, record())
    reported(cluster, 10, record())
    deliver()
    assert [one["workloads_changed"] for one in published(receiver)] == [1]


def test_changes_without_a_webhook_are_not_published(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    """A new webhook does not continue from the positions of its predecessor."""
    hook = hook_of(client, receiver, TYPE)
    long_ago()
    reported(cluster, 40, record())
    reported(cluster, 39, record(**DOWN))
    reported(cluster, 30, record(**DOWN))
    deliver()
    client.send("DELETE", hook.path)
    reported(cluster, 29, record())
    hook_of(client, receiver, TYPE)
    long_ago()
    reported(cluster, 20, record())
    deliver()

    assert len(published(receiver)) == 1


def test_where_no_health_changes_the_rest_is_not_read_again(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    reported(cluster, 100, record())
    hook_of(client, receiver, TYPE)
    for minutes_ago, moves in ((50, False), (30, True)):
        moment = reported(cluster, minutes_ago, record(), record("new"))
        publish_health_changes()
        assert (HealthPosition.objects.get().told_until == moment) is moves

    # Of however many clusters by as many statements.
    counts = []
    for name in ("bc", "defghij"):
        for each in name:
            reported(Cluster.objects.create(name=each), 30, record())
        with CaptureQueriesContext(connection) as statements:
            publish_health_changes()
        counts.append(len(statements))
    assert counts[0] == counts[1]
    assert HealthPosition.objects.count() == 10


@on_postgresql
def test_late_report_is_published(client: ApiClient, cluster: Cluster, receiver: Receiver) -> None:
    """Publishing before its commit does not skip the report."""
    hook_of(client, receiver, TYPE)
    long_ago()
    reported(cluster, 40, record(), record("api"))
    reported(cluster, 39, record(**DOWN), record("api"))
    Cluster.objects.update(last_received_at=timezone.now() - 6 * MINUTE)
    written_down, may_end = threading.Event(), threading.Event()

    def late() -> None:
        try:
            with transaction.atomic():
                reported(cluster, 38, record(**DOWN), record("api", **DOWN))
                written_down.set()
                assert may_end.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=late)
    thread.start()
    assert written_down.wait(30)
    assert publish_health_changes() == 1
    may_end.set()
    thread.join()
    Cluster.objects.update(last_received_at=timezone.now() - 6 * MINUTE)
    deliver()

    assert [[each["name"] for each in one["workloads"]] for one in published(receiver)] == [
        ["web"], ["api"],
    ]  # fmt: skip


@on_postgresql
def test_two_concurrent_runs_share_the_work(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, TYPE)
    long_ago()
    clusters = [Cluster.objects.create(name=name) for name in "abcdef"]
    for one in clusters:
        reported(one, 30, record())
        reported(one, 29, record(**DOWN))
        reported(one, 20, record(**DOWN))
    twice_at_once(publish_health_changes)
    deliver()

    assert sorted(one["name"] for one in published(receiver)) == list("abcdef")
    assert Delivery.objects.count() == HealthPosition.objects.count() == 6


def test_position_and_event_are_written_together(
    client: ApiClient, cluster: Cluster, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The position and the event are written together."""
    hook_of(client, receiver, TYPE)
    long_ago()
    reported(cluster, 30, record())
    reported(cluster, 29, record(**DOWN))
    reported(cluster, 20, record(**DOWN))

    def kill(_events: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("infra_service.webhooks.health_changes.publish", kill)
        with pytest.raises(KeyboardInterrupt):
            publish_health_changes()
    assert not HealthPosition.objects.exists()
    deliver()

    assert len(published(receiver)) == 1


@on_postgresql
def test_pass_reads_only_unpublished_transitions(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    """It reads neither the history of the cluster nor changes to other workloads."""
    hook_of(client, receiver, TYPE)
    long_ago()
    now = timezone.now()
    moments = [now - number * MINUTE for number in range(60, 1000)]
    Transition.objects.bulk_create(
        Transition(
            workload_id=uuid.uuid4(), number=1, cluster_id=cluster_id, since=at, at=at,
            from_health_status="HEALTHY", to_health_status="ERROR",
        )
        for at in moments
        for cluster_id in (cluster.pk, uuid.uuid4())
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE workloads_transition")
    HealthPosition.objects.create(cluster=cluster, told_until=moments[0])
    reported(cluster, 30, record())

    with plans_of("workloads_transition", analyze=True) as plans:
        assert publish_health_changes() == 0

    (look,) = plans
    assert "transition_of_cluster" in look.indexes
    assert look.rows_by_table["workloads_transition"] <= 2


def test_a_deleted_cluster_is_forgotten(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    reported(cluster, 30, record())
    hook_of(client, receiver, TYPE)
    assert HealthPosition.objects.count() == 1

    delete_cluster(cluster_id=cluster.pk, actor=REPORTER)

    assert not HealthPosition.objects.exists()


def test_pass_reads_no_clusters_without_a_subscription(
    client: ApiClient, cluster: Cluster, receiver: Receiver
) -> None:
    hook_of(client, receiver, "cluster.create")
    reported(cluster, 30, record())
    reported(cluster, 29, record(**DOWN))
    with CaptureQueriesContext(connection) as queries:
        assert publish_health_changes() == 0

    assert len(queries) == 1
    assert not HealthPosition.objects.exists()


def test_slack_message_is_sent(client: ApiClient, cluster: Cluster, receiver: Receiver) -> None:
    hook_of(client, receiver, TYPE, format="slack")
    long_ago()
    names = [f"w-{number}" for number in range(6)]
    reported(cluster, 30, record(), *map(record, names))
    unwell = [record(name, health_status=HealthStatus.DEGRADED) for name in names]
    reported(cluster, 29, record(**DOWN), *unwell)
    reported(cluster, 28, record(), *unwell)
    reported(cluster, 27, record(**DOWN), *unwell)
    reported(cluster, 20, record(**DOWN), *unwell)
    deliver()

    lines = section(receiver.received[0].payload).splitlines()
    assert lines[:3] == [
        "*The health of workloads changed*",
        "About: prod-eu",
        "ERROR: shop/web, was HEALTHY, 3 changes: CrashLoopBackOff",
    ]
    assert lines[3].startswith("DEGRADED: shop/w-")
    assert (len(lines), lines[-1]) == (7, "And: 3 others")
