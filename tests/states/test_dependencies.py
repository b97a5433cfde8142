"""GET /api/v1/states/{id}/dependencies: which states a state reads, and which read it."""

from __future__ import annotations

import json
import random
import uuid
from typing import Any

import pytest
from django.db import connection

from apikeys.bindings import Binding
from states.models import Application, Component, Environment, State, StateDependency
from states.resources.indexing import mark_for_indexing
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import AFTER, instance, path, resource, state
from tests.states.test_list_resources import bindings, matrix
from tests.support.people import person
from tests.support.plans import analyze, plans_of
from tools.bench.bulk_states import load_states

BUILTIN = 'provider["terraform.io/builtin/terraform"]'
SECRET = "correct-horse-battery"
HOST = "http://testserver"


def remote(name: str, backend: str, config: Any, *paths: Any, **more: Any) -> dict[str, Any]:
    """Return a data source as Terraform 1.11 writes it."""
    attributes = {
        "backend": backend,
        "config": {"type": ["object", {}], "value": config},
        "defaults": None,
        "outputs": {"type": ["object", {}], "value": {}},
        "workspace": None,
    }
    one = instance(attributes, *paths)
    return resource(name, one, mode="data", type="terraform_remote_state", provider=BUILTIN, **more)


def reading(serial: int, *sources: dict[str, Any]) -> bytes:
    return json.dumps({**json.loads(state(*sources)), "serial": serial}).encode()


def http(name: str, address: str) -> dict[str, Any]:
    config = {"address": address, "username": "ada", "password": SECRET}
    return remote(name, "http", config)


@pytest.fixture
def network(backend: Backend) -> Backend:
    """A state with names that other states read."""
    network = Backend(backend.client)
    network.push(state())
    Component.objects.filter(pk=network.component_id).update(slug="network", name="Network")
    Environment.objects.filter(pk=network.environment_id).update(slug="prod")
    return network


