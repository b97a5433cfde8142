"""Rows that PostgreSQL reads for the lists of states and the catalogue in the admin."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client

from infra_service.console.overview.counting import MOST
from infra_service.lib.database.bounded_pages.reading import MOST_ROWS
from states.models import Application, Component, Environment, State
from tests.states.many import make_many_states
from tests.support.people import person
from tests.support.plans import plans_of, rows_of_a_module

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="about PostgreSQL's planner"
)

AT_ONCE = 51


@pytest.fixture(scope="module")
def states(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """States, a few of them deleted, for all tests of this module, which each roll back to them."""
    models = (Application, Component, Environment, State)
    yield from rows_of_a_module(django_db_blocker, make_states, *models)


def make_states() -> None:
    make_many_states()
    first = State.objects.order_by("id")[:20].values("pk")
    State.objects.filter(pk__in=first, lock_id=None).update(deleted_at="2026-01-01T00:00:00Z")


@pytest.fixture
def client(states: None, db: None) -> Client:
    return person("viewer")


def rows_read(client: Client, query: str) -> int:
    """Return the number of states that the list read; fail if it scanned the table."""
    with plans_of("states_state", analyze=True) as plans:
        answer = client.get(f"/admin/states/state/?{query}")
    assert answer.status_code == 200, query
    for found in plans:
        assert not found.reads_a_table, query
    # A search that cannot find anything does not ask; another may count first, and ask for the end.
    assert len(plans) <= 3
    return sum(found.rows_read for found in plans if "Seq Scan" not in found.types)


def test_each_search_is_served_by_an_index(client: Client) -> None:
    newest, oldest = State.objects.order_by("-id")[0], State.objects.order_by("id")[100]
    component = Component.objects.get(pk=oldest.component_id).name
    application = Application.objects.get(pk=oldest.application_id).name
    of_application = State.objects.filter(application=oldest.application_id).count()
    for query, rows in {
        "": AT_ONCE,
        "is=locked": AT_ONCE,
        "is=stale": MOST_ROWS,
        "is=deleted": AT_ONCE,
        f"q={newest.pk}": 2,
        f"q={component}": 8,
        f"q={component}+production": 8,
        f"q={oldest.component_id}": 8,
        "q=production": AT_ONCE,
        # The rarest environment, with 0.1 % of the states, and the oldest application.
        "q=sandbox": AT_ONCE,
        f"q={application}": AT_ONCE,
        f"q={application}+sandbox": 3 * of_application,
        # 20 components of 4 states each, counted and sorted.
        "q=network": 200,
        # Several applications.
        "q=billing": 3 * MOST_ROWS,
        "q=nothing": 0,
        "q=production+nothing": 0,
    }.items():
        assert rows_read(client, query) <= rows, query


def test_late_pages_cost_as_much_as_the_first(client: Client) -> None:
    row = State.objects.order_by("-id")[3_000]
    late = str(row.pk)
    for query in ("", "q=production", "is=locked"):
        # Without a filter, the list has the order of changes.
        key = [late] if query else [str(row.updated_at), late]
        link = f"{query}&{urlencode({'after': json.dumps([0, *key])})}"
        assert rows_read(client, link) <= AT_ONCE, query
        page = client.get(f"/admin/states/state/?{link}").context["cl"]
        first = page.result_list[0]
        assert (first.pk < UUID(late)) if query else (first.updated_at <= row.updated_at)
        assert rows_read(client, page.previous_url[1:]) <= AT_ONCE, query


def test_names_are_found_in_their_index(client: Client) -> None:
    with plans_of("states_component", analyze=True) as plans:
        client.get("/admin/states/state/?q=network-00")
        client.get("/admin/states/component/?order=title")
    lists = [found for found in plans if "LIMIT" in found.sql]
    # In addition, the applications are looked up.
    assert [found.indexes[0] for found in lists] == ["component_by_name"] * 2
    assert [found.rows_read <= 2 * AT_ONCE for found in lists] == [True] * 2


@pytest.mark.parametrize("kind", ["application", "component", "environment"])
def test_the_catalogue_opens_in_the_order_of_changes(client: Client, kind: str) -> None:
    for query in ("", "?order=updated", "?order=title"):
        with plans_of(f"states_{kind}", analyze=True) as plans:
            client.get(f"/admin/states/{kind}/{query}")
        (found,) = plans
        index = f"{kind}_by_name" if "title" in query else f"{kind}_by_change"
        assert (found.indexes[0], "Sort" in found.types) == (index, False), query
        assert found.rows_by_table[f"states_{kind}"] <= AT_ONCE, query


def test_pieces_of_names_are_looked_for_in_a_bounded_number(client: Client) -> None:
    for path in ("state/?q=etwork-00", "component/?q=ETWORK-00", "component/?q=nothing"):
        with plans_of("states_component", analyze=True) as plans:
            assert client.get(f"/admin/states/{path}").status_code == 200
        for found in plans:
            assert not found.reads_a_table, path
            assert found.rows_by_table["states_component"] <= MOST_ROWS + AT_ONCE, path


def test_the_order_of_changes_is_read_in_its_index(client: Client) -> None:
    for query in ("order=-changed", "order=changed", "order=-changed&q=production"):
        # The ways to the rows are counted first, each up to a bound.
        assert rows_read(client, query) <= 2 * MOST_ROWS + AT_ONCE, query
    assert rows_read(client, "order=-changed") <= AT_ONCE


@pytest.mark.parametrize("column", ["serial", "size"])
def test_order_with_null_values_uses_an_index(client: Client, column: str) -> None:
    """The few states without a value, sorted last, come from the same index."""
    rows = State.objects.order_by("id")[500:510]
    State.objects.filter(pk__in=[row.pk for row in rows]).update(
        version_number=0, current_version=None, serial=None, md5=None, size_bytes=None
    )
    for order in (column, f"-{column}"):
        assert rows_read(client, f"order={order}") <= AT_ONCE, order
    end = urlencode({"order": column, "after": json.dumps([1])})
    assert rows_read(client, end) <= AT_ONCE


def test_versions_are_found_by_their_state(client: Client) -> None:
    state = State.objects.order_by("id")[100]
    with plans_of("states_stateversion", analyze=True) as plans:
        client.get(f"/admin/states/state/{state.pk}/change/")
    # The list of versions with their import sources, the documents to compare, and the document
    # shown.
    assert [found.rows_read for found in plans] == [1] * 3
    assert all("stateversion_number" in found.indexes for found in plans)


def test_overview_reads_only_locked_states(client: Client) -> None:
    locked = State.objects.visible().exclude(lock_id=None).count()
    with plans_of("states_state", analyze=True) as plans:
        assert client.get("/admin/").status_code == 200
    assert [found.sql for found in plans if found.reads_a_table] == []
    # The rows of the five that are shown, how many states there are, up to a bound, and how many
    # are in no index of resources, up to another.
    assert sum(found.rows_read for found in plans) <= 2 * locked + 10 + 10_001 + MOST + 1
