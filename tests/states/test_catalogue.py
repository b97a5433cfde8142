"""/api/v1/applications, /components and /environments; the effects of moving a component."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apikeys.actors import Actor
from apikeys.models import AuditEvent
from states.actions import catalogue
from states.actions.registration import find_or_register
from states.models import Application, Component, Environment, State
from states.targets import StateTarget
from tests.conftest import LONG_AGO, ApiClient, ClientWith, error_reason

MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"
KINDS = {"application": Application, "component": Component, "environment": Environment}
ACTOR = Actor(name="test")


@pytest.fixture
def admin(client_with: ClientWith) -> ApiClient:
    return client_with("state:read", "state:write", "state:admin")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def path(kind: str, entry: Any = None) -> str:
    return f"/api/v1/{kind}s" + (f"/{entry.pk}" if entry else "")


def shown(entry: Any) -> dict[str, Any]:
    fields = {"id": str(entry.pk), "name": entry.name, "slug": entry.slug}
    if isinstance(entry, Component):
        fields["application_id"] = entry.application_id and str(entry.application_id)
    if isinstance(entry, Environment):
        fields["require_lock"] = entry.require_lock
    for name in ("created_at", "updated_at"):
        fields[name] = getattr(entry, name).strftime(MOMENT)
    return fields


def test_entry_is_created(admin: ApiClient, kind: str) -> None:
    answer = admin.send("POST", path(kind), {kind: {"name": " billing "}})

    entry = KINDS[kind]._default_manager.get()
    assert (answer.status_code, answer.json()) == (201, {kind: shown(entry)})
    assert entry.name == "billing"
    event = AuditEvent.objects.get(resource_id=str(entry.pk))
    assert event.action == f"{kind}.create"
    demand = {"require_lock": False} if kind == "environment" else {}
    assert event.details == {"name": "billing", "slug": "billing", **demand}


@pytest.mark.both
@pytest.mark.parametrize(
    ("order", "names"), [("name", "abbc"), ("name desc", "cbba"), ("", "bcba")]
)
def test_in_the_order_of_names(admin: ApiClient, kind: str, order: str, names: str) -> None:
    for name in "bcba":
        KINDS[kind]._default_manager.create(name=name)

    found = admin.items(path(kind), f"{kind}s", page_size=1, order_by=order)

    assert "".join(entry["name"] for entry in found) == names


@pytest.mark.both
def test_a_prefix_matches_names_with_any_next_character(admin: ApiClient, kind: str) -> None:
    """The indexed search for a prefix ends after the last character of Unicode."""
    names = (
        "a",
        "a\ud7ff",
        "a\ud7ff\ud7ff",
        "a\ue000",
        "a\U0010ffff",
        "a\U0010ffffb",
        "b",
        "\U0010ffff",
    )
    for name in names:
        KINDS[kind].objects.create(name=name)

    for prefix in ("a", "a\ud7ff", "a\U0010ffff", "\U0010ffff", ""):
        query = {"filter": f"field['name'] STARTS_WITH '{prefix}'", "order_by": "name"}
        found = [item["name"] for item in admin.items(path(kind), f"{kind}s", **query)]
        assert found == [name for name in names if name.startswith(prefix)]
        named = KINDS[kind].objects.named(prefix).values_list("name", flat=True)
        assert list(named) == found


def test_component_of_an_application_is_created(admin: ApiClient) -> None:
    application = Application.objects.create(name="shop")
    fields = {"name": "dns", "application_id": str(application.pk)}
    answer = admin.send("POST", "/api/v1/components", {"component": fields})

    assert answer.status_code == 201
    assert answer.json()["component"]["application_id"] == str(application.pk)


@pytest.mark.both
def test_get_and_list(admin: ApiClient, kind: str) -> None:
    entries = [KINDS[kind]._default_manager.create(name=name) for name in ("b", "a", "b")]

    assert admin.get(path(kind, entries[0])).json() == {kind: shown(entries[0])}
    answer = admin.get(path(kind)).json()
    assert answer == {f"{kind}s": [shown(e) for e in entries], "next_page_token": ""}
    for text, found in {
        "field['name'] = 'b'": [entries[0], entries[2]],
        "field['name'] CONTAINS 'a'": [entries[1]],
        f"field['id'] = '{entries[1].pk}'": [entries[1]],
    }.items():
        for size in (1, 100):
            items = admin.items(path(kind), f"{kind}s", page_size=size, filter=text)
            assert items == [shown(entry) for entry in found]


def test_components_of_an_application_are_listed(admin: ApiClient) -> None:
    application = Application.objects.create()
    component = Component.objects.create(application=application)
    Component.objects.create()

    text = f"field['application_id'] = '{application.pk}'"
    assert admin.items("/api/v1/components", "components", filter=text) == [shown(component)]


@pytest.mark.both
def test_entry_is_renamed(admin: ApiClient, kind: str) -> None:
    entry = KINDS[kind]._default_manager.create(name="a")
    KINDS[kind]._default_manager.update(updated_at=LONG_AGO)
    answer = admin.send("PATCH", path(kind, entry), {kind: {"name": "b"}, "update_mask": "name"})

    entry.refresh_from_db()
    assert (answer.status_code, answer.json()) == (200, {kind: shown(entry)})
    assert entry.name == "b"
    assert entry.updated_at > LONG_AGO
    event = AuditEvent.objects.get(resource_id=str(entry.pk))
    details = {"name": {"from": "a", "to": "b"}, "slug": {"from": None, "to": "b"}}
    assert (event.action, event.details) == (f"{kind}.update", details)


def test_empty_patch_changes_no_field(admin: ApiClient, kind: str) -> None:
    entry = KINDS[kind]._default_manager.create(name="a")

    for body in ({}, {kind: {"name": "a"}}, {kind: {"id": str(uuid.uuid4()), "name": "a"}}):
        answer = admin.send("PATCH", path(kind, entry), body)
        assert (answer.status_code, answer.json()) == (200, {kind: shown(entry)})
    assert not AuditEvent.objects.filter(resource_id=str(entry.pk)).exists()


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({}, "component.name", "REQUIRED"),
        ({"name": ""}, "component.name", "BLANK"),
        ({"name": None}, "component.name", "NULL"),
        ({"name": 5}, "component.name", "INVALID"),
        ({"name": "x" * 201}, "component.name", "MAX_LENGTH"),
        ({"name": "x", "nam": "y"}, "component.nam", "UNKNOWN_FIELD"),
        ({"name": "x", "application_id": "y"}, "component.application_id", "INVALID"),
        (
            {"name": "x", "application_id": str(uuid.uuid4())},
            "component.application_id",
            "UNKNOWN_APPLICATION",
        ),
    ],
)
def test_invalid_fields_are_rejected(
    admin: ApiClient, fields: Any, field: str, reason: str
) -> None:
    answer = admin.send("POST", "/api/v1/components", {"component": fields})

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")
    violations = answer.json()["error"]["details"][1]["field_violations"]
    assert [(v["field"], v["reason"]) for v in violations] == [(field, reason)]
    assert not Component.objects.exists()


def test_unknown_id_is_not_found(admin: ApiClient, kind: str) -> None:
    for entry_id in (uuid.uuid4(), "x"):
        for method in ("GET", "PATCH"):
            answer = admin.send(method, f"{path(kind)}/{entry_id}", {})
            assert answer.status_code == 404
            assert error_reason(answer) == f"{kind.upper()}_NOT_FOUND"
            beginning = f'The {kind} "{entry_id}" does not exist. GET '
            assert answer.json()["error"]["message"].startswith(beginning)


def test_scopes_are_required(anonymous: Client, client_with: ClientWith, kind: str) -> None:
    entry = KINDS[kind]._default_manager.create(name="a")
    writer, reader = client_with("state:write"), client_with("state:read")
    body = {kind: {"name": "b"}}

    assert anonymous.get(path(kind)).status_code == 401
    for client, method, where, status in [
        (writer, "GET", path(kind), 403),
        (writer, "GET", path(kind, entry), 403),
        (writer, "POST", path(kind), 201),
        (writer, "PATCH", path(kind, entry), 403),
        (reader, "GET", path(kind), 200),
        (reader, "POST", path(kind), 403),
        (reader, "PATCH", path(kind, entry), 403),
        (client_with("state:admin"), "PATCH", path(kind, entry), 200),
        (writer, "DELETE", path(kind, entry), 403),
        (reader, "DELETE", path(kind, entry), 403),
        (client_with("state:admin"), "DELETE", path(kind, entry), 204),
    ]:
        assert client.send(method, where, body).status_code == status, (method, where)


def seen(client: ApiClient, kind: str) -> list[str]:
    return [entry["name"] for entry in client.items(path(kind), f"{kind}s")]


@pytest.fixture
def moving(db: None) -> tuple[Component, Application, Application]:
    old, new = Application.objects.create(name="old"), Application.objects.create(name="new")
    component = Component.objects.create(name="dns", application=old)
    for _ in range(2):
        find_or_register(
            target=StateTarget(component_id=component.pk, environment_id=uuid.uuid4()), actor=ACTOR
        )
    other = Component.objects.create(application=old)
    find_or_register(
        target=StateTarget(component_id=other.pk, environment_id=uuid.uuid4()), actor=ACTOR
    )
    return component, old, new


def states_of(client: ApiClient, application: Application) -> set[str]:
    text = f"field['application_id'] = '{application.pk}'"
    return {s["component_id"] for s in client.items("/api/v1/states", "states", filter=text)}


def test_the_states_of_a_component_move_with_it(
    admin: ApiClient, moving: tuple[Component, Application, Application]
) -> None:
    component, old, new = moving
    where = path("component", component)

    answer = admin.send("PATCH", where, {"component": {"application_id": str(new.pk)}})
    assert answer.json()["component"]["application_id"] == str(new.pk)
    assert states_of(admin, new) == {str(component.pk)}
    assert str(component.pk) not in states_of(admin, old)
    assert len(states_of(admin, old)) == 1
    event = AuditEvent.objects.get(action="component.update")
    assert event.details == {"application_id": {"from": str(old.pk), "to": str(new.pk)}}

    answer = admin.send("PATCH", where, {"component": {"application_id": None}})
    assert answer.json()["component"]["application_id"] is None
    assert states_of(admin, new) == set()
    assert State.objects.filter(component=component, application=None).count() == 2


def test_state_registered_after_a_move_has_the_new_application(
    admin: ApiClient, moving: tuple[Component, Application, Application]
) -> None:
    component, _, new = moving
    catalogue.change(
        model=Component,
        entry_id=component.pk,
        changes={"application_id": new.pk},
        actor=ACTOR,
    )
    find_or_register(
        target=StateTarget(component_id=component.pk, environment_id=uuid.uuid4()), actor=ACTOR
    )

    assert State.objects.filter(component=component, application=new).count() == 3


def test_a_move_costs_the_same_however_many_states(
    admin: ApiClient, moving: tuple[Component, Application, Application]
) -> None:
    component, old, new = moving

    def queries(application: Application) -> int:
        with CaptureQueriesContext(connection) as captured:
            catalogue.change(
                model=Component,
                entry_id=component.pk,
                changes={"application_id": application.pk},
                actor=ACTOR,
            )
        return len(captured)

    first = queries(new)
    for _ in range(4):
        find_or_register(
            target=StateTarget(component_id=component.pk, environment_id=uuid.uuid4()), actor=ACTOR
        )
    assert queries(old) == first
    assert not State.objects.filter(component=component).exclude(application=old).exists()
