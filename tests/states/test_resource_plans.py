"""Rows that PostgreSQL reads to list resources, to find a resource, and to find due states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from apikeys.bindings import Binding
from infra_service.lib.database.bounded_pages.reading import MOST_ROWS
from states.models import (
    OUTDATED,
    Application,
    Component,
    Environment,
    ResourceDigest,
    ResourceEntry,
    State,
)
from states.resources.digests import digest
from tests.conftest import ApiClient, ClientWith
from tests.support.plans import plans_of, rows_of_a_module
from tools.bench.bulk_states import load_states

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner"),
    pytest.mark.usefixtures("resources"),
]

STATES, EACH = 2_000, 10
RARE = "aws_rare"
_FILL = """
INSERT INTO states_resourceentry (id, state_id, component_id, environment_id, address, deposed,
  module, mode, type, name, provider)
SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(number * 10 + turn), 12, '0'))::uuid,
  id, component_id, environment_id,
  format('module.m%%s.aws_type%%s.n%%s', turn %% 7, turn, number), '', 'module.m' || turn %% 7,
  'managed', CASE WHEN number = 5 AND turn = 5 THEN 'aws_rare' ELSE 'aws_type' || turn END,
  'n' || number, 'registry.terraform.io/hashicorp/p' || turn %% 3
FROM (SELECT *, row_number() OVER (ORDER BY id) - 1 AS number FROM states_state) states,
  generate_series(0, %s - 1) turn
ORDER BY number, turn
"""
# A digest of a single entry, a digest of all entries, and unrelated digests.
_DIGESTS = """
INSERT INTO states_resourcedigest (digest, entry_id)
SELECT CASE WHEN number = 777 THEN %s ELSE md5(number::text)::uuid END, id
FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS number FROM states_resourceentry) entries
UNION ALL SELECT %s, id FROM states_resourceentry
"""


@pytest.fixture(scope="module")
def resources(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Resources for all tests of this module, which each roll back to them."""
    models = (Application, Component, Environment, State, ResourceEntry, ResourceDigest)
    yield from rows_of_a_module(django_db_blocker, make_resources, *models)


def make_resources() -> None:
    """Give each of 2,000 states ten resources; a single resource in total has a rare type."""
    load_states(STATES, lambda _done: None)
    State.objects.update(indexed_number=1)
    with connection.cursor() as cursor:
        cursor.execute(_FILL, [EACH])
        cursor.execute(_DIGESTS, [digest("id-777"), digest("same")])


def rows_read(request: Any, *, most: int = 100) -> Counter[str]:
    """Return the number of rows read per table; fail if a table was scanned."""
    with (
        plans_of("states_resourceentry", analyze=True) as plans,
        plans_of("states_resourcedigest", analyze=True) as others,
    ):
        answer = request()
    assert answer.status_code == 200, answer.content
    assert len(answer.json()["resources"]) <= most
    found = {plan.sql: plan for plan in [*plans, *others]}.values()  # some are about both
    for plan in found:
        assert not plan.reads_a_table, plan.sql
    return sum((plan.rows_by_table for plan in found), Counter[str]())


def listed(reader: ApiClient, text: str, **query: str) -> int:
    query = {"filter": text, "page_size": "100", **query}
    rows = rows_read(lambda: reader.get("/api/v1/resources", query))
    return rows["states_resourceentry"]


def test_each_filter_is_served_by_an_index(reader: ApiClient) -> None:
    first, middle = (State.objects.order_by("id")[n] for n in (0, STATES // 2))
    rare = Environment.objects.get(name="sandbox").pk
    at_once, counted = 101, MOST_ROWS + 1
    for text, rows in {
        "": at_once,
        "field['type'] = 'aws_type3'": at_once,
        f"field['type'] = '{RARE}'": 1,
        "field['type'] = 'nothing'": 0,
        f"field['type'] STARTS_WITH '{RARE}'": 2,
        "field['type'] STARTS_WITH 'aws_'": counted + MOST_ROWS,
        "field['name'] = 'n7'": EACH,
        f"field['address'] = 'module.m0.aws_type0.n{STATES // 2}'": 1,
        "field['module'] = 'module.m6'": at_once,
        "field['provider'] = 'registry.terraform.io/hashicorp/p1'": at_once,
        "field['provider'] = 'registry.terraform.io/hashicorp/none'": 0,
        f"field['state_id'] = '{middle.pk}'": EACH,
        f"field['component_id'] = '{middle.component_id}'": 4 * EACH,
        f"field['environment_id'] = '{first.environment_id}'": at_once,
        f"field['environment_id'] = '{rare}'": at_once,
        "field['mode'] = 'managed'": at_once,
        "field['mode'] = 'data'": 2 * MOST_ROWS,
        f"field['type'] = '{RARE}' AND field['environment_id'] = '{first.environment_id}'": counted,
        f"field['state_id'] = '{middle.pk}' AND field['type'] = 'aws_type3'": 2 * STATES,
        "field['name'] CONTAINS 'nothing'": 2 * MOST_ROWS,
    }.items():
        assert listed(reader, text) <= rows, text


def test_bound_tokens_see_only_their_part(resources: None, client_with: ClientWith) -> None:
    state = State.objects.order_by("id")[STATES - 1]
    few = Binding(component_ids=frozenset({state.component_id}))
    many = Binding(environment_ids=frozenset({state.environment_id}))
    nothing = Binding(environment_ids=frozenset({UUID(int=7)}))
    components = list(Component.objects.values_list("pk", flat=True)[:200])
    for binding, rows in (
        (few, 2 * 4 * EACH), (many, 2 * MOST_ROWS), (nothing, 0),
        # Of each component the entries of an index, and the rows that are shown.
        (Binding(component_ids=frozenset(components)), MOST_ROWS + 200 * 4 * EACH + 2 * 101),
    ):  # fmt: skip
        client = client_with("state:read", **binding.columns())
        assert listed(client, "") <= rows


def test_search_reads_only_matching_rows(reader: ApiClient, client_with: ClientWith) -> None:
    state = State.objects.order_by("id")[STATES - 1]
    bound = client_with(
        "state:read", **Binding(component_ids=frozenset({state.component_id})).columns()
    )
    for client, value, most in (
        (reader, "id-777", 1), (reader, "nothing", 0), (reader, "same", 101),
        (bound, "id-777", 1 + 4 * EACH), (bound, "same", MOST_ROWS + 1 + 2 * 4 * EACH),
    ):  # fmt: skip
        path = "/api/v1/resources:find?page_size=100"
        rows = rows_read(lambda c=client, v=value, p=path: c.send("POST", p, {"value": v}))  # type: ignore[misc]
        assert rows["states_resourceentry"] <= most, (value, rows)


@pytest.mark.parametrize("changed", [0, 3])
def test_due_states_are_read_from_an_index(reader: ApiClient, changed: int) -> None:
    ids = list(State.objects.values_list("pk", flat=True)[:changed])
    for due, change, index in (
        (State.objects.behind(), {"indexed_number": 0}, "state_index_due"),
        (
            State.objects.outdated(),
            {"index_key": OUTDATED, "indexed_number": 1},
            "state_by_index_key",
        ),
    ):
        State.objects.filter(pk__in=ids).update(**change)
        with plans_of("states_state", analyze=True) as plans:
            assert len(due.order_by("pk")[:200]) == changed
        (plan,) = plans
        assert plan.indexes == [index]
        # The rows of before are still in the index, until they are vacuumed.
        assert plan.rows_read <= changed
