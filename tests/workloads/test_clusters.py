"""/api/v1/clusters."""

import uuid
from typing import Any
from unittest.mock import ANY

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apikeys.actors import Actor
from apikeys.models import AuditEvent
from infra_service.lib.database.constraints import breaks
from tests.conftest import LONG_AGO, ApiClient, ClientWith, error_reason
from tests.workloads.conftest import NewWorkload
from workloads import actions
from workloads.errors import ClusterNotFound
from workloads.models import Cluster, Workload

PATH = "/api/v1/clusters"
MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"
ACTOR = Actor(name="test")


@pytest.fixture
def admin(client_with: ClientWith) -> ApiClient:
    return client_with("cluster:read", "cluster:write")


def path(cluster: Cluster) -> str:
    return f"{PATH}/{cluster.pk}"


def shown(cluster: Cluster) -> dict[str, Any]:
    def time(name: str) -> str | None:
        moment = getattr(cluster, name)
        return moment and moment.strftime(MOMENT)

    return {
        "id": str(cluster.pk),
        "name": cluster.name,
        "uid": cluster.uid,
        "report_interval_seconds": cluster.report_interval_seconds,
        "health_status": "PENDING" if cluster.last_received_at is None else "UNREACHABLE",
        "workload_counts": cluster.workload_counts(),
        "last_report_at": time("last_report_at"),
        "last_received_at": time("last_received_at"),
        "last_snapshot_at": time("last_snapshot_at"),
        "collection": ANY,
        "created_at": time("created_at"),
        "updated_at": time("updated_at"),
    }


@pytest.mark.both
@pytest.mark.parametrize(("order", "names"), [("name", "abc"), ("name desc", "cba"), ("", "bca")])
def test_in_the_order_of_names(admin: ApiClient, order: str, names: str) -> None:
    for name in "bca":
        Cluster.objects.create(name=name)

    found = admin.items(PATH, "clusters", page_size=1, order_by=order)

    assert "".join(cluster["name"] for cluster in found) == names


@pytest.mark.parametrize(
    ("fields", "interval"),
    [({"name": "prod"}, 60), ({"name": "prod", "report_interval_seconds": 300}, 300)],
)
def test_cluster_is_created(admin: ApiClient, fields: dict[str, Any], interval: int) -> None:
    answer = admin.send("POST", PATH, {"cluster": fields})

    cluster = Cluster.objects.get()
    assert (answer.status_code, answer.json()) == (201, {"cluster": shown(cluster)})
    assert (cluster.name, cluster.report_interval_seconds) == ("prod", interval)
    event = AuditEvent.objects.get(resource_id=str(cluster.pk))
    assert event.action == "cluster.create"
    assert event.details == {"name": "prod", "report_interval_seconds": interval}


def test_unwrapped_body_is_accepted(admin: ApiClient) -> None:
    assert admin.send("POST", PATH, {"name": "prod"}).status_code == 201


def test_a_name_is_taken(admin: ApiClient, cluster: Cluster) -> None:
    other = Cluster.objects.create(name="other")
    for answer in (
        admin.send("POST", PATH, {"cluster": {"name": cluster.name}}),
        admin.send("PATCH", path(other), {"cluster": {"name": cluster.name}}),
    ):
        assert (answer.status_code, error_reason(answer)) == (409, "CLUSTER_EXISTS")
        assert answer.json()["error"]["status"] == "ALREADY_EXISTS"
    assert Cluster.objects.count() == 2


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "REQUIRED"),
        ({"name": " "}, "BLANK"),
        ({"name": "x" * 201}, "MAX_LENGTH"),
        ({"name": "x", "region": "y"}, "UNKNOWN_FIELD"),
        ({"name": "x", "report_interval_seconds": 0}, "MIN_VALUE"),
        ({"name": "x", "report_interval_seconds": 86401}, "MAX_VALUE"),
        ({"name": "x", "report_interval_seconds": "often"}, "INVALID"),
        ({"name": "x", "report_interval_seconds": "60"}, "INVALID"),
        ({"name": "x", "report_interval_seconds": True}, "INVALID"),
        ({"name": "x", "report_interval_seconds": 1.5}, "INVALID"),
    ],
)
def test_invalid_fields_are_rejected(admin: ApiClient, fields: dict[str, Any], reason: str) -> None:
    answer = admin.send("POST", PATH, {"cluster": fields})

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")
    violations = answer.json()["error"]["details"][1]["field_violations"]
    assert [violation["reason"] for violation in violations] == [reason]
    assert not Cluster.objects.exists()


