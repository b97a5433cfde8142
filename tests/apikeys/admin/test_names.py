"""Name suggestions in forms."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import Permission

from apikeys.bindings import Binding
from apikeys.models import User
from states.models import Application, Component, Environment
from tests.apikeys.admin.conftest import make_key, make_token
from tests.support.people import log_in, person, statements
from workloads.models import Cluster

NAMES = "/admin/names/"


def offered(client: Any, kind: str, text: str) -> list[dict[str, str]]:
    answer = client.get(f"{NAMES}{kind}/", {"q": text})
    assert answer.status_code == 200, answer.content
    found: list[dict[str, str]] = answer.json()["names"]
    return found


def test_a_piece_of_a_name(db: None) -> None:
    for name in ("network", "my-Network", "subnetwork", "queue"):
        Component.objects.create(name=name)
    Environment.objects.create(name="production")
    Cluster.objects.create(name="prod-eu")
    Application.objects.create(name="product")
    client = person("viewer")

    found = offered(client, "component", "net")
    assert found[0] == {"value": "network", "label": "network"}, "what begins so is first"
    assert {name["value"] for name in found} == {"network", "my-Network", "subnetwork"}
    for kind, name in (
        ("environment", "production"),
        ("cluster", "prod-eu"),
        ("application", "product"),
    ):
        assert [one["value"] for one in offered(client, kind, "PROD")] == [name]
    assert offered(client, "component", "") == offered(client, "component", "\0") == []
    assert offered(client, "component", "%") == []


def test_ids_are_offered_for_equal_names(db: None) -> None:
    billing = Application.objects.create(name="billing")
    of_billing = Component.objects.create(name="network", application=billing)
    of_none = Component.objects.create(name="network")

    found = offered(person("viewer"), "component", "network")

    assert {name["value"]: name["label"] for name in found} == {
        str(of_billing.pk): "network, of billing", str(of_none.pk): f"network, id {of_none.pk}",
    }  # fmt: skip


def test_suggestions_need_the_permission_to_view(db: None) -> None:
    """Suggestions of a kind need the permission to view its list."""
    Component.objects.create(name="network")
    someone = User.objects.create(username="someone", is_staff=True)
    someone.user_permissions.add(Permission.objects.get(codename="view_component"))
    client = person()
    log_in(client, someone)

    assert len(offered(client, "component", "net")) == 1
    assert client.get(f"{NAMES}environment/", {"q": "net"}).status_code == 403
    assert client.get(f"{NAMES}user/", {"q": "net"}).status_code == 404
    client.logout()
    assert client.get(f"{NAMES}component/", {"q": "net"}).status_code == 302


def test_many_names_cost_the_same(db: None) -> None:
    client = person("viewer")
    counts = []
    for count in (3, 60):
        Component.objects.bulk_create(Component(name=f"net-{uuid.uuid4()}") for _ in range(count))
        with statements() as found:
            assert len(offered(client, "component", "net")) <= 20
        counts.append(len(found))
    assert counts[1] <= counts[0]


@pytest.mark.parametrize("kind", ["cluster", "component", "environment"])
def test_form_links_to_the_suggestions(db: None, kind: str) -> None:
    page = person("administrator").get("/admin/apikeys/apikey/add/").content.decode()
    assert f'data-names="/admin/names/{kind}/"' in page


def test_names_in_bindings_need_the_permission_to_view(operator: User) -> None:
    cluster = Cluster.objects.create(name="hidden-cluster")
    key = make_key(operator, binding=Binding(cluster_id=cluster.pk))
    token = make_token(operator, binding=Binding(cluster_id=cluster.pk))
    pages = [
        page for one in (key, token) for page in (_list_of(one), f"{_list_of(one)}{one.pk}/change/")
    ]
    someone = User.objects.create(username="someone", is_staff=True)
    for codename in ("view_apikey", "view_accesstoken"):
        someone.user_permissions.add(Permission.objects.get(codename=codename))
    client = person()
    log_in(client, someone)

    for page in pages:
        assert str(cluster.pk) in (text := client.get(page).content.decode()), page
        assert "hidden-cluster" not in text, page
    someone.user_permissions.add(Permission.objects.get(codename="view_cluster"))
    for page in pages:
        assert "hidden-cluster" in client.get(page).content.decode(), page


def _list_of(credential: Any) -> str:
    return f"/admin/apikeys/{credential._meta.model_name}/"


def test_only_the_page_of_a_key_looks_up_names(operator: User) -> None:
    cluster = Cluster.objects.create(name="prod-eu")
    key = make_key(operator, binding=Binding(cluster_id=cluster.pk))
    client = person("administrator")

    with statements() as sqls:
        assert client.get(f"/admin/apikeys/apikey/{key.pk}/revoke/").status_code == 200

    assert [sql for sql in sqls if "apikeys_apikey" in sql]
    assert not [sql for sql in sqls if "workloads_cluster" in sql]
