"""Changes of workloads, as the reports of their clusters cause them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from apikeys.actors import Actor
from infra_service.change_history import workload_changes
from infra_service.change_history.models import Change
from tests.conftest import ClientWith
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import instance, resource, state
from tests.workloads.records import apply, place, record, report, stored
from workloads.actions import delete_cluster
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.records import UNREADABLE, ContainerRecord
from workloads.models import Cluster

LIST = "/api/v1/changes"
DOWN: dict[str, Any] = {"health_status": HealthStatus.ERROR, "status_reason": "CrashLoopBackOff"}


def changes() -> list[tuple[str, str, str, str, str]]:
    """Return the changes of workloads, in the order of time and address."""
    rows = Change.objects.filter(kind="WORKLOAD").order_by("occurred_at", "address", "action")
    return list(rows.values_list("action", "address", "before", "after", "problem"))


def test_first_report_of_a_cluster_changes_nothing(cluster: Cluster) -> None:
    apply(cluster, report(0, record()))

    assert changes() == []


def test_each_action_is_recorded(cluster: Cluster) -> None:
    apply(cluster, report(0, record("a"), record("b"), record("c"), record("d", uid="1")))
    workload_id = stored(cluster)[place("a")].pk
    apply(
        cluster,
        report(60, record("a", **DOWN), record("b", replicas_desired=9), record("d", uid="2"),
               record("e")),
    )  # fmt: skip

    namespace = place("a").namespace
    assert changes() == [
        ("HEALTH_CHANGED", f"{namespace}/a", "HEALTHY", "ERROR", "CrashLoopBackOff"),
        ("SCALED", f"{namespace}/b", str(record().replicas_desired), "9", ""),
        ("REMOVED", f"{namespace}/c", "", "", ""),
        ("REPLACED", f"{namespace}/d", "", "", ""),
        ("ADDED", f"{namespace}/e", "", "", ""),
    ]
    change = Change.objects.get(action="HEALTH_CHANGED")
    assert (change.cluster_id, change.workload_id) == (cluster.pk, workload_id)
    assert (change.type, change.state_id, change.created_by) == ("Deployment", None, "")


def test_images_are_compared_by_container(cluster: Cluster) -> None:
    app, new_app = _container("app", "app:1"), _container("app", "app:2")
    restarted = _container("proxy", "proxy:1", restarts=3)
    apply(cluster, report(0, record(containers=(app, _container("proxy", "proxy:1")))))
    apply(cluster, report(60, record(containers=(new_app, _container("proxy", "proxy:1")))))
    apply(cluster, report(120, record(containers=(new_app, restarted))))
    apply(cluster, report(180, record(containers=(new_app, _container("proxy", "p" * 600)))))

    first, last = Change.objects.order_by("id")
    assert (first.action, first.before, first.after) == ("IMAGE_CHANGED", "app:1", "app:2")
    assert (first.attributes, last.attributes) == (["app"], ["proxy"])
    assert last.after == f"{'p' * 499}…"


def _container(name: str, image: str, *, restarts: int = 0) -> ContainerRecord:
    return ContainerRecord(name, image, restarts, "running", True)


def test_unchanged_report_and_another_reason_record_nothing(cluster: Cluster) -> None:
    apply(cluster, report(0, record(**DOWN)))
    apply(cluster, report(60, record(**DOWN)))
    apply(cluster, report(120, record(**{**DOWN, "status_reason": "OOMKilled"})))

    assert changes() == []


def test_an_unreadable_workload_changes_only_its_health(cluster: Cluster) -> None:
    readable = record(containers=(_container("app", "app:1"),))
    unreadable = record(
        containers=(), replicas_desired=0, health_status=HealthStatus.UNSPECIFIED,
        status_reason=UNREADABLE,
    )  # fmt: skip
    for seconds, workload in ((0, readable), (60, unreadable), (120, readable)):
        apply(cluster, report(seconds, workload))

    assert [action for action, *_ in changes()] == ["HEALTH_CHANGED", "HEALTH_CHANGED"]


def test_nodes_scale_a_daemon_set(cluster: Cluster) -> None:
    apply(cluster, report(0, record(kind=WorkloadKind.DAEMON_SET)))
    apply(cluster, report(60, record(kind=WorkloadKind.DAEMON_SET, replicas_desired=9)))

    assert changes() == []


def test_list_has_both_kinds_for_tokens_with_both_scopes(
    backend: Backend, cluster: Cluster, client_with: ClientWith
) -> None:
    apply(cluster, report(0, record()))
    apply(cluster, report(60, record(**DOWN)))
    backend.push(state(resource("a", instance({"id": "1"}))))
    index()
    both = ("state:read", "cluster:read")

    assert {c["kind"] for c in client_with(*both).items(LIST, "changes")} == {
        "RESOURCE", "WORKLOAD",
    }  # fmt: skip
    assert [c["kind"] for c in client_with("state:read").items(LIST, "changes")] == ["RESOURCE"]
    assert client_with("cluster:read").get(LIST).status_code == 403
    of_cluster = client_with(*both, bound_cluster_id=str(cluster.pk))
    (found,) = of_cluster.items(LIST, "changes")
    assert (found["cluster_id"], found["cluster_name"]) == (str(cluster.pk), cluster.name)
    assert (found["state_id"], found["version_number"], found["after"]) == (None, None, "ERROR")
    of_states = client_with(*both, bound_component_ids=[str(backend.component_id)])
    assert [c["kind"] for c in of_states.items(LIST, "changes")] == ["RESOURCE"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("field['kind'] = 'WORKLOAD'", 1),
        ("field['kind'] = 'RESOURCE'", 0),
        ("field['workload_id'] = '{workload}'", 1),
        ("field['cluster_id'] = '{cluster}' AND field['action'] = 'HEALTH_CHANGED'", 1),
        ("field['cluster_id'] = '{workload}'", 0),
        ("field['cluster'] = '{cluster}'", 1),
        ("field['cluster_name'] = '{cluster}'", 0),
    ],
)
def test_filters_select_changes_of_workloads(
    cluster: Cluster, client_with: ClientWith, text: str, number: int
) -> None:
    apply(cluster, report(0, record()))
    apply(cluster, report(60, record(**DOWN)))
    wanted = text.format(workload=stored(cluster)[place()].pk, cluster=cluster.pk)

    client = client_with("state:read", "cluster:read")
    assert len(client.items(LIST, "changes", filter=wanted)) == number


def test_id_of_a_deleted_cluster_selects_its_changes(
    cluster: Cluster, client_with: ClientWith
) -> None:
    apply(cluster, report(0, record()))
    apply(cluster, report(60, record(**DOWN)))
    delete_cluster(cluster_id=cluster.pk, actor=Actor.of_command("test"))

    client = client_with("state:read", "cluster:read")
    (change,) = client.items(LIST, "changes", filter=f"field['cluster'] = '{cluster.pk}'")
    assert (change["cluster_id"], change["cluster_name"]) == (str(cluster.pk), None)


def test_changes_are_removed_after_their_retention(cluster: Cluster) -> None:
    apply(cluster, report(0, record()))
    apply(cluster, report(60, record(**DOWN)))
    moment = Change.objects.get().occurred_at

    assert list(workload_changes.remove_old(moment + dt.timedelta(days=89))) == []
    assert list(workload_changes.remove_old(moment + dt.timedelta(days=91))) == [1]


def test_flapping_workload_keeps_its_newest_changes(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_changes, "MOST_CHANGES", 3)
    monkeypatch.setattr(workload_changes, "_WORKLOADS", 2)
    names = ("a", "b", "c", "d", "e")
    apply(cluster, report(0, *map(record, names)))
    for number in range(1, 6):
        # "a" never changes, "b" three times, the others each time.
        flapping = [record(name, replicas_desired=number + 9) for name in names[2:]]
        sometimes = record("b", replicas_desired=max(number, 3) + 9)
        apply(cluster, report(60 * number, record("a"), sometimes, *flapping))

    assert sum(workload_changes.remove_surplus()) == 6

    left = Change.objects.order_by("address", "id").values_list("address", "after")
    assert [(address.partition("/")[2], after) for address, after in left] == [
        (name, after) for name in names[1:] for after in ("12", "13", "14")
    ]
    assert sum(workload_changes.remove_surplus()) == 0


def test_list_of_workload_changes_survives_its_cluster(
    cluster: Cluster, client_with: ClientWith
) -> None:
    apply(cluster, report(0, record()))
    apply(cluster, report(60, record(**DOWN)))
    Cluster.objects.filter(pk=cluster.pk).delete()

    (found,) = client_with("state:read", "cluster:read").items(LIST, "changes")
    assert (found["cluster_name"], found["address"]) == (
        None,
        f"{place().namespace}/{place().name}",
    )
