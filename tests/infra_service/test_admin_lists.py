"""Every list of the admin: its orders, its CSV, and the search of the audit log by names."""

from __future__ import annotations

import csv
import io
import uuid
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.test import Client

from apikeys.actors import Actor
from apikeys.audit import authorize_and_record
from apikeys.models import User
from infra_service import urls  # noqa: F401 - with the admin's pages, as in a worker
from infra_service.lib.admin import KeysetAdmin
from infra_service.lib.database.bounded_pages.conditions import conditions_of
from infra_service.lib.database.bounded_pages.indexes import indexes_of, walk
from states.actions.catalogue import create
from states.actions.removal import delete_entry
from states.models import Component, Environment, State
from tests.support.people import person, statements
from workloads.actions import create_cluster, delete_cluster
from workloads.models import Cluster

LISTS = {
    f"/admin/{model._meta.app_label}/{model._meta.model_name}/": pages
    for model, pages in admin.site._registry.items()
}
TRAIL = "/admin/apikeys/auditevent/"
every_list = pytest.mark.parametrize("path", LISTS)


@every_list
def test_every_list_can_be_sorted(db: None, path: str) -> None:
    pages = LISTS[path]
    client = person("viewer")
    assert isinstance(pages, KeysetAdmin)
    assert {*pages.orders} <= {*pages.list_display}
    assert pages.orders
    for column in pages.orders:
        for order in (column, f"-{column}"):
            cl = client.get(path, {"order": order}).context["cl"]
            assert cl.order == order
            assert [key.removeprefix("-") for key in cl.page_key] == [*pages.orders[column]]
            expected = "descending" if order.startswith("-") else "ascending"
            assert cl.order_link(column)["sorted"] == expected


#: Lists whose rows have no time of a change, or whose worst rows come first.
OTHER_OPENINGS = {
    "Group": ["name"],
    "Cluster": ["name"],
    "Workload": ["cluster_id", "namespace", "name", "kind"],
}
#: The last change, or the creation of rows that do not change much; ids are in that order.
_NEWEST = {"updated_at", "occurred_at", "id"}


@every_list
def test_every_list_opens_with_the_last_change(db: None, path: str) -> None:
    pages = LISTS[path]
    key = person("viewer").get(path).context["cl"].page_key
    other = OTHER_OPENINGS.get(pages.model.__name__)
    if other is not None:
        assert [*key] == other
    else:
        first, *rest = key
        assert first.removeprefix("-") in _NEWEST
        assert all(column.startswith("-") for column in (first, *rest))


@every_list
def test_every_order_of_a_list_is_the_order_of_an_index(db: None, path: str) -> None:
    pages = LISTS[path]
    client = person("viewer")
    orders = ["", *(f"{sign}{column}" for column in pages.orders for sign in ("", "-"))]
    for order in orders:
        cl = client.get(path, {"order": order} if order else {}).context["cl"]
        for segment in cl.segments:
            rows = cl.queryset.filter(segment.condition)
            walked = walk(pages.model, conditions_of(rows.query), segment.key)
            assert walked.index in indexes_of(pages.model), (order, segment)


@every_list
def test_every_list_as_csv(db: None, path: str) -> None:
    client = person("viewer")
    with statements() as found:
        answer = client.get(path, {"csv": "1"})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    header, *_ = csv.reader(io.StringIO(answer.content.decode()))
    columns = [name for name in LISTS[path].list_display if name != "action_checkbox"]
    assert len(header) >= len(columns)
    assert len(found) < 25


def test_clusters_in_the_order_of_names(db: None) -> None:
    for name in ("b", "a", "c"):
        Cluster.objects.create(name=name)
    client = person("viewer")
    shown = client.get("/admin/workloads/cluster/", {"order": "-name"}).context["cl"].result_list
    assert [cluster.name for cluster in shown] == ["c", "b", "a"]


@pytest.mark.slow
def test_events_are_found_by_names(db: None) -> None:
    state = State.objects.create(
        component=Component.objects.create(name="network"),
        environment=Environment.objects.create(name="production"),
    )
    cluster = Cluster.objects.create(name="prod-eu")
    grace = User.objects.create(username="grace")
    for action, resource in (
        ("state.push", state), ("cluster.change", cluster), ("user.change", grace),
    ):  # fmt: skip
        authorize_and_record(Actor(name="test"), action, resource.pk)
    authorize_and_record(Actor(user_id=grace.pk, name="grace"), "state.read", "gone")
    viewer = person("viewer")

    def found(text: str, client: Any = viewer) -> set[str]:
        shown = client.get(TRAIL, {"q": text}).context["cl"].result_list
        return {event.action for event in shown if not event.action.startswith("group.")}

    assert found("network production") == {"state.push"}
    assert found("prod") == {"state.push", "cluster.change"}
    assert found("grace") == {"user.change", "state.read"}
    assert found(str(cluster.pk)) == {"cluster.change"}
    assert found("nothing is called so") == set()


@pytest.mark.slow
def test_events_of_deleted_objects_are_found_by_the_recorded_name(db: None) -> None:
    administrator = person(username="root", is_superuser=True)
    actor = Actor(name="test")
    component = create(model=Component, fields={"name": "old-network"}, actor=actor)
    cluster = create_cluster(fields={"name": "old-cluster"}, actor=actor)
    group = Group.objects.create(name="old-group")
    administrator.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"})
    delete_entry(model=Component, entry_id=component.pk, actor=actor)
    delete_cluster(cluster_id=cluster.pk, actor=actor)
    authorize_and_record(actor, "component.update", uuid.uuid4(), name="an old-network")

    def found(client: Client, text: str) -> set[str]:
        return {event.action for event in client.get(TRAIL, {"q": text}).context["cl"].result_list}

    assert found(administrator, "OLD-net") == {"component.create", "component.delete"}
    assert found(administrator, "old-cluster") == {"cluster.create", "cluster.delete"}
    assert found(administrator, "old-group") == {"group.delete"}
    assert found(administrator, "old%") == set()
    log_only = person(username="auditor")
    permission = Permission.objects.get(codename="view_auditevent")
    User.objects.get(username="auditor").user_permissions.add(permission)
    assert found(log_only, "old-network") == set()


def test_the_search_reads_a_bounded_number_of_rows(db: None) -> None:
    client = person("viewer")
    costs = []
    for count in (30, 30):
        named = [Component(name=f"network-{costs}-{n}") for n in range(count)]
        Component.objects.bulk_create(named)
        for component in named:
            authorize_and_record(Actor(name="test"), "component.change", component.pk)
        with statements() as found:
            assert client.get(TRAIL, {"q": "network"}).status_code == 200
        costs.append(len(found))
    assert costs[0] == costs[1] < 60, costs
