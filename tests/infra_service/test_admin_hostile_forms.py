"""No input to a form or a list of the admin causes a 500."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import NON_FIELD_ERRORS
from django.db import connection, transaction
from django.test import Client

from apikeys.models import User
from infra_service.lib.admin import ReadOnlyAdmin
from states.models import State
from tests.apikeys.admin.conftest import make_key, make_token
from tests.infra_service.test_admin_webhooks import make_delivery, make_endpoint
from tests.states.conftest import backend, lock_id, locked_state  # noqa: F401 - fixtures
from tests.support.people import person
from workloads.models import Cluster

pytestmark = pytest.mark.both

FORM = "application/x-www-form-urlencoded"
# Percent-encoded, as in a body or an address.
HOSTILE = {
    "nul": "a%00b",
    "surrogate": "%ed%a0%80",
    "deep": "[" * 4000,
    "digits": "9" * 4400,
    "negative": "-" + "9" * 30,
    "list": quote('["\\ud800"]'),
}
if connection.vendor == "sqlite":
    # SQLite accepts every other value that PostgreSQL accepts.
    HOSTILE = {name: HOSTILE[name] for name in ("surrogate", "digits", "negative")}
# Parameters that a form may receive in addition to its own fields.
_ADDED = ("username", "reason", "o", "p", "_popup", "_to_field", "next")
# A browser sends the fields of a search with an address.
_NOT_SENT = re.compile(r'<form\b(?![^>]*method="post").*?</form>', re.DOTALL)
_FIELD = re.compile(r"<(input|select|textarea)\b([^>]*)>")
_NAME, _VALUE = re.compile(r'\bname="([^"]*)"'), re.compile(r'\bvalue="([^"]*)"')


@pytest.fixture
def root(db: None, monkeypatch: pytest.MonkeyPatch) -> Client:
    # Rendering the sidebar takes a third of the time and does not depend on the request.
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
        tails = ["change", "delete", *(name.replace("_", "-") for name in tools)]
        tails += ["password"] if model is User else []
        for obj in objects:
            if type(obj) is model:
                yield from (f"{where}{obj.pk}/{tail}/" for tail in tails)


def fields_of(page: str) -> dict[str, str]:
    """Return the fields that a browser would send, percent-encoded, by name."""
    found = {}
    for kind, attributes in _FIELD.findall(page):
        name, value = _NAME.search(attributes), _VALUE.search(attributes)
        if name and name[1] != "csrfmiddlewaretoken":
            text = unescape(value[1]) if value else ""
            found[name[1]] = quote_plus(text) if kind == "input" else ""
    return found


@contextmanager
def undone(client: Client) -> Iterator[None]:
    """Roll back the block, so that later requests use the same objects and session."""
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    client.cookies[settings.SESSION_COOKIE_NAME] = session


def form_of(answer: Any) -> Any:
    """Return the form of a page; lists and confirmation pages have no form."""
    context = answer.context or {}
    return context["adminform"].form if "adminform" in context else context.get("form")


def refused(answer: Any) -> set[str]:
    """Return the fields that a form refuses, independent of the other fields."""
    form = form_of(answer)
    return set(form.errors) - {NON_FIELD_ERRORS} if form else set()


class Form:
    """The fields of a page, and the submissions that got a 500."""

    def __init__(self, client: Client, page: str, shown: Any) -> None:
        self.client, self.page = client, page
        self.names_what_it_refuses = form_of(shown) is not None
        self.known = fields_of(_NOT_SENT.sub("", shown.content.decode()))
        self.valid = {**self.known, "username": "x", "name": "x", "reason": "x", "owner": "root"}
        self.wrong: list[Any] = []

    def takes(self, answer: Any) -> bool:
        return self.names_what_it_refuses and answer.status_code == 302

    def send(self, fields: dict[str, str]) -> Any:
        body = "&".join(f"{quote_plus(name)}={value}" for name, value in fields.items())
        with undone(self.client):
            answer = self.client.post(self.page, body, content_type=FORM)
            statuses = [answer.status_code]
            if self.takes(answer):  # and the stored values can be shown
                statuses.append(self.client.get(self.page).status_code)
        if max(statuses) >= 500:
            changed = {n: v[:20] for n, v in fields.items() if self.valid.get(n) != v}
            self.wrong.append((self.page, changed, sorted(self.valid.keys() - fields)))
        return answer

    def send_in(self, names: Iterable[str], value: str | None) -> Any:
        """Send the value in all these fields, or omit them; the other fields are valid."""
        fields = {n: v for n, v in self.valid.items() if n not in names}
        return self.send(fields if value is None else {**fields, **dict.fromkeys(names, value)})

    def send_everywhere(self, value: str | None) -> None:
        """Send the value in each field, so that no refusal hides another failure.

        Refused fields get valid values until all remaining fields are accepted at once. If the page
        refuses without naming a field, each field is sent alone.
        """
        answer = self.send_in({*self.known, *_ADDED}, value)
        rest = self.known.keys() - refused(answer)
        while rest:
            answer = self.send_in(rest, value)
            if not refused(answer) & rest:
                break
            rest -= refused(answer)
        if not self.takes(answer) and not refused(answer):
            for name in rest:
                self.send_in({name}, value)


@pytest.mark.long
def test_hostile_forms_are_rejected(root: Client, objects: list[Any]) -> None:
    wrong = []
    for page in pages_of(objects):
        if (shown := root.get(page)).status_code == 404:
            continue
        form = Form(root, page, shown)
        for value in (*HOSTILE.values(), None):
            form.send_everywhere(value)
        form.send({value: value for value in HOSTILE.values()})
        wrong += form.wrong
    assert wrong == []


@pytest.mark.long
def test_hostile_form_addresses_are_rejected(root: Client, objects: list[Any]) -> None:
    wrong = []
    for page in pages_of(objects):
        shown = root.get(page)
        # Each field gets several values. Fields whose refusal would hide other failures are sent
        # alone.
        alone = {"_to_field"}
        names = {*fields_of(shown.content.decode()), "application", "owner", "next", "_popup"}
        names |= {"number", "o", "p"}
        if "cl" in (shown.context or {}):
            alone |= {"o", "p"}
        together = [
            "&".join(f"{quote_plus(name)}={value}" for name in names - alone)
            for value in HOSTILE.values()
        ]
        together.append("&".join(together))
        together += [
            "&".join(f"{name}={value}" for value in HOSTILE.values()) for name in sorted(alone)
        ]
        wrong += [
            (page, address[:90])
            for address in together
            if root.get(f"{page}?{address}").status_code >= 500
        ]
    assert wrong == []
