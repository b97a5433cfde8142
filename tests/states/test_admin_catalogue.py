"""Applications, components and environments in the admin."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from apikeys.models import AuditEvent
from states.models import Application, Component, Environment, State
from tests.support.people import person, reads_of, statements, text_of

KINDS = {"application": Application, "component": Component, "environment": Environment}
every_kind = pytest.mark.parametrize("kind", KINDS)


def root(kind: str) -> str:
    return f"/admin/states/{kind}/"


@every_kind
@pytest.mark.parametrize(
    ("group", "statuses"),
    [("", [403] * 3), ("viewer", [200, 200, 403]), ("operator", [200, 200, 403]),
     ("administrator", [200, 200, 200])],
)  # fmt: skip
def test_pages_require_permissions(db: None, kind: str, group: str, statuses: list[int]) -> None:
    entry = KINDS[kind].objects.create(name="one")
    client = person(*filter(None, [group]))
    pages = [root(kind), f"{root(kind)}{entry.pk}/change/", f"{root(kind)}add/"]

    assert [client.get(path).status_code for path in pages] == statuses
    if group != "administrator":
        assert [client.post(path, {"name": "two"}).status_code for path in pages[1:]] == [403, 403]
    delete = client.get(f"{root(kind)}{entry.pk}/delete/").status_code
    assert delete == (200 if group == "administrator" else 403)


@every_kind
def test_unused_entry_is_deleted(db: None, kind: str) -> None:
    entry = KINDS[kind].objects.create(name="old", slug="old")
    delete = f"{root(kind)}{entry.pk}/delete/"
    client = person("administrator")
    assert "old" in text_of(client.get(delete))

    answer = client.post(delete, {"post": "yes"}, follow=True)

    assert answer.redirect_chain[-1][0] == root(kind)
    assert not KINDS[kind].objects.exists()
    event = AuditEvent.objects.get(action=f"{kind}.delete")
    assert (event.actor_name, event.details) == (
        "administrator-person", {"name": "old", "slug": "old"}
    )  # fmt: skip


def test_a_used_entry_cannot_be_deleted(db: None) -> None:
    component = Component.objects.create(name="network", slug="network")
    environment = Environment.objects.create(name="prod", slug="prod")
    State.objects.create(component=component, environment=environment)

    answer = person("administrator").post(
        f"{root('component')}{component.pk}/delete/", {"post": "yes"}, follow=True
    )

    assert 'The component "network" still has states, or deleted states' in text_of(answer)
    assert Component.objects.exists()


@every_kind
def test_add_and_rename(db: None, kind: str) -> None:
    client = person("administrator")
    added = client.post(f"{root(kind)}add/", {"name": "billing"})
    entry = KINDS[kind].objects.get()
    assert (added.status_code, entry.name) == (302, "billing")
    client.post(f"{root(kind)}{entry.pk}/change/", {"name": "payments"})

    entry.refresh_from_db()
    assert entry.name == "payments"
    events = AuditEvent.objects.filter(resource_id=str(entry.pk)).order_by("id")
    assert [(e.action, e.actor_name) for e in events] == [
        (f"{kind}.create", "administrator-person"), (f"{kind}.update", "administrator-person")
    ]  # fmt: skip
    assert events[1].details == {"name": {"from": "billing", "to": "payments"}}


def test_demand_a_lock(db: None) -> None:
    client = person("administrator")
    client.post(f"{root('environment')}add/", {"name": "prod", "require_lock": "on"})
    environment = Environment.objects.get()
    assert environment.require_lock
    change = f"{root('environment')}{environment.pk}/change/"
    assert "Require a lock" in text_of(client.get(change))
    client.post(change, {"name": "prod"})

    environment.refresh_from_db()
    assert not environment.require_lock
    event = AuditEvent.objects.get(action="environment.update")
    assert event.details == {"require_lock": {"from": True, "to": False}}


@every_kind
def test_a_name_is_needed(db: None, kind: str) -> None:
    client = person("administrator")
    for name in ("", "   ", "x" * 201, "a\0b"):
        answer = client.post(f"{root(kind)}add/", {"name": name})
        assert answer.status_code == 200
        assert b"errorlist" in answer.content
    assert not KINDS[kind].objects.exists()


def test_a_component_takes_its_states_along(db: None) -> None:
    old, new = (Application.objects.create(name=name) for name in ("old", "new"))
    component = Component.objects.create(name="network", application=old)
    state = State.objects.create(
        component=component, environment=Environment.objects.create(), application=old
    )
    client = person("administrator")

    moved = {"name": "network", "application": new.name}
    client.post(f"{root('component')}{component.pk}/change/", moved)
    state.refresh_from_db()
    assert state.application_id == new.pk

    client.post(
        f"{root('component')}{component.pk}/change/", {"name": "network", "application": ""}
    )
    state.refresh_from_db()
    assert state.application_id is None
    odd = {"name": "network", "application": str(uuid.uuid4())}
    answer = client.post(f"{root('component')}{component.pk}/change/", odd)
    assert b"errorlist" in answer.content
    event = AuditEvent.objects.filter(action="component.update").order_by("id")[0]
    assert event.details == {"application_id": {"from": str(old.pk), "to": str(new.pk)}}


def test_the_application_of_a_component_is_named(db: None) -> None:
    """An unchanged form keeps the application despite other equal names; an ID works too."""
    own, other = (Application.objects.create(name="billing") for _ in range(2))
    component = Component.objects.create(name="network", application=own)
    address = f"{root('component')}{component.pk}/change/"
    client = person("administrator")
    form = client.get(address).content.decode()
    assert 'value="billing"' in form
    assert 'data-names="/admin/names/application/"' in form

    def change(application: str) -> Any:
        answer = client.post(address, {"name": "renamed", "application": application})
        component.refresh_from_db()
        return answer

    change("billing")
    assert (component.name, component.application_id) == ("renamed", own.pk)
    change(str(other.pk))
    assert component.application_id == other.pk
    change("")
    assert component.application_id is None
    assert "There are 2 applications named billing" in text_of(change("billing"))
    assert "There is no application named x." in text_of(change("x"))
    assert component.application_id is None


@pytest.mark.both
@every_kind
def test_the_list_is_found_by_a_piece_of_a_name(db: None, kind: str) -> None:
    entries = [KINDS[kind].objects.create(name=name) for name in ("a%c", "abc", "Abc", "")]
    client = person("viewer")

    def found(text: str) -> list[Any]:
        return [e.name for e in client.get(root(kind), {"q": text}).context["cl"].result_list]

    assert found("") == ["", "Abc", "a%c", "abc"]
    assert found("a") == ["Abc", "a%c", "abc"]
    assert found("a%") == ["a%c"]
    assert found("bC") == ["Abc", "abc"]
    assert found("cb") == []
    assert found(str(entries[2].pk)) == ["Abc"]
    assert f"unnamed, {entries[3].pk}" in text_of(client.get(root(kind)))


@pytest.mark.both
@every_kind
def test_the_list_costs_the_same(db: None, kind: str) -> None:
    client = person("viewer")
    table = KINDS[kind]._meta.db_table
    costs = []
    for count in (30, 30):
        KINDS[kind].objects.bulk_create(KINDS[kind](name=f"n{n % 7}") for n in range(count))
        with statements() as found:
            client.get(root(kind))
        assert len(reads_of(table, found)) == 1
        costs.append(len(found))
    assert costs[0] == costs[1]

    first = client.get(root(kind))
    following = client.get(root(kind) + first.context["cl"].next_url)
    shown = [e.pk for answer in (first, following) for e in answer.context["cl"].result_list]
    assert len(set(shown)) == 60


def test_page_lists_the_components_of_an_application(db: None) -> None:
    application = Application.objects.create(name="billing")
    Component.objects.create(name="inside", application=application)
    Component.objects.create(name="outside")
    client = person("viewer")
    shown = client.get(f"/admin/states/application/{application.pk}/change/").content.decode()
    link = f"/admin/states/component/?application={application.pk}"
    assert link in shown

    text = text_of(client.get(link))
    assert "inside" in text
    assert "outside" not in text
    for odd in ("x", str(uuid.uuid4())):
        assert "No components" in text_of(client.get(f"/admin/states/component/?application={odd}"))


def test_a_refused_form_keeps_its_values(db: None) -> None:
    Environment.objects.create(name="Production", slug="production")

    refused = person("administrator").post(
        f"{root('environment')}add/", {"name": "production", "require_lock": "on"}
    )

    assert "Another entry has this name" in text_of(refused)
    form = refused.context["adminform"].form
    assert (form["name"].value(), form["require_lock"].value()) == ("production", True)
    assert Environment.objects.count() == 1
