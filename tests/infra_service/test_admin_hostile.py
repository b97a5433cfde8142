"""Whatever an address of the admin is given, it is no 500."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import CharField
from django.test import Client

from apikeys.models import User
from states.models import State
from tests.apikeys.admin.conftest import make_key, make_token
from tests.infra_service.test_admin_webhooks import make_delivery, make_endpoint
from tests.people import person
from workloads.models import Cluster, Workload

pytestmark = pytest.mark.both

VALUES = {
    "nul": "a\0b",
    "surrogate": b"\xed\xa0\x80",
    "deep": "[" * 4000,
    "huge": "9" * 4400,
    "list of huge": "[" + "9" * 4400 + "]",
    "list of surrogates": '["\\ud800"]',
    "list of nothing": "[null]",
    "list of a list": "[[[]]]",
    "another form of a uuid": "{" + uuid.UUID(int=0).hex + "}",
}
OF_LISTS = (
    "q",
    "o",
    "p",
    "e",
    "after",
    "before",
    "_changelist_filters",
    "_popup",
    "id__in",
    "x__y",
)
TAILS = (
    "change/",
    "history/",
    "delete/",
    "password/",
    "revoke/",
    "force-unlock/",
    "compare/",
    "disable/",
    "redeliver/",
)


@pytest.fixture
def root(db: None, monkeypatch: pytest.MonkeyPatch) -> Client:
    # The list of all pages beside each takes a third of the time, and nothing from a request.
    monkeypatch.setattr(admin.site, "get_app_list", lambda *_: [])
    client = person(username="root", is_superuser=True)
    client.raise_request_exception = False
    return client


@pytest.fixture
def pages(root: Client, operator: User) -> list[str]:
    """Every list, every form for a new object, and one object of those that are easily made."""
    cluster = Cluster.objects.create(name="c")
    made: list[Any] = [operator, make_key(operator), make_token(operator), cluster]
    made.append(make_delivery(make_endpoint(operator)))
    made.append(made[-1].endpoint)
    made += [*State.objects.all()[:1], *Workload.objects.all()[:1]]
    found = [
        "/admin/",
        "/admin/login/",
        "/admin/password_change/",
        "/admin/jsi18n/",
        "/admin/autocomplete/",
    ]
    for model in admin.site._registry:
        where = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        found += [where, f"{where}add/"]
        found += [
            f"{where}{obj.pk}/{tail}" for obj in made if isinstance(obj, model) for tail in TAILS
        ]
    return found


def parameters_of(page: str) -> list[str]:
    """Return what a page reads from its address: of a list also its filters, and a column."""
    for model, shown in admin.site._registry.items():
        if page == f"/admin/{model._meta.app_label}/{model._meta.model_name}/":
            columns = [f.name for f in model._meta.fields if isinstance(f, CharField)]
            return [*OF_LISTS, *map(name_of_filter, shown.list_filter), *columns[:1]]
    return []


def name_of_filter(given: Any) -> str:
    name: str = getattr(given, "parameter_name", None) or (
        given[0] if isinstance(given, tuple) else given
    )
    return name


def test_a_refusal_is_no_error_in_the_log(root: Client, caplog: pytest.LogCaptureFixture) -> None:
    """Strangers could else fill it with stack traces; the access event has the 400."""
    many = dict.fromkeys(map(str, range(2000)), "")
    for answer in (
        root.get("/admin/apikeys/apikey/?x__y=1"),
        root.get("/admin/apikeys/apikey/?_to_field=x"),
        Client().post("/admin/login/", many),
    ):
        assert answer.status_code == 400
    assert [r.getMessage() for r in caplog.records if r.exc_info] == []


HOSTILE = ("nul", "deep", "list of surrogates", "list of nothing", "list of huge", "list of a list")
IDS = tuple(VALUES)
if connection.vendor == "sqlite":
    # What else PostgreSQL takes, SQLite takes too.
    HOSTILE = ("list of surrogates", "list of huge")
    IDS = ("surrogate", "huge", *HOSTILE)


@pytest.mark.long
def test_parameters(root: Client, pages: list[str]) -> None:
    wrong = [
        f"{page}?{name}={value}"
        for page in pages
        for name in parameters_of(page)
        for value in HOSTILE
        if root.get(f"{page}?{name}={quote(VALUES[value])}").status_code >= 500
    ]

    assert wrong == []


@pytest.mark.long
def test_ids(root: Client) -> None:
    given = [quote(VALUES[name]) for name in IDS]
    paths = ["r/1/1/", *(f"r/1/{pk}/" for pk in given)]
    for model in admin.site._registry:
        where = f"{model._meta.app_label}/{model._meta.model_name}/"
        # Also as Django writes an id into an address, and half of that.
        ids = (*given, "_00", "_ZZ", "_5F", "_ED_A0_80")
        paths += [f"{where}{pk}/{tail}" for pk in ids for tail in TAILS]

    wrong = [path[:90] for path in paths if root.get(f"/admin/{path}").status_code >= 500]

    assert wrong == []
    assert root.get("/admin/r/1/1/").status_code == 404
