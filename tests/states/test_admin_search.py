"""The search box of every admin page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys.models import User
from infra_service.console.search import SHOWN
from states.models import Application, Component, Environment, State
from states.resources import indexing
from tests.apikeys.admin.conftest import make_key
from tests.states.conftest import Backend, document
from tests.support.people import person, text_of
from workloads.models import Cluster, Workload

SEARCH = "/admin/search/"


def kinds(answer: Any) -> dict[str, list[str]]:
    return {kind.title: [row[0] for row in kind.rows] for kind in answer.context["found"]}


def send(text: str, *groups: str) -> dict[str, list[str]]:
    answer = person(*(groups or ("viewer",))).post(SEARCH, {"text": text})
    assert answer.status_code == 200
    return kinds(answer)


@pytest.fixture
def state(backend: Backend) -> State:
    resource = {
        "mode": "managed", "type": "aws_instance", "name": "web", "provider": 'provider["p/p/p"]',
        "instances": [{"index_key": n, "attributes": {"id": f"i-{n}"}} for n in range(2)],
    }  # fmt: skip
    assert backend.push(document(1, resources=[resource])).status_code == 200
    application = Application.objects.create(name="payments shop", slug="shop")
    Component.objects.update(name="payments", slug="payments", application=application)
    Environment.objects.update(name="live", slug="live")
    State.objects.update(application=application)
    return State.objects.get()


def test_each_kind_of_object_is_found(state: State) -> None:
    owner = User.objects.create_user("payer")
    key = make_key(owner, "payments ci")
    cluster = Cluster.objects.create(name="pay-1")
    Workload.objects.create(
        cluster=cluster, namespace="shop", name="payd", kind="Deployment", health_status="ERROR",
        replicas_desired=1, replicas_ready=1, replicas_available=1, cpu_requests_millicores=1,
        cpu_limits_millicores=1, memory_requests_bytes=1, memory_limits_bytes=1,
        observed_at=timezone.now(),
    )  # fmt: skip
    list(indexing.index_due())

    found = send("pay")

    assert found == {
        "States": ["payments in live"],
        "Applications": ["payments shop"],
        "Components": ["payments"],
        "Workloads": ["payd"],
        "Clusters": ["pay-1"],
        "API keys": ["payments ci"],
        "Users": ["payer"],
    }
    assert send("payments live") == {"States": ["payments in live"]}
    assert send(str(state.pk)) == {"States": ["payments in live"]}
    assert list(send(str(state.component_id))) == ["States", "Components"]
    assert send(key.pk) == {"API keys": ["payments ci"]}
    assert send("shop/payd") == {"Workloads": ["payd"]}
    both = ["aws_instance.web[0]", "aws_instance.web[1]"]
    assert send("aws_instance.web") == {"Resources": both}
    assert send("aws_instance.web[1]") == {"Resources": both[1:]}
    assert send("i-0") == {"Resources": both[:1]}


def test_names_are_found_by_their_beginning_in_the_order_of_a_language(db: None) -> None:
    """A database can sort texts like a dictionary, in which ``:`` precedes ``9``."""
    if connection.vendor == "postgresql":
        columns = {"apikeys_user": "username", "workloads_cluster": "name"}
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_collation WHERE collname = 'en-x-icu'")
            if cursor.fetchone() is None:
                pytest.skip("this PostgreSQL has no ICU")
            for table, column in columns.items():
                cursor.execute(
                    f'ALTER TABLE {table} ALTER {column} TYPE varchar(200) COLLATE "en-x-icu"'
                )
    User.objects.create_user("user99")
    Cluster.objects.create(name="user98")

    assert send("user9") == {"Clusters": ["user98"], "Users": ["user99"]}


@pytest.mark.parametrize("text", ["", " ", "\0", "nothing", "%", "_", "'", "key-", "x" * 5000])
def test_what_finds_nothing(state: State, text: str) -> None:
    assert send(text) == {}


def test_secrets_are_not_searched(state: State, backend: Backend) -> None:
    answer = person("viewer").post(SEARCH, {"text": f"token {backend.client.secret}"})

    page_text = text_of(answer)
    assert "contains the secret of a key or token" in page_text
    assert kinds(answer) == {}


def test_only_kinds_that_the_user_may_view(state: State) -> None:
    client = person()
    user = User.objects.get(username="nobody-person")
    assert kinds(client.post(SEARCH, {"text": "pay"})) == {}

    user.user_permissions.add(Permission.objects.get(codename="view_component"))

    assert list(kinds(client.post(SEARCH, {"text": "pay"}))) == ["Components"]


def test_it_is_bounded(state: State) -> None:
    for number in range(30):
        Component.objects.create(name=f"pay{number:02}", slug=f"pay{number}")
        Cluster.objects.create(name=f"pay{number:02}")
    client = person("viewer")

    with CaptureQueriesContext(connection) as queries:
        answer = client.post(SEARCH, {"text": "pay"})

    assert {title: len(rows) for title, rows in kinds(answer).items() if title != "States"} == {
        "Applications": 1, "Components": SHOWN, "Clusters": SHOWN,
    }  # fmt: skip
    assert "More: Components" in text_of(answer)
    assert len(queries) < 45


def test_more_resources_are_found_by_a_form(backend: Backend) -> None:
    """The identifier is not in an address."""
    many = [{"index_key": n, "attributes": {"id": f"i-{n}"}} for n in range(SHOWN + 2)]
    resource = {
        "mode": "managed", "type": "aws_instance", "name": "web", "provider": 'provider["p/p/p"]',
        "instances": many,
    }  # fmt: skip
    backend.push(document(1, resources=[resource]))
    list(indexing.index_due())
    client = person("viewer")

    page = client.post(SEARCH, {"text": "aws_instance.web"}).content.decode()

    assert "q=aws_instance" not in page
    (form,) = re.findall(r'<form class="more" method="post" action="([^"]*)">', page)
    shown = text_of(client.post(form, {"value": "aws_instance.web"}))
    assert f"Found {SHOWN + 2}" in shown


def test_a_search_without_a_match_links_the_resource_search(db: None) -> None:
    link = 'href="/admin/states/resourceentry/find/"'
    assert link in person("viewer").post(SEARCH, {"text": "nothing"}).content.decode()
    assert link not in person().post(SEARCH, {"text": "nothing"}).content.decode()


def test_the_box_is_on_every_page(state: State) -> None:
    client = person("viewer")
    for path in ("/admin/", "/admin/states/state/", f"/admin/states/state/{state.pk}/change/"):
        assert f'action="{SEARCH}"' in client.get(path).content.decode()
    assert client.get(SEARCH).status_code == 200
    assert SEARCH not in person().get("/admin/login/").content.decode()
