"""No query parameter of the admin causes a 500."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import CharField, Model
from django.test import Client

from apikeys.models import User
from tests.apikeys.admin.conftest import make_key, make_token
from tests.infra_service.test_admin_webhooks import make_delivery, make_endpoint
from tests.support.people import person
from workloads.models import Cluster

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
# Parameters that lists ignore; a parameter that refuses every value would hide other failures.
PASSED_OVER = ("o", "p", "e", "_popup")
OF_LISTS = ("q", "after", "before", "_changelist_filters", "id__in", "x__y")


@pytest.fixture
def root(db: None, monkeypatch: pytest.MonkeyPatch) -> Client:
    # Rendering the sidebar takes a third of the time and does not depend on the request.
    monkeypatch.setattr(admin.site, "get_app_list", lambda *_: [])
    client = person(username="root", is_superuser=True)
    client.raise_request_exception = False
    return client


@pytest.fixture
def rows(operator: User) -> None:
    """Add a row to each list whose objects are simple to create."""
    Cluster.objects.create(name="c")
    make_key(operator)
    make_token(operator)
    make_delivery(make_endpoint(operator))


def lists() -> Iterator[tuple[str, type[Model], Any]]:
    for model, shown in admin.site._registry.items():
        yield f"/admin/{model._meta.app_label}/{model._meta.model_name}/", model, shown


def parameters_of(model: type[Model], shown: Any) -> list[str]:
    """Return the query parameters of a list, its filters, and a column."""
    columns = [f.name for f in model._meta.fields if isinstance(f, CharField)]
    return [*OF_LISTS, *map(name_of_filter, shown.list_filter), *columns[:1]]


def tails_of(shown: Any) -> list[str]:
    """Return the ends of the addresses of an object's pages, and that of no page."""
    found = [re.fullmatch(r"<[^>]*>/(.*)", str(entry.pattern)) for entry in shown.get_urls()]
    return [tail[1].replace("<int:number>", "1") for tail in found if tail]


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


def test_the_unused_pages_of_django_do_not_exist(root: Client) -> None:
    """Django's autocompletion fails for a reverse relation, and for a NUL on PostgreSQL."""
    given = {"app_label": "apikeys", "model_name": "user", "term": "a\0b"}
    answers = [
        root.get("/admin/autocomplete/", {**given, "field_name": name}).status_code
        for name in ("api_keys", "groups")
    ]

    assert answers == [404, 404]


HOSTILE = ("nul", "deep", "list of surrogates", "list of nothing", "list of huge", "list of a list")
IDS = tuple(VALUES)
if connection.vendor == "sqlite":
    # SQLite accepts every other value that PostgreSQL accepts.
    HOSTILE = ("list of surrogates", "list of huge")
    IDS = ("surrogate", "huge", *HOSTILE)


@pytest.mark.long
def test_unknown_parameters_are_rejected(root: Client, rows: None) -> None:
    answers = {}
    for page, model, shown in lists():
        for value in HOSTILE:
            given = dict.fromkeys(PASSED_OVER, VALUES[value])
            answers[page, value] = root.get(page, given).status_code
            for name in parameters_of(model, shown):
                answers[page, value, name] = root.get(page, {name: VALUES[value]}).status_code

    assert [requested for requested, status in answers.items() if status >= 500] == []
    together = [status for requested, status in answers.items() if len(requested) == 2]
    assert set(together) == {200}


@pytest.mark.long
def test_hostile_ids_are_not_found(root: Client) -> None:
    given = [quote(VALUES[name]) for name in IDS]
    paths = ["r/1/1/", *(f"r/1/{pk}/" for pk in given)]
    for page, _, shown in lists():
        # Also as Django writes an id into an address, and half of that.
        ids = (*given, "_00", "_ZZ", "_5F", "_ED_A0_80")
        where = page.removeprefix("/admin/")
        paths += [f"{where}{pk}/{tail}" for pk in ids for tail in tails_of(shown)]

    wrong = [path[:90] for path in paths if root.get(f"/admin/{path}").status_code >= 500]

    assert wrong == []
    assert root.get("/admin/r/1/1/").status_code == 404