def test_cluster_is_returned(admin: ApiClient, cluster: Cluster) -> None:
    Cluster.objects.update(
        last_report_at=LONG_AGO, last_received_at=LONG_AGO, last_snapshot_at=LONG_AGO, uid="u"
    )
    cluster.refresh_from_db()

    assert admin.get(path(cluster)).json() == {"cluster": shown(cluster)}


def test_clusters_are_listed(admin: ApiClient, cluster: Cluster) -> None:
    other = Cluster.objects.create(name="other")

    answer = admin.get(PATH).json()
    assert answer == {"clusters": [shown(cluster), shown(other)], "next_page_token": ""}
    assert admin.items(PATH, "clusters", page_size=1) == [shown(cluster), shown(other)]
    for text in ("field['name'] = 'other'", "field['name'] STARTS_WITH 'o'"):
        assert admin.items(PATH, "clusters", filter=text) == [shown(other)]


def test_cluster_is_changed(admin: ApiClient, cluster: Cluster) -> None:
    Cluster.objects.update(updated_at=LONG_AGO)
    body = {"cluster": {"name": "new", "report_interval_seconds": 120}}
    answer = admin.send("PATCH", path(cluster), {**body, "update_mask": "reportIntervalSeconds"})

    cluster.refresh_from_db()
    assert (answer.status_code, answer.json()) == (200, {"cluster": shown(cluster)})
    assert (cluster.name, cluster.report_interval_seconds) == ("prod-eu-1", 120)
    assert cluster.updated_at > LONG_AGO
    event = AuditEvent.objects.get(resource_id=str(cluster.pk))
    assert event.action == "cluster.update"
    assert event.details == {
        "name": "prod-eu-1",
        "report_interval_seconds": {"from": 60, "to": 120},
    }


def test_unchanged_patch_records_no_event(admin: ApiClient, cluster: Cluster) -> None:
    same_name = {"name": cluster.name}
    for body in ({}, {"cluster": same_name}, {"cluster": {**same_name, "uid": "x"}}):
        answer = admin.send("PATCH", path(cluster), body)
        assert (answer.status_code, answer.json()) == (200, {"cluster": shown(cluster)})
    assert not AuditEvent.objects.filter(resource_id=str(cluster.pk)).exists()


def test_cluster_is_deleted(admin: ApiClient, cluster: Cluster, workload: NewWorkload) -> None:
    workload()
    workload(name="api")
    kept = workload(cluster=Cluster.objects.create(name="other"))
    answer = admin.delete(path(cluster))

    assert (answer.status_code, answer.content) == (204, b"")
    assert Workload.objects.get() == kept
    assert admin.get(path(cluster)).status_code == 404
    event = AuditEvent.objects.get(resource_id=str(cluster.pk))
    assert (event.action, event.details) == (
        "cluster.delete",
        {"name": "prod-eu-1", "workloads": 2},
    )


def test_unknown_id_gets_404(admin: ApiClient) -> None:
    for cluster_id in (uuid.uuid4(), "x"):
        for method in ("GET", "PATCH", "DELETE"):
            answer = admin.send(method, f"{PATH}/{cluster_id}", {})
            assert (answer.status_code, error_reason(answer)) == (404, "CLUSTER_NOT_FOUND")


def test_concurrently_deleted_cluster_is_missing(cluster: Cluster) -> None:
    actions.delete_cluster(cluster_id=cluster.pk, actor=ACTOR)

    with pytest.raises(ClusterNotFound):
        actions.delete_cluster(cluster_id=cluster.pk, actor=ACTOR)
    with pytest.raises(ClusterNotFound):
        actions.change_cluster(cluster_id=cluster.pk, changes={"name": "x"}, actor=ACTOR)


