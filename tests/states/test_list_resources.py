"""GET /api/v1/resources and POST /api/v1/resources:find."""

from __future__ import annotations

import json
import random
import uuid
from itertools import product
from typing import Any

import pytest

from apikeys.bindings import Binding
from infra_service.lib.database.bounded_pages import reading
from states.models import Application, Component, Environment, ResourceEntry, State
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import Backend
from tests.states.indexed import index, with_things
from tests.states.samples import instance, path, resource, state

LIST, FIND = "/api/v1/resources", "/api/v1/resources:find"


def find(client: ApiClient, value: Any, query: str = "") -> Any:
    return client.send("POST", FIND + query, {"value": value})


def names(client: ApiClient, text: str = "") -> list[str]:
    return sorted(one["address"] for one in client.items(LIST, "resources", filter=text))


def test_resource_has_all_fields(backend: Backend, reader: ApiClient) -> None:
    backend.push(state(resource("x", instance({"id": "i-1"}, index_key="a b"), module="module.m")))
    index()
    Component.objects.update(slug="network")

    answer = reader.get(LIST)

    entry = ResourceEntry.objects.get()
    expected = {
        "id": str(entry.pk),
        "state_id": str(backend.record.pk),
        "component_id": str(backend.component_id),
        "component_slug": "network",
        "environment_id": str(backend.environment_id),
        "environment_slug": None,
        "version_number": 1,
        "address": 'module.m.thing.x["a b"]',
        "deposed": "",
        "module": "module.m",
        "mode": "managed",
        "type": "thing",
        "name": "x",
        "index_key": "a b",
        "provider": "example.org/x/y",
    }
    assert answer.json() == {"resources": [expected], "next_page_token": ""}
    assert find(reader, "i-1").json() == answer.json()
    # Resources that a later push leaves unchanged get its version number too.
    backend.push(state(resource("x", instance(index_key="a b"), module="module.m"), serial=2))
    index()
    assert reader.get(LIST).json()["resources"][0]["version_number"] == 2


def test_filters_select_matching_items(
    backend: Backend, reader: ApiClient, client_with: ClientWith
) -> None:
    other = Backend(backend.client)
    aws = 'provider["registry.terraform.io/hashicorp/aws"]'
    backend.push(
        state(
            resource("a", instance(), type="aws_instance", provider=aws),
            resource("b", instance(), module="module.m", type="aws_s3_bucket", provider=aws),
            resource("c", instance(), mode="data"),
        )
    )
    other.push(state(resource("d", instance())))
    index()
    shop = Application.objects.create(name="shop", slug="shop")
    Component.objects.filter(pk=other.component_id).update(application=shop, slug="web")
    Environment.objects.filter(pk=other.environment_id).update(slug="prod")
    a, b, c, d = "aws_instance.a", "module.m.aws_s3_bucket.b", "data.thing.c", "thing.d"
    record = other.record

    for text, expected in {
        "field['type'] = 'aws_instance'": [a],
        "field['type'] STARTS_WITH 'aws_'": [a, b],
        "field['name'] = 'd'": [d],
        "field['name'] IN ('c', 'd')": [c, d],
        f"field['address'] = '{b}'": [b],
        "field['address'] CONTAINS 'module.'": [b],
        "field['module'] = 'module.m'": [b],
        "field['module'] = '' AND field['mode'] = 'managed'": [a, d],
        "field['provider'] = 'registry.terraform.io/hashicorp/aws'": [a, b],
        "field['provider'] ENDS_WITH '/aws'": [a, b],
        "field['mode'] = 'data'": [c],
        "field['mode'] != 'data'": [a, b, d],
        f"field['state_id'] = '{record.pk}'": [d],
        f"field['component_id'] = '{other.component_id}'": [d],
        f"field['environment_id'] = '{other.environment_id}'": [d],
        f"field['application_id'] = '{shop.pk}'": [d],
        f"NOT field['application_id'] = '{shop.pk}'": [a, b, c],
        "field['component'] = 'web'": [d],
        "field['environment'] = 'prod'": [d],
        "field['application'] = 'shop'": [d],
        "field['application'] = 'nothing'": [],
        "field['application'] != 'shop' AND field['type'] ~= 'INSTANCE'": [a],
        "field['component'] = 'web' OR field['name'] = 'a'": [a, d],
    }.items():
        assert names(reader, text) == sorted(expected), text
    refused = reader.get(LIST, {"filter": "field['mode'] = 'x'"})
    assert (refused.status_code, error_reason(refused)) == (400, "INVALID_FILTER")


