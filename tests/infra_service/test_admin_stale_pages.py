"""Saving a page of the admin that was opened before another change does not undo this change."""

from __future__ import annotations

import datetime as dt
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.utils import timezone

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import User
from infra_service.webhooks.models import WebhookEndpoint
from states.models import Application, Component, Environment
from tests.infra_service.test_admin_webhooks import make_endpoint
from tests.support.people import log_in, person
from workloads.models import Cluster

PASSWORD, NEW = "correct horse battery staple", "staple battery horse correct"
COMMAND = Actor.of_command("test")


class Inputs(HTMLParser):
    """The inputs of a page, as a browser submits them."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.given: dict[str, list[str]] = {}
        self.feed(answer.content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        is_box = found.get("type") == "checkbox"
        is_off = found.get("type") == "submit" or (is_box and "checked" not in found)
        if tag == "input" and "name" in found and not is_off:
            self.given.setdefault(str(found["name"]), []).append(
                found.get("value") or ("on" if is_box else "")
            )


@pytest.fixture
def root(db: None) -> Client:
    return person(username="root", is_superuser=True)


@pytest.fixture
def leaver(root: Client) -> User:
    person("operator", username="leaver")
    return User.objects.get(username="leaver")


def opened(client: Client, row: Any) -> tuple[str, dict[str, list[str]]]:
    """Return the address of the page of an object, and its inputs."""
    path = f"/admin/{row._meta.app_label}/{row._meta.model_name}/{row.pk}/change/"
    return path, Inputs(client.get(path)).given


def save(client: Client, page: tuple[str, dict[str, list[str]]], **fields: Any) -> None:
    path, given = page
    answer = client.post(path, {**given, **fields})
    assert answer.status_code == 302, answer.content


def test_a_deactivated_user_stays_inactive(root: Client, leaver: User) -> None:
    page = opened(root, leaver)
    actions.deactivate_user(user=leaver, actor=COMMAND)

    save(root, page, display_name="Leaver")

    leaver.refresh_from_db()
    assert (leaver.is_active, leaver.display_name) == (False, "Leaver")


def test_a_user_keeps_a_group_removed_and_a_group_added(root: Client, leaver: User) -> None:
    page = opened(root, leaver)
    leaver.groups.set(Group.objects.filter(name="viewer"))

    save(root, page, display_name="Leaver", is_staff=[])

    leaver.refresh_from_db()
    assert list(leaver.groups.values_list("name", flat=True)) == ["viewer"]
    assert not leaver.is_staff


def test_a_new_group_does_not_bring_back_a_removed_group(root: Client, leaver: User) -> None:
    viewer = Group.objects.get(name="viewer")
    page = opened(root, leaver)
    leaver.groups.clear()

    save(root, page, groups=[*page[1]["groups"], str(viewer.pk)])

    assert list(leaver.groups.all()) == [viewer]


def test_a_user_without_groups_keeps_a_group_added(root: Client, leaver: User) -> None:
    viewer, operator = (Group.objects.get(name=name) for name in ("viewer", "operator"))
    leaver.groups.clear()
    page = opened(root, leaver)
    leaver.groups.add(viewer)

    save(root, page, display_name="Leaver")
    assert list(leaver.groups.all()) == [viewer]

    save(root, page, groups=[str(operator.pk)])
    assert set(leaver.groups.all()) == {viewer, operator}


def test_a_removed_group_stays_removed_and_an_unchecked_group_is_removed(
    root: Client, leaver: User
) -> None:
    leaver.groups.set(Group.objects.filter(name__in=("viewer", "operator")))
    page = opened(root, leaver)
    leaver.groups.remove(Group.objects.get(name="operator"))

    viewer = Group.objects.get(name="viewer")
    save(root, page, groups=[one for one in page[1]["groups"] if one != str(viewer.pk)])

    assert not leaver.groups.exists()


def test_a_new_permission_does_not_bring_back_a_removed_permission(root: Client) -> None:
    view, change, add = (
        Permission.objects.get(codename=f"{verb}_user") for verb in ("view", "change", "add")
    )
    group = Group.objects.create(name="own")
    group.permissions.set([view, change])
    page = opened(root, group)
    group.permissions.set([view])

    save(root, page, permissions=[*page[1]["permissions"], str(add.pk)])

    assert set(group.permissions.all()) == {view, add}


def test_a_group_keeps_its_permissions(root: Client) -> None:
    group = Group.objects.create(name="own")
    group.permissions.set(Permission.objects.filter(codename__in=("view_user", "change_user")))
    page = opened(root, group)
    group.permissions.set(Permission.objects.filter(codename="view_user"))

    save(root, page, name="ours")

    group.refresh_from_db()
    assert group.name == "ours"
    assert [one.codename for one in group.permissions.all()] == ["view_user"]


def test_entries_and_clusters_keep_their_values(root: Client) -> None:
    environment = Environment.objects.create(name="prod")
    component = Component.objects.create(name="network")
    cluster = Cluster.objects.create(name="one", report_interval_seconds=60)
    pages = [opened(root, row) for row in (environment, component, cluster)]
    application = Application.objects.create(name="shop")
    Environment.objects.update(require_lock=True)
    Component.objects.update(application=application)
    Cluster.objects.update(report_interval_seconds=30)

    for page in pages:
        save(root, page, name="renamed")

    for row in (environment, component, cluster):
        row.refresh_from_db()
        assert row.name == "renamed"
    assert environment.require_lock
    assert component.application == application
    assert cluster.report_interval_seconds == 30


def test_a_webhook_keeps_its_values(root: Client, leaver: User) -> None:
    endpoint = make_endpoint(leaver)
    expires_at = timezone.now() + dt.timedelta(days=1)
    WebhookEndpoint.objects.update(expires_at=expires_at)
    path = f"/admin/webhooks/webhookendpoint/{endpoint.pk}/edit/"
    page = path, Inputs(root.get(path)).given
    WebhookEndpoint.objects.update(filter="field['environment'] = 'test'")

    save(root, page, name="renamed", format=endpoint.format)

    endpoint.refresh_from_db()
    assert (endpoint.name, endpoint.filter) == ("renamed", "field['environment'] = 'test'")
    assert (endpoint.event_types, endpoint.expires_at) == (["state.push"], expires_at)


def test_an_event_of_a_webhook_that_was_removed_stays_removed(root: Client, leaver: User) -> None:
    endpoint = make_endpoint(leaver)
    WebhookEndpoint.objects.update(event_types=["state.push", "state.lock"])
    path = f"/admin/webhooks/webhookendpoint/{endpoint.pk}/edit/"
    page = path, Inputs(root.get(path)).given
    WebhookEndpoint.objects.update(event_types=["state.lock", "state.delete"])

    types = [*page[1]["event_types"], "state.unlock"]
    save(root, page, event_types=types, format=endpoint.format)

    endpoint.refresh_from_db()
    assert sorted(endpoint.event_types) == ["state.delete", "state.lock", "state.unlock"]


def test_a_link_fills_in_no_field_of_a_webhook(root: Client, leaver: User) -> None:
    endpoint = make_endpoint(leaver)
    path = f"/admin/webhooks/webhookendpoint/{endpoint.pk}/edit/"

    form = root.get(path, {"name": "linked"}).context["form"]

    assert form["name"].value() == endpoint.name


def test_changed_fields_are_saved(root: Client) -> None:
    environment = Environment.objects.create(name="prod", require_lock=True)

    save(root, opened(root, environment), require_lock=[])

    environment.refresh_from_db()
    assert (environment.name, environment.require_lock) == ("prod", False)


@pytest.mark.parametrize("whose", ["own", "another's"])
def test_a_new_password_does_not_undo_a_deactivation(
    whose: str, root: Client, leaver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a user who changes the password all the time could not be deactivated."""
    leaver.set_password(PASSWORD)
    leaver.save()
    client = Client()
    log_in(client, leaver)
    set_password = User.set_password

    def set_slowly(user: User, password: str) -> None:
        set_password(user, password)
        actions.deactivate_user(user=User.objects.get(pk=user.pk), actor=COMMAND)
        Group.objects.get(name="operator").user_set.remove(user)

    monkeypatch.setattr(User, "set_password", set_slowly)
    if whose == "own":
        given = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
        answer = client.post("/admin/password_change/", given)
    else:
        given = {"password1": NEW, "password2": NEW, "usable_password": "true"}
        answer = root.post(f"/admin/apikeys/user/{leaver.pk}/password/", given)

    assert answer.status_code == 302
    leaver.refresh_from_db()
    assert not leaver.is_active
    assert leaver.check_password(NEW)
    assert client.get("/admin/").status_code == 302
    User.objects.update(is_active=True)
    assert client.get("/admin/").status_code == 302  # the session has expired


def test_a_user_saves_each_change_of_its_columns(leaver: User) -> None:
    stale = User.objects.only("username").get(pk=leaver.pk)
    stale.display_name = "first"
    stale.save()
    stale.refresh_from_db()
    stale.display_name, stale.email = "second", "leaver@example.com"
    stale.save(update_fields=["display_name"])
    stale.display_name = "first"
    stale.save()

    leaver.refresh_from_db()
    assert (leaver.display_name, leaver.email) == ("first", "leaver@example.com")
