"""GET /api/v1/providers, /resource-types and /terraform-versions."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from typing import Any

import pytest
from django.db import connection

from apikeys.bindings import Binding
from states.models import CountTotal, State, StateCount
from states.models.resource_counts import Amount, Counted, Kind
from states.targets import StateTarget
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import ENCRYPTED, instance, resource, state
from tests.states.test_list_resources import bindings, matrix
from tests.support.plans import analyze, plans_of
from tools.bench.bulk_states import load_states

PROVIDERS, TYPES = "/api/v1/providers", "/api/v1/resource-types"
VERSIONS = "/api/v1/terraform-versions"
AWS = "registry.terraform.io/hashicorp/aws"


def document(serial: int, version: str, *types: str) -> bytes:
    """Return a document with a resource of each type; those that begin with "data." are data."""
    things = [
        resource(
            f"r{number}",
            instance(),
            type=name.removeprefix("data."),
            mode="data" if name.startswith("data.") else "managed",
            provider=f'provider["{AWS}"]' if "aws_" in name else 'provider["example.org/x/y"]',
        )
        for number, name in enumerate(types)
    ]
    written = {**json.loads(state(*things)), "serial": serial, "terraform_version": version}
    return json.dumps(written).encode()


def counts(client: ApiClient, path: str) -> Any:
    name = path.rpartition("/")[2].replace("-", "_")
    return client.items(path, name, page_size=2)


def test_states_are_counted_by_provider_type_and_version(
    backend: Backend, reader: ApiClient
) -> None:
    other = Backend(backend.client)
    backend.push(document(1, "1.11.4", "aws_x", "aws_x", "data.aws_y", "thing"))
    other.push(document(1, "1.5.0", "aws_x"))
    Backend(backend.client).push(ENCRYPTED)
    assert counts(reader, TYPES) == []
    index()

    assert counts(reader, PROVIDERS) == [
        {"provider": "example.org/x/y", "states": 1, "resources": 1, "data_sources": 0},
        {"provider": AWS, "states": 2, "resources": 3, "data_sources": 1},
    ]
    assert counts(reader, TYPES) == [
        {"resource_type": "aws_x", "states": 2, "resources": 3, "data_sources": 0},
        {"resource_type": "aws_y", "states": 1, "resources": 0, "data_sources": 1},
        {"resource_type": "thing", "states": 1, "resources": 1, "data_sources": 0},
    ]
    assert counts(reader, VERSIONS) == [
        {"terraform_version": "1.11.4", "states": 1},
        {"terraform_version": "1.5.0", "states": 1},
    ]
    backend.push(document(2, "1.12.0", "aws_x", "thing"))
    index()
    assert [(one["resource_type"], one["resources"]) for one in counts(reader, TYPES)] == [
        ("aws_x", 2), ("thing", 1),
    ]  # fmt: skip
    assert [one["terraform_version"] for one in counts(reader, VERSIONS)] == ["1.12.0", "1.5.0"]


def test_deleted_and_restored_states_are_counted(backend: Backend, client_with: ClientWith) -> None:
    admin = backend.as_client(client_with("state:read", "state:write", "state:admin"))
    backend.push(document(1, "1.11.4", "aws_x"))
    index()
    root = backend.root

    assert admin.delete().status_code == 200
    assert counts(admin.client, TYPES) == counts(admin.client, VERSIONS) == []
    assert not StateCount.objects.exists()

    assert admin.client.send("POST", f"{root}:undelete", {}).status_code == 200
    index()
    assert len(counts(admin.client, TYPES)) == len(counts(admin.client, VERSIONS)) == 1


@pytest.mark.parametrize("version", ["", "1" * 101, "1\0"])
def test_invalid_versions_are_not_counted(
    backend: Backend, reader: ApiClient, version: str
) -> None:
    backend.push(document(1, version, "aws_x"))
    index()

    assert (counts(reader, VERSIONS), len(counts(reader, TYPES))) == ([], 1)


def test_required_scope_and_valid_queries(client_with: ClientWith, reader: ApiClient) -> None:
    client = client_with("state:write", "state:admin", "cluster:read")
    for path in (PROVIDERS, TYPES, VERSIONS):
        refused = client.get(path)
        assert (refused.status_code, error_reason(refused)) == (403, "SCOPE_INSUFFICIENT")
        for query in ({"filter": "x"}, {"page_size": "101"}, {"page_token": "x"}):
            assert reader.get(path, query).status_code == 400
        assert reader.send("POST", path, {}).status_code == 405


@pytest.mark.slow
def test_counts_cover_visible_states_only(client_with: ClientWith) -> None:
    """Whatever was pushed, deleted and indexed, and whatever the caller is bound to."""
    writer = client_with("state:write", "state:admin")
    states = matrix(writer)
    client, rng = client_with("state:read"), random.Random(5)
    now: dict[Any, tuple[str, list[str]]] = {}
    for serial in range(2, 6):
        for each in states:
            backend = Backend(writer)
            backend.component_id, backend.environment_id = each.component_id, each.environment_id
            if rng.random() < 0.2 and each.pk in now:
                assert backend.delete().status_code == 200
                del now[each.pk]
            elif rng.random() < 0.7 or serial == 2:
                types = rng.choices(("aws_a", "aws_b", "data.aws_b", "c", "d"), k=rng.randint(0, 4))
                now[each.pk] = (f"1.{rng.randint(1, 3)}.0", types)
                assert (
                    backend.push(document(serial * 10, *now[each.pk][:1], *types)).status_code
                    == 200
                )
        index()
        for binding in [Binding(), *bindings(states)[:15]]:
            type(client.token).objects.filter(pk=client.token.pk).update(**binding.columns())
            seen = [now[s.pk] for s in states if s.pk in now and binding.allows_state(
                s.component_id, s.environment_id, s.application_id)]  # fmt: skip
            versions = Counter(version for version, _ in seen)
            assert counts(client, VERSIONS) == [
                {"terraform_version": version, "states": number}
                for version, number in sorted(versions.items())
            ], binding
            expected: Any = defaultdict(lambda: {"states": 0, "resources": 0, "data_sources": 0})
            for _, types in seen:
                for name in types:
                    mode = "data_sources" if name.startswith("data.") else "resources"
                    expected[name.removeprefix("data.")][mode] += 1
                for name in {name.removeprefix("data.") for name in types}:
                    expected[name]["states"] += 1
            assert counts(client, TYPES) == [
                {"resource_type": name, **numbers} for name, numbers in sorted(expected.items())
            ], binding
    assert CountTotal.objects.filter(states__lt=0).count() == 0


def test_number_of_queries_is_constant(
    backend: Backend, reader: ApiClient, django_assert_num_queries: Any
) -> None:
    backend.push(document(1, "1.11.4", *(f"aws_{number}" for number in range(30))))
    index()
    reader.get(TYPES)  # the token's use is noted, once

    for size in (1, 30):
        with django_assert_num_queries(2):  # token, page
            assert reader.get(TYPES, {"page_size": size}).status_code == 200


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner")
def test_unbound_callers_are_served_from_the_totals(client_with: ClientWith) -> None:
    load_states(2_000, lambda _done: None)
    states = list(State.objects.order_by("pk"))
    for each in states[:20]:
        found = {Counted(Kind.RESOURCE_TYPE, f"t{number}"): Amount(1) for number in range(5)}
        StateCount.objects.replace(each.pk, found, **StateTarget.of(each).ids)
    StateCount.objects.bulk_create(
        StateCount(
            state_id=each.pk, **StateTarget.of(each).ids, kind=Kind.RESOURCE_TYPE, value="t0",
            resources=1, data_sources=0,
        )
        for each in states[20:]
    )  # fmt: skip
    analyze(StateCount)
    of = states[7]
    some = Binding(environment_ids=frozenset({of.environment_id}))
    few = Binding(component_ids=frozenset({of.component_id}))
    totals = CountTotal.objects.count()

    for binding, table, most in (
        (Binding(), "states_counttotal", totals),
        (some, "states_counttotal", totals),
        (few, "states_statecount", 4 * 5),
    ):
        client = client_with("state:read", **binding.columns())
        with plans_of(table, analyze=True) as plans:
            assert client.get(TYPES).status_code == 200
        (plan,) = plans
        assert 0 < plan.rows_read <= most, binding
