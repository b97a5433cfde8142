"""Bindings by name, resolved when a key or token is created."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from apikeys.bindings import Binding
from apikeys.models import MAX_BOUND_IDS, ApiKey
from states.models import Application, Component, Environment, SlugClaim, State
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith
from tests.conftest import error_reason

SCOPES = ("apikey:read", "apikey:write", "state:read", "state:write")


class World:
    """shop/network and network in prod, bank/ledger in dev."""

    def __init__(self) -> None:
        self.shop, self.bank = (
            Application.objects.create(name=name, slug=name) for name in ("shop", "bank")
        )
        self.prod, self.dev = (
            Environment.objects.create(name=name, slug=name) for name in ("prod", "dev")
        )
        self.network = self._state("network", self.shop, self.prod)
        self.other_network = self._state("network", None, self.prod)
        self.ledger = self._state("ledger", self.bank, self.dev)

    def _state(self, slug: str, application: Any, environment: Environment) -> Component:
        component = Component.objects.create(name=slug, slug=slug, application=application)
        State.objects.create(component=component, environment=environment, application=application)
        return component


@pytest.fixture
def world(db: None) -> World:
    return World()


def ids(*entries: Any) -> frozenset[uuid.UUID]:
    return frozenset(entry.pk for entry in entries)


def create(client: KeyClient, path: str = "/v1/api-keys", **binding: Any) -> Any:
    return client.send(
        "POST", path, {"name": "new", "scopes": ["state:read", "state:write"], "binding": binding}
    )


def made(answer: Any) -> Any:
    """Return the binding of the created key or token."""
    assert answer.status_code == 201, answer.content
    return next(iter(answer.json().values()))["binding"]


@pytest.mark.parametrize("path", ["/v1/api-keys", "/v1/access-tokens"])
def test_names_become_ids(world: World, key_with: KeyWith, path: str) -> None:
    key = key_with(*SCOPES)
    for given, binding in (
        ({"components": ["shop/network"]}, Binding(component_ids=ids(world.network))),
        ({"components": ["network"]}, Binding(component_ids=ids(world.other_network))),
        (
            {"components": ["network", "bank/ledger"], "component_ids": [str(world.network.pk)]},
            Binding(component_ids=ids(world.network, world.other_network, world.ledger)),
        ),
        ({"applications": ["shop"]}, Binding(application_ids=ids(world.shop))),
        (
            {"environments": ["prod", "prod"], "applications": ["bank", "shop"]},
            Binding(environment_ids=ids(world.prod), application_ids=ids(world.shop, world.bank)),
        ),
    ):
        assert made(create(key, path, **given)) == binding.described()


def test_former_name_resolves_to_the_renamed_component(world: World, key_with: KeyWith) -> None:
    SlugClaim.objects.create(
        kind="component", parent_id=world.shop.pk, slug="net", entry_id=world.network.pk
    )
    binding = made(create(key_with(*SCOPES), components=["shop/net"]))
    assert binding["component_ids"] == [str(world.network.pk)]


def test_patch_resolves_names(world: World, key_with: KeyWith) -> None:
    key, target = key_with(*SCOPES), key_with("state:read")
    answer = key.send("PATCH", target.path, {"binding": {"environments": ["dev"]}})

    assert answer.status_code == 200
    assert target.key.binding == Binding(environment_ids=ids(world.dev))


BOUND = {
    "shop": lambda world: Binding(application_ids=ids(world.shop)),
    "prod": lambda world: Binding(environment_ids=ids(world.prod)),
    "network": lambda world: Binding(component_ids=ids(world.network)),
    "cluster": lambda world: Binding(cluster_id=world.shop.pk),
}


@pytest.mark.both
@pytest.mark.parametrize("caller", BOUND)
@pytest.mark.parametrize(
    ("field", "outside"),
    [("components", "bank/ledger"), ("environments", "dev"), ("applications", "bank")],
)
def test_names_outside_the_binding_are_unknown(
    world: World, key_with: KeyWith, caller: str, field: str, outside: str
) -> None:
    key = key_with(*SCOPES, binding=BOUND[caller](world))
    found = []
    for name in (outside, "nothing", "nothing/at-all", "Not A Slug", str(uuid.uuid4())):
        answer = create(key, **{field: [name]})
        assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")
        (violation,) = answer.json()["error"]["details"][1]["field_violations"]
        found.append(violation)
    assert {tuple(one.items()) for one in found} == {
        (
            ("field", f"binding.{field}.0"),
            ("description", f"No such {field[:-1]}."),
            ("reason", f"UNKNOWN_{field[:-1].upper()}"),
        )
    }
    assert ApiKey.objects.count() == 1


def test_a_component_of_the_application_is_inside_of_it(world: World, key_with: KeyWith) -> None:
    """The result is bound to both, so that it loses access if the component moves."""
    key = key_with(*SCOPES, binding=Binding(application_ids=ids(world.shop)))
    both = Binding(component_ids=ids(world.network), application_ids=ids(world.shop))
    given = {"components": ["shop/network"]}
    assert made(create(key, **given)) == both.described()
    assert made(create(key, component_ids=[str(world.network.pk)])) == both.described()
    for outside in (world.ledger.pk, world.other_network.pk, uuid.uuid4()):
        assert create(key, component_ids=[str(outside)]).status_code == 400
    wider = create(key, environments=["prod"])
    assert (wider.status_code, error_reason(wider)) == (403, "GRANT_EXCEEDED")

    secret = create(key, "/v1/access-tokens", **given).json()["secret"]
    token = KeyClient(secret)
    path = f"/api/v1/state/{world.network.pk}/env/{world.dev.pk}"
    document = {"version": 4, "serial": 1, "lineage": "x"}
    assert token.send("POST", path, document).status_code == 200
    State.objects.filter(component=world.network).update(application=world.bank)
    assert token.get(path).status_code == 404


def test_narrowed_maker_narrows_its_child(world: World, key_with: KeyWith) -> None:
    maker = key_with(*SCOPES)
    child_id = create(maker, components=["shop/network"]).json()["api_key"]["id"]
    other_id = create(maker, applications=["bank"]).json()["api_key"]["id"]
    operator: KeyOwner = key_with(*SCOPES)
    answer = operator.send("PATCH", maker.path, {"binding": {"applications": ["shop"]}})
    assert answer.status_code == 200

    assert ApiKey.objects.get(pk=child_id).binding == Binding(
        component_ids=ids(world.network), application_ids=ids(world.shop)
    )
    assert ApiKey.objects.get(pk=other_id).revoked_at is not None


def test_too_many_names_are_rejected(world: World, key_with: KeyWith) -> None:
    many = [str(uuid.uuid4()) for _ in range(MAX_BOUND_IDS)]
    answer = create(key_with(*SCOPES), component_ids=many, components=["network"])

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")


def test_names_cost_the_same(
    world: World, key_with: KeyWith, django_assert_max_num_queries: Any
) -> None:
    """However many there are, of all kinds."""
    names = [f"n{number}" for number in range(100)]
    Component.objects.bulk_create(
        Component(name=name, slug=name, application=world.shop) for name in names
    )
    key = key_with(*SCOPES)
    with django_assert_max_num_queries(40):
        made(create(key, components=[f"shop/{name}" for name in names]))