def test_response_to_a_create_does_not_depend_on_a_deletion(
    admin: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create_and_delete(**given: Any) -> Cluster:
        created = create(**given)
        actions.delete_cluster(cluster_id=created.pk, actor=Actor(name="other"))
        return created

    create = actions.create_cluster
    monkeypatch.setattr(actions, "create_cluster", create_and_delete)

    answer = admin.send("POST", "/api/v1/clusters", {"name": "short"})

    assert answer.status_code == 201
    assert answer.json()["cluster"]["health_status"] == "PENDING"


def test_created_cluster_is_returned_as_it_is_stored(admin: ApiClient) -> None:
    created = admin.send("POST", "/api/v1/clusters", {"name": "prod"}).json()["cluster"]

    assert admin.get(f"/api/v1/clusters/{created['id']}").json()["cluster"] == created


def test_scope_is_required(anonymous: Client, client_with: ClientWith, cluster: Cluster) -> None:
    assert anonymous.get(PATH).status_code == 401
    reader, writer = client_with("cluster:read"), client_with("cluster:write")
    other = client_with("state:read")
    for client, method, where, status in [
        (reader, "GET", PATH, 200),
        (reader, "GET", path(cluster), 200),
        (reader, "POST", PATH, 403),
        (reader, "PATCH", path(cluster), 403),
        (reader, "DELETE", path(cluster), 403),
        (other, "GET", PATH, 403),
        (writer, "GET", PATH, 403),
        (writer, "POST", PATH, 201),
        (writer, "PATCH", path(cluster), 200),
        (writer, "DELETE", path(cluster), 204),
        (reader, "PUT", path(cluster), 405),
    ]:
        body = {"cluster": {"name": f"{method} {status}"}}
        assert client.send(method, where, body).status_code == status, (method, where)


def test_bound_tokens_see_only_their_part(client_with: ClientWith, cluster: Cluster) -> None:
    other = Cluster.objects.create(name="other")
    scopes = ("cluster:read", "cluster:write")
    bound = client_with(*scopes, bound_cluster_id=cluster.pk)
    elsewhere = client_with(*scopes, bound_component_ids=[str(uuid.uuid4())])

    assert bound.items(PATH, "clusters") == [shown(cluster)]
    assert elsewhere.items(PATH, "clusters") == []
    for client, method, where, status in [
        (bound, "GET", path(cluster), 200),
        (bound, "PATCH", path(cluster), 200),
        (bound, "GET", path(other), 404),
        (bound, "PATCH", path(other), 404),
        (bound, "DELETE", path(other), 404),
        (elsewhere, "GET", path(cluster), 404),
    ]:
        assert client.send(method, where, {}).status_code == status, (method, where)
    for client in (bound, elsewhere):
        answer = client.send("POST", PATH, {"cluster": {"name": "new"}})
        assert (answer.status_code, error_reason(answer)) == (403, "BINDING_INSUFFICIENT")
    assert Cluster.objects.count() == 2


def test_queries_do_not_grow_with_the_rows(admin: ApiClient, cluster: Cluster) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert admin.get(PATH).status_code == 200
        return len(captured)

    admin.get(PATH)
    assert queries() == 2
    Cluster.objects.bulk_create([Cluster(name=str(number)) for number in range(9)])
    assert queries() == 2


def test_other_constraints_are_not_reported_as_a_name_conflict(cluster: Cluster) -> None:
    with pytest.raises(IntegrityError, match="cluster_report_interval_in_range"):
        actions.create_cluster(fields={"name": "x", "report_interval_seconds": 0}, actor=ACTOR)
    changes = {"report_interval_seconds": 0}
    with pytest.raises(IntegrityError, match="cluster_report_interval_in_range"):
        actions.change_cluster(cluster_id=cluster.pk, changes=changes, actor=ACTOR)


def test_violated_constraint_is_recognized_by_name(cluster: Cluster) -> None:
    for fields, name in (
        ({"name": cluster.name}, "cluster_name_unique"),
        ({"name": ""}, "cluster_name_present"),
        ({"name": "x", "uid": ""}, "cluster_uid_present"),
    ):
        with pytest.raises(IntegrityError) as caught, transaction.atomic():
            Cluster.objects.create(**fields)
        names = [constraint.name for constraint in Cluster._meta.constraints]
        assert [n for n in names if breaks(caught.value, Cluster, n)] == [name]
