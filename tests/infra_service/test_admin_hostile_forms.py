"""Whatever a form or a list of the admin is sent, it is no 500."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client

from apikeys.models import User
from infra_service.admin import ReadOnlyAdmin
from states.models import State
from tests.apikeys.admin.conftest import make_key, make_token
from tests.infra_service.test_admin_webhooks import make_delivery, make_endpoint
from tests.people import log_in, person
from tests.states.conftest import backend, lock_id, locked_state  # noqa: F401 - fixtures
from workloads.models import Cluster

pytestmark = pytest.mark.both

FORM = "application/x-www-form-urlencoded"
# As they stand in a body or an address, percent-encoded.
HOSTILE = {
    "nul": "a%00b",
    "surrogate": "%ed%a0%80",
    "deep": quote("[" * 4000),
    "digits": "9" * 4400,
    "negative": "-" + "9" * 30,
    "list": quote('["\\ud800"]'),
}
if connection.vendor == "sqlite":
    # What else PostgreSQL takes, SQLite takes too.
    HOSTILE = {name: HOSTILE[name] for name in ("surrogate", "digits", "negative")}
_FIELD = re.compile(r"<(input|select|textarea)\b([^>]*)>")
_NAME, _VALUE = re.compile(r'\bname="([^"]*)"'), re.compile(r'\bvalue="([^"]*)"')


@pytest.fixture
def root(db: None, monkeypatch: pytest.MonkeyPatch) -> Client:
    # The list of all pages beside each takes a third of the time, and nothing from a request.
    monkeypatch.setattr(admin.site, "get_app_list", lambda *_: [])
    # So do choices of all rights, which are all alike.
    Permission.objects.exclude(
        pk__in=[*Permission.objects.values_list("pk", flat=True)[:3]]
    ).delete()
    client = person(username="root", is_superuser=True)
    client.raise_request_exception = False
    return client


@pytest.fixture
def objects(root: Client, operator: User, locked_state: State) -> list[Any]:  # noqa: F811
    group = Group.objects.create(name="some")
    other = User.objects.create_user("other", password="correct horse")
    inactive = User.objects.create(username="inactive", is_active=False)
    make_key(inactive)
    delivery = make_delivery(make_endpoint(operator))
    return [
        delivery, delivery.endpoint,
        make_key(operator), make_token(operator), group, other, inactive,
        Cluster.objects.create(name="c"), locked_state, locked_state.component,
        locked_state.environment, locked_state.application,
    ]  # fmt: skip


def pages_of(objects: list[Any]) -> Iterator[str]:
    yield from ("/admin/login/", "/admin/password_change/")
    for model, shown in admin.site._registry.items():
        where = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        yield from (where, f"{where}add/")
        tools = shown.tools if isinstance(shown, ReadOnlyAdmin) else ()
        tails = ("change", "delete", "password", *(name.replace("_", "-") for name in tools))
        for obj in objects:
            if type(obj) is model:
                yield from (f"{where}{obj.pk}/{tail}/" for tail in tails)


def refused(answer: Any) -> set[str]:
    """Return the fields that a form refuses, which it does whatever stands in the others."""
    context = answer.context or {}
    form = context["adminform"].form if "adminform" in context else context.get("form")
    return set(form.errors) if form else set()


def fields_of(page: str) -> dict[str, str]:
    """Return what a browser would send, percent-encoded, by name."""
    found = {}
    for kind, attributes in _FIELD.findall(page):
        name, value = _NAME.search(attributes), _VALUE.search(attributes)
        if name and name[1] != "csrfmiddlewaretoken":
            text = unescape(value[1]) if value else ""
            found[name[1]] = quote_plus(text) if kind == "input" else ""
    return found


def send(client: Client, page: str, fields: dict[str, str]) -> Any:
    body = "&".join(f"{quote_plus(name)}={value}" for name, value in fields.items())
    return client.post(page, body, content_type=FORM)


@pytest.mark.long
def test_forms(root: Client, objects: list[Any]) -> None:
    user = User.objects.get(username="root")
    wrong = []
    for page in pages_of(objects):
        log_in(root, user)
        if (shown := root.get(page)).status_code == 404:
            continue
        known = fields_of(shown.content.decode())
        valid = {**known, "username": "x", "name": "x", "reason": "x", "owner": "root"}
        names = [*known, "username", "reason", "o", "p", "_popup", "_to_field", "next"]
        given = []
        for value in HOSTILE.values():
            everywhere = send(root, page, dict.fromkeys(names, value))
            if everywhere.status_code >= 500:
                wrong.append((page, {"*": value[:20]}))
            given += [{**valid, name: value} for name in known.keys() - refused(everywhere)]
        given += [{n: v for n, v in valid.items() if n != name} for name in known]
        given += [{}, {value: value for value in HOSTILE.values()}]
        for fields in given:
            answer = send(root, page, fields)
            if answer.status_code >= 500:
                wrong.append((page, {n: v[:20] for n, v in fields.items() if valid.get(n) != v}))
            User.objects.filter(pk=user.pk).update(username="root")
    assert wrong == []


@pytest.mark.long
def test_addresses_of_forms(root: Client, objects: list[Any]) -> None:
    wrong = []
    for page in pages_of(objects):
        known = fields_of(root.get(page).content.decode())
        names = [*known, "application", "owner", "next", "_popup", "number"]
        together = [
            "&".join(f"{quote_plus(n)}={value}" for n in names) for value in HOSTILE.values()
        ]
        # Each has several values; and those whose refusal would hide the others are alone.
        together.append("&".join(together))
        together += [
            "&".join(f"{name}={value}" for value in HOSTILE.values())
            for name in ("o", "p", "_to_field")
        ]
        wrong += [
            (page, address[:90])
            for address in together
            if root.get(f"{page}?{address}").status_code >= 500
        ]
    assert wrong == []
