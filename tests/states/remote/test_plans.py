"""With indexes, a list of workspaces reads about as many states as it counts and shows."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from infra_service.lib.api import jsonapi
from states.models import Application, Component, Environment, State
from tests.conftest import ClientWith
from tests.states.many import make_many_states
from tests.states.remote.conftest import RemoteClient
from tests.support.plans import plans_of, rows_of_a_module

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner"),
    pytest.mark.urls("tests.states.remote.urls"),
    pytest.mark.usefixtures("states"),
]
TAGGED = 20


@pytest.fixture(scope="module")
def states(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """States for all tests of this module; each test rolls back its own changes."""
    models = (Application, Component, Environment, State)
    yield from rows_of_a_module(django_db_blocker, make_states, *models)


def make_states() -> None:
    """Make 20,000 states: the newest 2,000 in applications, the others in the default organization.

    Twenty have tags, and of these some have a stored name.
    """
    make_many_states()
    newest = list(State.objects.order_by("-id").values_list("component_id", flat=True)[:2_000])
    Component.objects.exclude(pk__in=newest).update(application=None)
    State.objects.exclude(component_id__in=newest).update(application=None)
    tagged = State.objects.order_by("id").values_list("pk", flat=True)[100 : 100 + TAGGED]
    record = {"name": "My_App", "tags": {"team": "core"}}
    State.objects.filter(pk__in=list(tagged)).update(workspace=record)


@pytest.fixture
def reader(client_with: ClientWith) -> RemoteClient:
    return RemoteClient(client_with("state:read"))


def listed(reader: RemoteClient, query: str, organization: str = "default") -> tuple[int, int]:
    """Return the total of a list, and the number of states it read; fail if it scanned a table."""
    with plans_of("states_state", analyze=True) as plans:
        page = reader.send("GET", f"organizations/{organization}/workspaces?{query}").json()
    assert plans
    assert not any("Seq Scan" in plan.types for plan in plans), [plan.root for plan in plans]
    read = sum((plan.rows_by_table for plan in plans), Counter[str]())
    return page["meta"]["pagination"]["total-count"], int(read["states_state"])


def test_list_is_bounded(reader: RemoteClient, monkeypatch: pytest.MonkeyPatch) -> None:
    # The same share of 18,000 states as 10,000 of a million.
    most = 180
    monkeypatch.setattr(jsonapi, "MOST_LISTED", most)
    for number in (1, 2, 3):
        total, read = listed(reader, f"page[size]=100&page[number]={number}")
        assert total == most
        assert read <= 2 * most + 100, number


def test_search_reads_the_states_of_matching_components(reader: RemoteClient) -> None:
    state = State.objects.filter(component__application=None, workspace__isnull=True).annotate(
        component_slug=F("component__slug"), environment_slug=F("environment__slug")
    )[5_000]
    component, environment = state.component_slug, state.environment_slug  # type: ignore[attr-defined]
    for text, total in (
        (component, 4),
        (f"{component}-".upper(), 4),
        (f"{component}-{environment}", 1),
        (f"{component}-{environment}x", 0),
        ("unknown", 0),
        ("_", 0),
        ("my_app", TAGGED),
    ):
        found, read = listed(reader, f"search[name]={text}")
        assert found == total, text
        # The count and the page read the states of the component, and those with a record, twice.
        assert read <= 4 * (4 + TAGGED), (text, read)


def test_tags_read_the_states_with_tags(reader: RemoteClient) -> None:
    pair = "filter[tagged][0][key]=team&filter[tagged][0][value]=core"
    for query, total in (("search[tags]=team", TAGGED), (pair, TAGGED), ("search[tags]=x", 0)):
        found, read = listed(reader, query)
        assert (found, read <= 4 * TAGGED) == (total, True), (query, read)


def test_organization_of_an_application_reads_its_states(reader: RemoteClient) -> None:
    slug = Application.objects.filter(components__isnull=False).values_list("slug", flat=True)[0]
    of_application = State.objects.filter(component__application__slug=slug).count()
    total, read = listed(reader, "page[size]=100", slug)
    assert total == of_application
    assert read <= 3 * of_application