def look(client: ApiClient, of: State, **query: Any) -> Any:
    answer = client.get(f"/api/v1/states/{of.pk}/dependencies", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_by_ids_and_by_names(backend: Backend, network: Backend, reader: ApiClient) -> None:
    at = f"{HOST}/api/v1/state/at/network/prod"
    record = network.record
    addresses = {
        "ids": f"{HOST}{network.path}",
        "ids_with_user": f"https://ada:{SECRET}@testserver:8443{network.path}/?x={SECRET}",
        "names": at,
        "outputs": f"{at}/outputs.tfstate",
        "outputs_of_id": f"{HOST}/api/v1/states/{record.pk}/outputs.tfstate",
    }
    backend.push(reading(1, *(http(name, address) for name, address in addresses.items())))
    index()

    found = look(reader, backend.record)
    other = {
        "id": str(record.pk),
        "component_id": str(network.component_id),
        "component_slug": "network",
        "environment_id": str(network.environment_id),
        "environment_slug": "prod",
    }
    shown = {one["address"].rpartition(".")[2]: one for one in found["reads"]}
    assert shown.keys() == addresses.keys()
    assert [one["state"] for one in found["reads"]] == [other] * len(addresses)
    assert shown["names"] == {
        "address": "data.terraform_remote_state.names",
        "backend": "http",
        "location": at,
        "state": other,
    }
    assert shown["ids_with_user"]["location"] == f"https://testserver:8443{network.path}/"
    assert (found["read_by"], found["next_page_token"]) == ([], "")
    back = look(reader, record)
    assert back["reads"] == []
    assert {one["address"] for one in back["read_by"]} == {o["address"] for o in found["reads"]}
    assert {one["state"]["id"] for one in back["read_by"]} == {str(backend.record.pk)}

    # A recorded dependency stays the same when the name later leads elsewhere.
    Component.objects.filter(pk=network.component_id).update(slug="other")
    assert all(one["state"] for one in look(reader, backend.record)["reads"])


@pytest.mark.parametrize(
    "address",
    [
        "https://elsewhere.example/api/v1/state/at/network/prod",
        f"{HOST}/api/v1/state/at/nothing/prod",
        f"{HOST}/api/v1/state/at/network",
        f"{HOST}/api/v1/state/at/NET WORK/prod",
        f"{HOST}/api/v1/states",
        f"{HOST}/api/v1/state/x/env/y",
        f"{HOST}/api/v1/states/x/outputs.tfstate",
        HOST,
        "testserver/api/v1/state/at/network/prod",
        "ftp://testserver/api/v1/state/at/network/prod",
    ],
)
def test_addresses_of_other_services_are_unknown(
    backend: Backend, network: Backend, reader: ApiClient, address: str
) -> None:
    backend.push(reading(1, http("x", address)))
    index()

    (one,) = look(reader, backend.record)["reads"]

    assert (one["state"], one["backend"]) == (None, "http")
    assert look(reader, network.record)["read_by"] == []


@pytest.mark.both
@pytest.mark.parametrize(
    ("backend_name", "config", "location"),
    [
        ("s3", {"bucket": "b", "key": "a/b", "secret_key": SECRET, "access_key": SECRET}, "b/a/b"),
        ("gcs", {"bucket": "b", "prefix": "p", "credentials": SECRET}, "b/p"),
        (
            "azurerm",
            {"storage_account_name": "a", "container_name": "c", "key": "k", "sas_token": SECRET},
            "a/c/k",
        ),
        (
            "remote",
            {"hostname": "h", "organization": "o", "token": SECRET, "workspaces": {"name": "w"}},
            "h/o/w",
        ),
        ("pg", {"conn_str": f"postgres://u:{SECRET}@h/d", "schema_name": "s"}, "s"),
        ("consul", {"address": f"u:{SECRET}@h:8500", "path": "p", "token": SECRET}, "h:8500/p"),
        ("local", {"path": "../x.tfstate"}, "../x.tfstate"),
        ("s3", {"bucket": f"https://u:{SECRET}@h/b?sig={SECRET}", "key": "k"}, "https://h/b/k"),
        ("http", {"address": f"https://u:{SECRET}@h/p?sig={SECRET}#{SECRET}"}, "https://h/p"),
        ("http", {"address": f"https://u:1/{SECRET}@h/p"}, ""),
        ("http", {"address": f"https://u:1?{SECRET}@h/p"}, ""),
        ("http", {"address": f"u:{SECRET}"}, ""),
        ("http", {"address": "https://h/a\0b"}, ""),
        ("http", {"address": "https://h/" + "x" * 2_001}, ""),
        ("http", {"address": ["x"]}, ""),
        ("artifactory", {"url": f"https://u:{SECRET}@h", "password": SECRET}, ""),
        ("http", SECRET, ""),
        ("x" * 51, {"address": SECRET}, ""),
    ],
)  # fmt: skip
def test_location_is_stored_without_secrets(
    backend: Backend, reader: ApiClient, backend_name: str, config: Any, location: str
) -> None:
    backend.push(reading(1, remote("x", backend_name, config)))
    index()

    (one,) = look(reader, backend.record)["reads"]

    assert one["location"] == location
    assert one["backend"] == (backend_name if len(backend_name) <= 50 else "")
    assert SECRET not in json.dumps(list(StateDependency.objects.values()), default=str)


def test_document_written_by_terraform_is_read(backend: Backend, reader: ApiClient) -> None:
    backend.push(AFTER)
    index()

    (one,) = look(reader, backend.record)["reads"]

    assert one == {
        "address": "data.terraform_remote_state.self",
        "backend": "local",
        "location": "./other.tfstate",
        "state": None,
    }


def test_sensitive_configuration_is_not_shown(backend: Backend, reader: ApiClient) -> None:
    config = {"bucket": SECRET, "key": f"{SECRET}/x"}
    backend.push(reading(1, remote("x", "s3", config, path("config"))))
    index()

    (one,) = look(reader, backend.record)["reads"]

    assert SECRET not in one["location"]


def test_token_in_an_address_is_not_stored(backend: Backend, reader: ApiClient) -> None:
    backend.push(reading(1, http("x", f"https://h/{reader.secret}")))
    index()

    assert [one["location"] for one in look(reader, backend.record)["reads"]] == [""]


def test_it_follows_the_states(backend: Backend, network: Backend, client_with: ClientWith) -> None:
    client = client_with("state:read", "state:write", "state:admin")
    reads = http("a", f"{HOST}{network.path}")
    backend.push(reading(1, reads, http("b", "https://h/x")))
    index()
    before = set(StateDependency.objects.values_list("pk", flat=True))
    mark_for_indexing(everything=True)
    index()
    assert set(StateDependency.objects.values_list("pk", flat=True)) == before

    backend.push(reading(2, reads))
    index()
    (kept,) = StateDependency.objects.values_list("pk", flat=True)
    assert kept in before
    # First the source is deleted, then the reader.
    assert network.as_client(client).delete().status_code == 200
    assert [one["state"] for one in look(client, backend.record)["reads"]] == [None]
    assert client.send("POST", f"{network.root}:undelete", {}).status_code == 200
    assert len(look(client, network.record)["read_by"]) == 1
    assert backend.as_client(client).delete().status_code == 200
    assert look(client, network.record)["read_by"] == []
    assert not StateDependency.objects.exists()


def test_pages_contain_every_item_once(
    backend: Backend, network: Backend, reader: ApiClient
) -> None:
    """First the sources, then the readers, each exactly once."""
    backend.push(reading(1, *(http(f"r{n}", f"{HOST}{network.path}") for n in range(5))))
    network.push(reading(2, *(http(f"n{n}", f"{HOST}{backend.path}") for n in range(3))))
    index()
    for size in (1, 2, 3, 5, 8, 100):
        reads, read_by, token = [], [], None
        while token != "":
            query = {"page_size": size, **({"page_token": token} if token else {})}
            found = look(reader, backend.record, **query)
            assert len(found["reads"]) + len(found["read_by"]) <= size
            reads += [one["address"] for one in found["reads"]]
            read_by += [one["address"] for one in found["read_by"]]
            token = found["next_page_token"]
        kind = "data.terraform_remote_state."
        assert reads == [f"{kind}r{n}" for n in range(5)], size
        assert read_by == [f"{kind}n{n}" for n in range(3)], size


@pytest.mark.long
def test_states_outside_the_binding_are_hidden(client_with: ClientWith) -> None:
    """Nine states read each other at random: both directions show visible states only."""
    writer, rng = client_with("state:write"), random.Random(3)
    states = matrix(writer)
    edges: dict[uuid.UUID, list[State]] = {}
    for each in states:
        backend = Backend(writer)
        backend.component_id, backend.environment_id = each.component_id, each.environment_id
        edges[each.pk] = rng.sample(states, 4)
        addresses = [
            f"{HOST}/api/v1/state/{s.component_id}/env/{s.environment_id}" for s in edges[each.pk]
        ]
        backend.push(reading(2, *(http(f"s{n}", a) for n, a in enumerate(addresses))))
    index()
    client = client_with("state:read")
    for binding in bindings(states):
        type(client.token).objects.filter(pk=client.token.pk).update(**binding.columns())
        inside = {s.pk for s in states if binding.allows_state(
            s.component_id, s.environment_id, s.application_id)}  # fmt: skip
        for each in states:
            if each.pk not in inside:
                answer = client.get(f"/api/v1/states/{each.pk}/dependencies")
                assert answer.status_code == 404
                continue
            found = look(client, each)
            assert [one["state"] and one["state"]["id"] for one in found["reads"]] == [
                str(s.pk) if s.pk in inside else None for s in edges[each.pk]
            ], binding
            readers = [s for s in states if each in edges[s.pk] and s.pk in inside]
            assert sorted(one["state"]["id"] for one in found["read_by"]) == sorted(
                str(s.pk) for s in readers
            ), binding


def test_moved_component_keeps_its_dependencies(
    backend: Backend, network: Backend, client_with: ClientWith
) -> None:
    backend.push(reading(1, http("a", f"{HOST}{network.path}")))
    index()
    shop = Application.objects.create(name="shop")
    bound = client_with("state:read", **Binding(application_ids=frozenset({shop.pk})).columns())
    ids = (backend.component_id, network.component_id)
    for of, component in ((State.objects, "component_id__in"), (Component.objects, "pk__in")):
        of.filter(**{component: ids}).update(application=shop)
    assert len(look(bound, network.record)["read_by"]) == 1

    Component.objects.filter(pk=backend.component_id).update(application=None)
    State.objects.filter(component_id=backend.component_id).update(application=None)

    assert look(bound, network.record)["read_by"] == []


def test_required_scope_and_valid_queries(
    backend: Backend, network: Backend, client_with: ClientWith
) -> None:
    at = f"/api/v1/states/{network.record.pk}/dependencies"
    refused = client_with("state:write", "state:admin", "state:outputs").get(at)
    assert (refused.status_code, error_reason(refused)) == (403, "SCOPE_INSUFFICIENT")
    client = client_with("state:read")
    for query in ({"filter": "x"}, {"page_size": "101"}, {"page_token": "x"}):
        assert client.get(at, query).status_code == 400
    for odd in ("x", uuid.uuid4()):
        assert client.get(f"/api/v1/states/{odd}/dependencies").status_code == 404


def test_admin_page_shows_the_data(backend: Backend, network: Backend) -> None:
    sources = (http("a", f"{HOST}{network.path}"), remote("b", "s3", {"bucket": "b", "key": "k"}))
    backend.push(reading(1, *sources))
    index()
    viewer = person("viewer")

    page = viewer.get(f"/admin/states/state/{backend.record.pk}/change/").content.decode()
    assert f'href="/admin/states/state/{network.record.pk}/change/">Network in prod</a>' in page
    assert 's3 <span class="identifier">b/<wbr>k</span>' in page
    other = viewer.get(f"/admin/states/state/{network.record.pk}/change/").content.decode()
    assert "Read by" in other
    assert f'href="/admin/states/state/{backend.record.pk}/change/"' in other
    assert SECRET not in page + other


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner")
def test_no_table_is_walked(client_with: ClientWith) -> None:
    load_states(3_000, lambda _done: None)
    states = list(State.objects.order_by("pk"))
    StateDependency.objects.bulk_create(
        StateDependency(
            state_id=one.pk, component_id=one.component_id, environment_id=one.environment_id,
            address="x", target_component_id=other.component_id,
            target_environment_id=other.environment_id,
        )
        for one, other in zip(states, reversed(states), strict=True)
    )  # fmt: skip
    analyze(StateDependency)
    client = client_with("state:read")

    with plans_of("states_statedependency", analyze=True) as plans:
        look(client, states[7])

    assert [plan.indexes[0] for plan in plans] == ["dependency_by_state", "dependency_by_target"]
    assert [plan.rows_read for plan in plans] == [1, 1]
