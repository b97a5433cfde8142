"""The engine that wrote a state, and encryption on the client: columns, filters and counts."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apikeys.bindings import Binding
from states.models import Application, Component, CountTotal, State
from states.resources import indexing
from tests.conftest import ApiClient, ClientWith
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import ENCRYPTED, instance, resource, state
from tests.support.people import person, text_of

ENGINES = "/api/v1/engines"
TERRAFORM, OPENTOFU = "registry.terraform.io/hashicorp/aws", "registry.opentofu.org/hashicorp/aws"
OTHERS = ("terraform.io/builtin/terraform", "registry.example/acme/x", "")


def document(*providers: str, serial: int = 1, mode: str = "managed") -> bytes:
    """Return a document with a resource of each provider."""
    things = [
        resource(f"r{n}", instance(), provider=f'provider["{one}"]', mode=mode)
        for n, one in enumerate(providers)
    ]
    return json.dumps({**json.loads(state(*things)), "serial": serial}).encode()


def shown(backend: Backend) -> tuple[str | None, bool]:
    found = backend.look().json()["state"]
    return found["engine"], found["client_encrypted"]


def counts(client: ApiClient) -> dict[str, tuple[int, int]]:
    found = client.items(ENGINES, "engines", page_size=2)
    return {one["engine"]: (one["states"], one["client_encrypted_states"]) for one in found}


@pytest.mark.parametrize(
    ("body", "engine"),
    [
        (document(TERRAFORM, *OTHERS), "TERRAFORM"),
        (document(TERRAFORM, mode="data"), "TERRAFORM"),
        (document(OPENTOFU, *OTHERS), "OPENTOFU"),
        (document(OPENTOFU, TERRAFORM), "MIXED"),
        (document(*OTHERS), "UNKNOWN"),
        (document(), "UNKNOWN"),
        (document("registry.terraform.io.example/a/b", "x/registry.opentofu.org/y"), "UNKNOWN"),
        (b'{"version":3,"serial":1,"lineage":"l"}', "UNKNOWN"),
    ],
)
def test_engine_follows_the_registries(
    backend: Backend, reader: ApiClient, body: bytes, engine: str
) -> None:
    assert backend.push(body).status_code == 200
    assert shown(backend) == (None, False)
    index()
    assert shown(backend) == (engine, False)
    assert counts(reader) == {engine: (1, 0)}
    listed = reader.items("/api/v1/states", "states", filter=f"field['engine'] = '{engine}'")
    assert [one["id"] for one in listed] == [str(backend.record.pk)]
    assert not reader.items("/api/v1/states", "states", filter=f"field['engine'] != '{engine}'")


def test_encrypted_states_are_found_and_counted(backend: Backend, reader: ApiClient) -> None:
    plain = Backend(backend.client)
    plain.push(document(OPENTOFU))
    backend.push(ENCRYPTED)
    index()

    assert shown(backend) == ("OPENTOFU", True)
    assert counts(reader) == {"OPENTOFU": (2, 1)}
    for value, own in (("true", backend), ("false", plain)):
        text = f"field['client_encrypted'] = {value}"
        listed = reader.items("/api/v1/states", "states", filter=text)
        assert [(one["id"], one["client_encrypted"]) for one in listed] == [
            (str(own.record.pk), own is backend)
        ]
    # Decrypted by its owner.
    decrypted = {**json.loads(document(TERRAFORM, serial=2)), "lineage": "x"}
    assert backend.push(json.dumps(decrypted).encode()).status_code == 200
    index()
    assert shown(backend) == ("TERRAFORM", False)
    assert counts(reader) == {"OPENTOFU": (1, 0), "TERRAFORM": (1, 0)}


def test_counts_follow_deletion_and_undeletion(admin: Backend, reader: ApiClient) -> None:
    admin.push(ENCRYPTED)
    index()
    pk = admin.record.pk
    admin.client.delete(f"/api/v1/states/{pk}")
    assert counts(reader) == {}
    admin.client.post(f"/api/v1/states/{pk}:undelete", "{}", "application/json")
    assert counts(reader) == {}
    index()
    assert counts(reader) == {"OPENTOFU": (1, 1)}
    # An earlier release deletes a state without its counts.
    State.objects.update(deleted_at="2026-01-01T00:00:00Z", indexed_number=0)
    indexing.mark_for_indexing()
    assert counts(reader) == {}
    assert set(CountTotal.objects.values_list("states", flat=True)) == {0}


def test_counts_stay_within_the_binding(
    backend: Backend, reader: ApiClient, client_with: ClientWith
) -> None:
    states = [backend, *(Backend(backend.client) for _ in range(2))]
    shop = Application.objects.create(name="shop", slug="shop")
    for name, each in zip(("web", "api"), states[1:], strict=True):
        component = Component.objects.create(name=name, slug=name, application=shop)
        each.component_id = component.pk
    for one, body in zip(states, (document(TERRAFORM), document(OPENTOFU), ENCRYPTED), strict=True):
        one.push(body)
    index()
    assert counts(reader) == {"OPENTOFU": (2, 1), "TERRAFORM": (1, 0)}
    in_shop = frozenset({shop.pk})
    for binding, expected in (
        (Binding(component_ids=frozenset({states[2].component_id})), {"OPENTOFU": (1, 1)}),
        (Binding(environment_ids=frozenset({states[1].environment_id})), {"OPENTOFU": (1, 0)}),
        (Binding(component_ids=frozenset({uuid.uuid4()})), {}),
        (Binding(application_ids=in_shop), {"OPENTOFU": (2, 1)}),
        (
            Binding(None, None, frozenset({states[1].environment_id}), in_shop),
            {"OPENTOFU": (1, 0)},
        ),
        (Binding(application_ids=frozenset({uuid.uuid4()})), {}),
    ):
        assert counts(client_with("state:read", **binding.columns())) == expected, binding


def test_number_of_queries_of_a_page(backend: Backend, client_with: ClientWith) -> None:
    backend.push(ENCRYPTED)
    index()
    bound = client_with("state:read", bound_component_ids=[str(backend.component_id)])
    for client in (client_with("state:read"), bound):
        with CaptureQueriesContext(connection) as queries:
            client.get(ENGINES)
        about = [
            q["sql"] for q in queries if "counttotal" in q["sql"] or "states_state" in q["sql"]
        ]
        assert len(about) == 2


def test_states_of_an_earlier_release_are_filled_by_indexing(
    backend: Backend, reader: ApiClient
) -> None:
    backend.push(document(OPENTOFU))
    index()
    State.objects.update(engine=None, index_key=f"6.{indexing.stamp().partition('.')[2]}")
    CountTotal.objects.filter(kind="engine").delete()
    indexing.mark_for_indexing()
    index()
    assert shown(backend) == ("OPENTOFU", False)
    assert counts(reader) == {"OPENTOFU": (1, 0)}


def test_the_admin_lists_and_filters(backend: Backend) -> None:
    backend.push(ENCRYPTED)
    other = Backend(backend.client)
    other.push(document(TERRAFORM))
    index()
    viewer = person("viewer")
    names: dict[Any, str] = {one: str(one.component_id) for one in (backend, other)}

    def listed(query: str) -> str:
        return text_of(viewer.get(f"/admin/states/state/?{query}"))

    assert "OpenTofu, encrypted" in listed("")
    for query, own, hidden in (
        ("engine=TERRAFORM", other, backend),
        ("engine=OPENTOFU", backend, other),
        ("is=encrypted", backend, other),
    ):
        text = listed(query)
        assert names[own] in text, query
        assert names[hidden] not in text, query
    assert "OpenTofu, encrypted on the client" in text_of(
        viewer.get(f"/admin/states/state/{backend.record.pk}/change/")
    )