def test_pages_contain_every_item_once(backend: Backend, reader: ApiClient) -> None:
    backend.push(with_things(1, **{f"n{number}": "same" for number in range(7)}))
    index()

    for size in (1, 3, 7):
        assert len(reader.items(LIST, "resources", page_size=size)) == 7
        found, token = [], ""
        while token or not found:
            page = find(reader, "same", f"?page_size={size}&page_token={token}").json()
            found += page["resources"]
            token = page["next_page_token"]
        assert found == reader.get(LIST).json()["resources"]
    # A page token is only valid for the same value.
    token = find(reader, "same", "?page_size=1").json()["next_page_token"]
    answer = find(reader, "other", f"?page_size=1&page_token={token}")
    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_PAGE_TOKEN")
    assert "same" not in token


def test_invalid_search_values_are_rejected(reader: ApiClient) -> None:
    for value in (
        "",
        None,
        5,
        True,
        [],
        ["x"],
        {},
        {"a": {"b": "c"}},
        {"a": [["b"]]},
        "x" * 10_001,
    ):
        answer = find(reader, value)
        assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS"), value
    for query in ("?filter=x", "?value=x", "?page_size=101"):
        assert find(reader, "x", query).status_code == 400, query
    assert reader.get(FIND).status_code == 405
    assert find(reader, {"a": ["b", 1, 1.5, True, None], "c": None}).json()["resources"] == []


def test_scope_is_required(client_with: ClientWith) -> None:
    client = client_with("state:write", "state:admin", "state:secrets", "cluster:read")

    for answer in (client.get(LIST), find(client, "x")):
        assert (answer.status_code, error_reason(answer)) == (403, "SCOPE_INSUFFICIENT")


def test_no_sensitive_value_is_shown_or_found(backend: Backend, client_with: ClientWith) -> None:
    """Also for callers with access to secrets: the index contains no secrets."""
    secret = "correct-horse-battery"
    backend.push(
        state(
            resource("a", instance({"id": "i", "name": secret, "p": secret}, path("p"))),
            resource("b", instance({"id": secret, "arn": f"arn:{secret}"})),
        )
    )
    index()

    client = client_with("state:read", "state:secrets")
    assert secret.encode() not in client.get(LIST).content
    for value in (secret, f"arn:{secret}"):
        assert find(client, value).json()["resources"] == []
    assert find(client, "i").json()["resources"][0]["name"] == "a"


def test_search_value_is_not_logged(
    backend: Backend, reader: ApiClient, capfd: pytest.CaptureFixture[str]
) -> None:
    find(reader, "arn:aws:s3:::looked-for")

    captured = capfd.readouterr()
    assert "looked-for" not in captured.out + captured.err


def matrix(client: ApiClient) -> list[State]:
    """Push a state for each of three components in each of three environments."""
    components = [uuid.uuid4() for _ in range(3)]
    environments = [uuid.uuid4() for _ in range(3)]
    for component, environment in product(components, environments):
        backend = Backend(client)
        backend.component_id, backend.environment_id = component, environment
        body = with_things(1, a="everywhere", b=f"{component}-{environment}")
        assert backend.push(body).status_code == 200
    for component in components[:2]:
        application = Application.objects.create(name="x")
        Component.objects.filter(pk=component).update(application=application)
        State.objects.filter(component=component).update(application=application)
    index()
    return list(State.objects.all())


def bindings(states: list[State]) -> list[Binding]:
    """Return bindings to ids at random, two of each set of lists that may be bound."""
    rng = random.Random(7)
    ids: dict[str, list[uuid.UUID]] = {
        "component_ids": [state.component_id for state in states],
        "environment_ids": [state.environment_id for state in states],
        "application_ids": [state.application_id for state in states if state.application_id],
    }
    found = [Binding(cluster_id=uuid.uuid4())]
    for bound in 2 * [*product((True, False), repeat=3)]:
        lists = {
            name: frozenset(rng.sample([*every, uuid.uuid4()], rng.randint(1, 3)))
            for (name, every), is_bound in zip(ids.items(), bound, strict=True)
            if is_bound
        }
        found.append(Binding(**lists))
    return found


