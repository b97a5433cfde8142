"""The part of the catalogue that a bound token can read, and the part that it can change."""

from __future__ import annotations

import base64
import uuid
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import Value
from django.db.models.functions import Concat
from django.utils import timezone

from apikeys.actors import Actor
from apikeys.bindings import Binding
from infra_service.lib.database.bounded_pages import reading
from states.actions.registration import find_or_register
from states.errors import StateNotFound
from states.models import Application, Component, Environment, State
from states.targets import StateTarget
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.support.plans import analyze, plans_of, steps_of_sqlite

SCOPES = ("state:read", "state:write", "state:admin")
KINDS = {"application": Application, "component": Component, "environment": Environment}


class World:
    """shop/web in dev and prod, shop/db in prod, bank/ledger in prod; and unused entries."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {
            name: KINDS[kind]._default_manager.create(name=name)
            for kind, names in {
                "application": ("shop", "bank", "empty"),
                "component": ("web", "db", "ledger", "idle"),
                "environment": ("dev", "prod", "unused"),
            }.items()
            for name in names
        }
        for component, application in (("web", "shop"), ("db", "shop"), ("ledger", "bank")):
            found = Component.objects.filter(name=component)
            found.update(application=self.entries[application])
        for component, environment in (
            ("web", "dev"), ("web", "prod"), ("db", "prod"), ("ledger", "prod"),
        ):  # fmt: skip
            target = StateTarget(component_id=self[component], environment_id=self[environment])
            find_or_register(target=target, actor=Actor(name="test"))

    def __getitem__(self, name: str) -> Any:
        return self.entries[name].pk

    def path(self, name: str) -> str:
        return f"/api/v1/{self.entries[name]._meta.model_name}s/{self[name]}"


@pytest.fixture
def world(db: None) -> World:
    return World()


BOUND: dict[str, tuple[list[str], ...]] = {
    "nothing": ([], []),
    "dev": ([], ["dev"]),
    "prod": ([], ["prod"]),
    "both environments": ([], ["dev", "unused"]),
    "web": (["web"], []),
    "web and idle": (["web", "idle"], []),
    "db": (["db"], []),
    "web in dev": (["web"], ["dev"]),
    "db in dev": (["db"], ["dev"]),
    "shop": ([], [], ["shop"]),
    "empty": ([], [], ["empty"]),
    "both applications": ([], [], ["shop", "bank"]),
    "shop in dev": ([], ["dev"], ["shop"]),
    "web of shop": (["web"], [], ["shop", "bank"]),
    "ledger of shop": (["ledger"], [], ["shop"]),
}
# The entries visible to each binding, and the entries that it may change.
SEES: dict[str, tuple[str, str]] = {
    "nothing": (
        "bank db dev empty idle ledger prod shop unused web",
        "bank db dev empty idle ledger prod shop unused web",
    ),
    "dev": ("dev shop web", "dev"),
    "prod": ("bank db ledger prod shop web", "prod"),
    "both environments": ("dev shop unused web", "dev unused"),
    "web": ("dev prod shop web", "web"),
    "web and idle": ("dev idle prod shop web", "idle web"),
    "db": ("db prod shop", "db"),
    "web in dev": ("dev shop web", ""),
    "db in dev": ("db dev", ""),
    "shop": ("db dev prod shop web", "db shop web"),
    "empty": ("empty", "empty"),
    "both applications": ("bank db dev ledger prod shop web", "bank db ledger shop web"),
    "shop in dev": ("db dev shop web", ""),
    "web of shop": ("dev prod shop web", "web"),
    "ledger of shop": ("", ""),
}


def bound(client_with: ClientWith, world: World, name: str) -> ApiClient:
    lists = [frozenset(world[e] for e in entries) or None for entries in BOUND[name]]
    return client_with(*SCOPES, **Binding(None, *lists).columns())


def test_a_bound_list_in_the_order_of_names(client_with: ClientWith, world: World) -> None:
    client = bound(client_with, world, "prod")

    for order, names in {
        "name": ["db", "ledger", "web"],
        "name desc": ["web", "ledger", "db"],
    }.items():
        found = client.items("/api/v1/components", "components", page_size=1, order_by=order)
        assert [entry["name"] for entry in found] == names


def test_filtered_pages_of_a_bound_list_are_complete(client_with: ClientWith, world: World) -> None:
    """The filter excludes most components of the states inside the binding."""
    actor, bank = Actor(name="test"), world["bank"]
    for number in range(12):
        target = StateTarget(component_id=uuid.uuid4(), environment_id=world["prod"])
        find_or_register(target=target, actor=actor)
        if number % 4 == 3:
            Component.objects.filter(pk=target.component_id).update(application=bank)
    client = bound(client_with, world, "prod")

    of_bank = f"field['application_id'] = '{bank}'"
    found = client.items("/api/v1/components", "components", page_size=1, filter=of_bank)

    ids = Component.objects.filter(application=bank).values_list("pk", flat=True)
    assert [entry["id"] for entry in found] == sorted(map(str, ids))
    assert len(found) == 4


@pytest.mark.slow
@pytest.mark.both
@pytest.mark.parametrize("name", BOUND)
def test_bound_token_sees_and_changes_entries_inside_its_binding(
    client_with: ClientWith, world: World, name: str
) -> None:
    client = bound(client_with, world, name)
    seen, changed = (set(names.split()) for names in SEES[name])

    listed = [e["name"] for kind in KINDS for e in client.items(f"/api/v1/{kind}s", f"{kind}s")]
    assert sorted(listed) == sorted(seen)
    for entry in world.entries:
        path = world.path(entry)
        assert client.get(path).status_code == (200 if entry in seen else 404), entry
        answer = client.send("PATCH", path, {"name": f"{entry} renamed"})
        expected = 200 if entry in changed else 403 if entry in seen else 404
        assert answer.status_code == expected, entry
        if expected == 403:
            assert error_reason(answer) == "BINDING_INSUFFICIENT"
    for entry in world.entries.values():
        entry.refresh_from_db()
    renamed = {name for name, entry in world.entries.items() if entry.name != name}
    assert renamed == changed


@pytest.mark.both
@pytest.mark.parametrize("name", BOUND)
def test_states_carry_no_names_but_those_that_it_sees(
    client_with: ClientWith, world: World, name: str
) -> None:
    shown = bound(client_with, world, name).items("/api/v1/states", "states")

    names = {s[f"{kind}_name"] for s in shown for kind in ("component", "environment")}
    assert names <= set(SEES[name][0].split())
    assert bool(names) is (name not in {"db in dev", "empty", "ledger of shop"})


@pytest.mark.parametrize("name", ["dev", "prod", "web in dev", "db in dev"])
def test_no_state_is_moved_from_outside(client_with: ClientWith, world: World, name: str) -> None:
    client = bound(client_with, world, name)
    for component in ("web", "db", "ledger"):
        for application in ("shop", "bank"):
            body = {"application_id": str(world[application])}
            answer = client.send("PATCH", world.path(component), body)
            assert answer.status_code in (403, 404)
    belongs = dict(State.objects.values_list("component__name", "application__name"))
    assert belongs == {"web": "shop", "db": "shop", "ledger": "bank"}


def test_bound_token_moves_components_only_between_visible_applications(
    client_with: ClientWith, world: World
) -> None:
    client = bound(client_with, world, "web")
    to_bank = {"application_id": str(world["bank"])}
    answer = client.send("PATCH", world.path("web"), to_bank)
    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")
    assert client.send("PATCH", world.path("web"), {"application_id": None}).status_code == 200


def test_deleted_states_do_not_grant_visibility(client_with: ClientWith, world: World) -> None:
    client = bound(client_with, world, "dev")
    State.objects.filter(environment=world["dev"]).update(deleted_at=timezone.now())

    assert client.items("/api/v1/components", "components") == []
    assert client.items("/api/v1/applications", "applications") == []
    assert client.get(world.path("dev")).status_code == 200


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("nothing", (201, 201, 201)),
        ("dev", (201, 201, 403)),
        ("web", (403, 403, 201)),
        ("web in dev", (403, 403, 403)),
        ("shop", (403, 403, 201)),
        ("shop in dev", (403, 403, 403)),
    ],
)
def test_bound_token_creates_entries_inside_its_binding(
    client_with: ClientWith, world: World, name: str, statuses: tuple[int, ...]
) -> None:
    client = bound(client_with, world, name)
    for kind, status in zip(KINDS, statuses, strict=True):
        answer = client.send("POST", f"/api/v1/{kind}s", {"name": "new"})
        assert answer.status_code == status, kind
        if status == 403:
            assert error_reason(answer) == "BINDING_INSUFFICIENT"


def test_components_of_a_bound_application_are_visible(
    client_with: ClientWith, world: World
) -> None:
    client = bound(client_with, world, "shop")
    for application, status in (("shop", 201), ("bank", 400), (None, 403)):
        fields = {"name": "new", "application_id": application and str(world[application])}
        assert client.send("POST", "/api/v1/components", fields).status_code == status
    # The new component is inside the binding at once. It cannot be moved outside.
    new = Component.objects.get(name="new")
    assert client.get(f"/api/v1/components/{new.pk}").status_code == 200
    for application, status in (("bank", 400), (None, 403), ("shop", 200)):
        to = {"application_id": application and str(world[application])}
        answer = client.send("PATCH", f"/api/v1/components/{new.pk}", to)
        assert answer.status_code == status
        new.refresh_from_db()
        assert new.application_id == world["shop"]
    both = bound(client_with, world, "both applications")
    to_bank = {"application_id": str(world["bank"])}
    assert both.send("PATCH", f"/api/v1/components/{new.pk}", to_bank).status_code == 200
    assert client.get(f"/api/v1/components/{new.pk}").status_code == 404


def test_no_state_is_registered_outside_a_binding(world: World) -> None:
    """As when a component is moved after the request was authorized."""
    inside = Binding(application_ids=frozenset({world["shop"]}))
    actor = Actor(name="test", grant=replace(Actor(name="test").grant, binding=inside))

    with pytest.raises(StateNotFound):
        find_or_register(
            target=StateTarget(component_id=world["ledger"], environment_id=world["dev"]),
            actor=actor,
        )
    found = find_or_register(
        target=StateTarget(component_id=world["web"], environment_id=world["unused"]), actor=actor
    )

    assert found.application_id == world["shop"]
    assert State.objects.filter(component_id=world["ledger"]).count() == 1


def test_token_bound_to_a_cluster_sees_no_states(client_with: ClientWith, world: World) -> None:
    client = client_with(*SCOPES, bound_cluster_id=uuid4())
    for kind in KINDS:
        assert client.items(f"/api/v1/{kind}s", f"{kind}s") == []
        assert client.send("POST", f"/api/v1/{kind}s", {"name": "x"}).status_code == 403
    for entry in world.entries:
        assert client.get(world.path(entry)).status_code == 404
        assert client.send("PATCH", world.path(entry), {"name": "x"}).status_code == 404


def test_application_filter_respects_the_binding(client_with: ClientWith, world: World) -> None:
    client = bound(client_with, world, "dev")
    for application, count in (("shop", 1), ("bank", 0)):
        text = f"field['application_id'] = '{world[application]}'"
        assert len(client.items("/api/v1/states", "states", filter=text)) == count
    text = f"field['application_id'] = '{world['shop']}'"
    (component,) = client.items("/api/v1/components", "components", filter=text)
    assert component["name"] == "web"


@pytest.fixture
def many(db: None, monkeypatch: pytest.MonkeyPatch) -> dict[str, uuid.UUID]:
    """Environments with states of some of 5,000 components, each ten of an application."""
    monkeypatch.setattr(reading, "MOST_ROWS", 300)
    monkeypatch.setattr(reading, "_LEAST_ROWS", 300)
    applications = Application.objects.bulk_create([Application(name=str(n)) for n in range(500)])
    components = Component.objects.bulk_create(
        [Component(name=str(n), application=applications[n // 10]) for n in range(5000)]
    )
    inside = {
        "often": components,
        "late": components[-500:],
        "seldom": components[::100],
        "once": components[-1:],
        "never": [],
    }
    environments = {name: Environment.objects.create(name=name) for name in inside}
    State.objects.bulk_create(
        State(component=c, environment=environments[name], application_id=c.application_id)
        for name, within in inside.items()
        for c in within
    )
    State.objects.filter(component=components[-2]).update(deleted_at=timezone.now())
    analyze(Application, Component, Environment, State)
    return {name: environment.pk for name, environment in environments.items()}


@pytest.mark.slow
def test_pages_contain_every_item(client_with: ClientWith, many: dict[str, uuid.UUID]) -> None:
    for names in ("late", "seldom", "once", "never", "seldom late once"):
        environments = [many[name] for name in names.split()]
        client = client_with("state:read", bound_environment_ids=list(map(str, environments)))
        states = State.objects.visible().filter(environment_id__in=environments)
        for kind in ("component", "application"):
            for text, condition in (
                ("", {}),
                ("field['name'] CONTAINS '9'", {f"{kind}__name__contains": "9"}),
                ("field['name'] = '499'", {f"{kind}__name": "499"}),
            ):
                listed = client.items(f"/api/v1/{kind}s", f"{kind}s", filter=text)
                of_kind = states.filter(**condition).values_list(f"{kind}_id", flat=True)
                expected = [str(pk) for pk in sorted(set(of_kind))]
                assert [entry["id"] for entry in listed] == expected, (names, kind, text)


@pytest.mark.slow
def test_a_page_token_does_not_disclose_hidden_entries(
    client_with: ClientWith, many: dict[str, uuid.UUID]
) -> None:
    """A page that reads only hidden entries ends at the last of them."""
    client = client_with("state:read", bound_environment_ids=[str(many["late"])])
    seen = State.objects.filter(environment_id=many["late"]).values("component_id")
    hidden = Component.objects.exclude(pk__in=seen)
    hidden.update(name=Concat(Value("00-hidden-"), "name"))

    page = client.get("/api/v1/components", {"order_by": "name"}).json()

    assert page["components"] == []
    readable = page["next_page_token"].partition(":")[0]
    assert b"hidden" not in base64.urlsafe_b64decode(f"{readable}==")
    listed = client.items("/api/v1/components", "components", order_by="name")
    assert len(listed) == 499


@pytest.mark.slow
def test_a_page_reads_no_more_than_it_shows_or_the_token_has(
    client_with: ClientWith, many: dict[str, uuid.UUID]
) -> None:
    # 1. Ten components and the next: each is found in an index of states, then looked up.
    for names, most in {
        "often": 22, "late": 22, "seldom": 22, "once": 2, "never": 0, "late once": 24,
    }.items():  # fmt: skip
        environments = [str(many[name]) for name in names.split()]
        assert_rows_read(
            client_with("state:read", bound_environment_ids=environments), "component", most
        )
    # 2. No index has the applications of an environment's states in their order: all are looked up
    #    where they are few, else the list is walked.
    for name, most in {"often": 322, "seldom": 100, "once": 2, "never": 0}.items():
        reader = client_with("state:read", bound_environment_ids=[str(many[name])])
        assert_rows_read(reader, "application", most)
    # 3. A token for five components: each has a state in one environment, a component in two.
    few = [str(pk) for pk in Component.objects.values_list("pk", flat=True)[1000:1005]]
    reader = client_with("state:read", bound_component_ids=few)
    assert_rows_read(reader, "application", 5 + 1)
    assert_rows_read(reader, "environment", 6 + 5)
    # 4. The components of an application have their own index. Their states are in three
    # environments.
    columns = Binding(application_ids=frozenset({Application.objects.all()[0].pk})).columns()
    reader = client_with("state:read", **columns)
    assert_rows_read(reader, "component", 10 + 10)
    # PostgreSQL reads the five environments once or twice: it counts the pages that rows of other
    # tests, rolled back, have left.
    assert_rows_read(reader, "environment", 12 + 2 * 5)


def assert_rows_read(reader: ApiClient, kind: str, most: int) -> None:
    """Check the rows read for a page of ten; SQLite needs 50 steps per row."""
    list_page = partial(reader.get, f"/api/v1/{kind}s", {"page_size": "10"})
    assert list_page().status_code == 200
    if connection.vendor == "postgresql":
        with plans_of(f"states_{kind}", analyze=True) as plans:
            list_page()
        read = sum(plan.rows_read for plan in plans)
        assert read <= most, (kind, [(plan.rows_read, plan.types) for plan in plans])
    else:
        with steps_of_sqlite() as steps:
            list_page()
        assert len(steps) <= 50 * (most + 4)