@pytest.mark.long
def test_rows_outside_a_binding_are_excluded(client_with: ClientWith) -> None:
    states = matrix(client_with("state:write"))
    client = client_with("state:read")
    for binding in bindings(states):
        type(client.token).objects.filter(pk=client.token.pk).update(**binding.columns())
        inside = [s for s in states if binding.allows_state(
            s.component_id, s.environment_id, s.application_id)]  # fmt: skip

        expected = sorted(str(s.pk) for s in inside)
        listed = client.items(LIST, "resources", page_size=3)
        assert sorted(one["state_id"] for one in listed) == sorted(expected * 2), binding
        by_filter = client.items(LIST, "resources", filter="field['name'] = 'a'")
        assert sorted(one["state_id"] for one in by_filter) == expected
        everywhere = find(client, "everywhere").json()["resources"]
        assert sorted(one["state_id"] for one in everywhere) == expected
        for state_ in states:
            value = f"{state_.component_id}-{state_.environment_id}"
            ids = [one["state_id"] for one in find(client, value).json()["resources"]]
            assert ids == ([str(state_.pk)] if state_ in inside else [])
            query = {"filter": f"field['state_id'] = '{state_.pk}'"}
            assert len(client.get(LIST, query).json()["resources"]) == 2 * (state_ in inside)


def test_a_component_that_moves_takes_its_resources_along(client_with: ClientWith) -> None:
    states = matrix(client_with("state:write"))
    first, second = Application.objects.order_by("id")
    client = client_with("state:read", **Binding(application_ids=frozenset({first.pk})).columns())
    admin = client_with("state:admin")
    (moved,) = Component.objects.filter(application=first)
    assert len(client.items(LIST, "resources")) == 6

    body = {"component": {"application_id": str(second.pk)}}
    assert admin.send("PATCH", f"/api/v1/components/{moved.pk}", body).status_code == 200

    assert client.items(LIST, "resources") == []
    assert find(client, "everywhere").json()["resources"] == []
    assert len(states) == 9


def test_number_of_queries_is_constant(
    backend: Backend, reader: ApiClient, django_assert_num_queries: Any
) -> None:
    backend.push(with_things(1, **{f"n{number}": "same" for number in range(30)}))
    index()

    reader.get(LIST)  # the token's use is noted, once
    for size in (1, 30):  # token, page
        with django_assert_num_queries(2):
            reader.get(LIST, {"page_size": size})
        with django_assert_num_queries(2):
            reader.get(LIST, {"page_size": size, "filter": "field['type'] = 'thing'"})
        with django_assert_num_queries(2):
            assert find(reader, "same", f"?page_size={size}").status_code == 200
    assert json.loads(reader.get(LIST).content)["resources"]


@pytest.mark.parametrize("entries", [21, 1_000])
def test_a_page_of_many_in_a_binding_is_full(
    db: None, client_with: ClientWith, monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    monkeypatch.setattr(reading, "MOST_ROWS", 10)
    monkeypatch.setattr(reading, "_LEAST_ROWS", 10)
    monkeypatch.setattr(reading, "_MOST_ENTRIES", entries)
    environment = Environment.objects.create()
    states = [
        State.objects.create(component=Component.objects.create(), environment=environment)
        for _ in range(12)
    ]
    made = [
        ResourceEntry(
            state=of, component=of.component, environment=environment, address=f"a.b[{number}]",
            mode="managed", type="a", name="b",
        )
        for number, of in enumerate(random.Random(7).choices(states, k=120))
    ]  # fmt: skip
    ResourceEntry.objects.bulk_create(made)
    for bound in (states[:3], states[5:]):
        ids = {state.component_id for state in bound}
        client = client_with(
            "state:read", bound_component_ids=sorted(map(str, ids)), bound_environment_ids=None
        )
        pages, token = [], ""
        while not pages or token:
            page = client.get(LIST, {"page_size": 7, "page_token": token}).json()
            pages.append([one["address"] for one in page["resources"]])
            token = page["next_page_token"]
        # Of so many entries of an index a page is made, in equal shares for each value.
        full = min(7, entries // len(bound))
        assert [len(page) for page in pages[:-1]] == [full] * (len(pages) - 1)
        listed = [address for page in pages for address in page]
        assert listed == [one.address for one in made if one.component_id in ids]
        typed = client.items(LIST, "resources", page_size=7, filter="field['name'] CONTAINS 'b'")
        assert [one["address"] for one in typed] == listed
