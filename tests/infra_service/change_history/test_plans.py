"""The number of rows that PostgreSQL reads to list and count changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count

from apikeys.bindings import Binding
from infra_service.change_history.models import Change
from infra_service.console.overview.changes import latest_changes
from infra_service.lib.database.bounded_pages.reading import MOST_ROWS
from states.models import Application, Component, Environment, State, StateVersion
from tests.conftest import ApiClient, ClientWith
from tests.support.plans import Plan, plans_of, rows_of_a_module
from tools.bench.bulk_states import load_states
from workloads.models import Cluster

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner"),
    pytest.mark.usefixtures("changes"),
]

LIST, SUMMARY = "/api/v1/changes", "/api/v1/changes:summary"
TABLE = Change._meta.db_table
#: The changes cover 30 days, oldest first. Every fourth change is of a workload.
CHANGES, DAYS, STATES, CLUSTERS = 30_000, 30, 1_000, 10
PER_DAY = CHANGES // DAYS
AT_ONCE = 11
_FILL = """
INSERT INTO {table} (id, kind, occurred_at, created_by, token_id, version_id, version_number,
  state_id, component_id, environment_id, cluster_id, workload_id, action, problem, address,
  previous_address, type, provider, attributes)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000'
    || '8' || lpad(to_hex(number), 15, '0'))::uuid,
  CASE WHEN w THEN 'WORKLOAD' ELSE 'RESOURCE' END, at, 'ci', '',
  CASE WHEN NOT w THEN version_id END, CASE WHEN NOT w THEN 1 END,
  CASE WHEN NOT w THEN state_id END, CASE WHEN NOT w THEN component_id END,
  CASE WHEN NOT w THEN environment_id END, CASE WHEN w THEN cluster_id END,
  CASE WHEN w THEN md5((number / 4 %% 500)::text)::uuid END,
  CASE WHEN w THEN 'SCALED' WHEN number %% 3 = 0 THEN 'ADDED' ELSE 'CHANGED' END,
  '', 'thing.n' || number, '', 'type' || number %% 50, '', '[]'
FROM (
  SELECT number, number %% 4 = 0 AS w,
    date_trunc('milliseconds', now()) - (%s - number) * interval '1 day' / %s AS at
  FROM generate_series(1, %s) number
) changes
JOIN (
  SELECT row_number() OVER (ORDER BY s.id) - 1 AS turn, s.id AS state_id, s.component_id,
    s.environment_id, s.current_version_id AS version_id
  FROM states_state s
) states ON turn = number %% %s
JOIN (
  SELECT row_number() OVER (ORDER BY id) - 1 AS place, id AS cluster_id FROM workloads_cluster
) clusters ON place = number / 4 %% %s
"""


@pytest.fixture(scope="module")
def changes(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Changes for all tests of this module; each test rolls back its own changes."""
    models = (Application, Component, Environment, State, StateVersion, Cluster, Change)
    yield from rows_of_a_module(django_db_blocker, make_changes, *models)


def make_changes() -> None:
    load_states(STATES, lambda _done: None)
    Cluster.objects.bulk_create(Cluster(name=f"cluster-{n}") for n in range(CLUSTERS))
    with connection.cursor() as cursor:
        sql = _FILL.format(table=TABLE)
        cursor.execute(sql, [CHANGES, PER_DAY, CHANGES, STATES, CLUSTERS])


@pytest.fixture
def both(client_with: ClientWith) -> ApiClient:
    return client_with("state:read", "cluster:read")


def since(days: float) -> str:
    moment = Change.objects.order_by("-id")[0].occurred_at
    moment -= dt.timedelta(microseconds=moment.microsecond % 1000)
    return (moment - dt.timedelta(days=days)).isoformat()


def answered(client: ApiClient, path: str, query: dict[str, Any]) -> tuple[Any, list[Plan]]:
    """Return the response and the plans; fail if a plan scans the table."""
    with plans_of(TABLE, analyze=True) as plans:
        answer = client.get(path, query)
    assert answer.status_code == 200, answer.content
    assert plans
    assert not [plan.sql for plan in plans if plan.reads_a_table], query
    return answer.json(), plans


def check(client: ApiClient, text: str, most: int, path: str = LIST, **query: Any) -> None:
    """Fail if a page read or sorted more than ``most`` rows."""
    _, plans = answered(client, path, {"filter": text, "page_size": 10, **query})
    sizes = [n["Actual Rows"] for p in plans for n in p.nodes() if n["Node Type"] == "Sort"]
    assert max(sizes, default=0) <= most, text
    assert sum(plan.rows_by_table[TABLE] for plan in plans) <= most, text


def typical() -> dict[str, int]:
    """Return typical filters, and the maximum number of rows that their pages read."""
    change = Change.objects.filter(kind="RESOURCE").order_by("-id")[0]
    assert change.environment is not None
    workload = Change.objects.filter(kind="WORKLOAD").order_by("-id")[0]
    assert workload.cluster is not None
    week = f"field['occurred_at'] >= '{since(7)}'"
    of_environment = f"field['environment'] = '{change.environment.slug}'"
    of_cluster = f"field['cluster'] = '{workload.cluster.name}'"
    return {
        "": AT_ONCE,
        week: AT_ONCE,
        f"{of_environment} AND {week}": AT_ONCE,
        f"{of_environment} AND field['occurred_at'] < '{since(20)}'": AT_ONCE,
        f"field['state_id'] = '{change.state_id}'": AT_ONCE,
        f"field['component_id'] = '{change.component_id}' AND {week}": AT_ONCE,
        f"field['kind'] = 'WORKLOAD' AND {week}": AT_ONCE,
        f"field['type'] = 'type7' AND {week}": AT_ONCE,
        of_cluster: AT_ONCE,
        f"{of_cluster} AND {week}": AT_ONCE,
        f"field['workload_id'] = '{workload.workload_id}'": AT_ONCE,
        f"field['address'] = '{change.address}'": 1,
        f"{of_environment} OR {of_cluster}": MOST_ROWS,
        f"field['action'] = 'CHANGED' AND {of_environment} AND {week}": 2 * MOST_ROWS,
        "field['created_by'] = 'nobody'": 2 * MOST_ROWS,
    }


def test_each_filter_is_served_by_an_index(both: ApiClient) -> None:
    for text, rows in typical().items():
        check(both, text, rows)
    state = Change.objects.filter(kind="RESOURCE").order_by("-id")[0].state_id
    check(both, "", AT_ONCE, f"/api/v1/states/{state}/changes")


def test_late_page_reads_no_more_rows_than_the_first(both: ApiClient) -> None:
    for text, rows in typical().items():
        token, query = "", {"filter": text, "page_size": 10}
        for _ in range(3):
            answer = both.get(LIST, {**query, "page_token": token}).json()
            if not (token := answer["next_page_token"]):
                break
        if token:
            check(both, text, rows, page_token=token)


def test_bound_token_reads_only_its_binding(client_with: ClientWith) -> None:
    change = Change.objects.filter(kind="RESOURCE").order_by("-id")[0]
    workload = Change.objects.filter(kind="WORKLOAD").order_by("-id")[0]
    week = f"field['occurred_at'] >= '{since(7)}'"
    for binding, rows in (
        (Binding(environment_ids=frozenset({change.environment_id})), AT_ONCE),
        (Binding(component_ids=frozenset({change.component_id})), AT_ONCE),
        (Binding(cluster_id=workload.cluster_id), AT_ONCE),
    ):
        client = client_with("state:read", "cluster:read", **binding.columns())
        for text in ("", week):
            _, plans = answered(client, LIST, {"filter": text, "page_size": 10})
            assert sum(plan.rows_by_table[TABLE] for plan in plans) <= rows, text


def test_summary_reads_its_period_in_an_index(both: ApiClient) -> None:
    rare = Environment.objects.annotate(number=Count("state")).order_by("number")[0]
    of_rare = Change.objects.filter(environment=rare)
    state = of_rare.order_by("-id")[0].state_id
    for text, days, index in (
        ("", 7, "change_history_change_pkey"),
        ("", 30, "change_history_change_pkey"),
        (f"field['environment'] = '{rare.slug}'", 7, "change_by_environment"),
        (f"field['state_id'] = '{state}'", 30, "change_by_state"),
    ):
        found, plans = answered(both, SUMMARY, {"filter": text, "since": since(days)})
        (plan,) = plans
        assert index in plan.indexes, (text, plan.indexes)
        number = found["summary"]["total"]
        assert 0 < plan.rows_by_table[TABLE] == number, text


def test_overview_reads_a_day() -> None:
    with plans_of(TABLE, analyze=True) as plans:
        found = latest_changes()
    (plan,) = plans
    assert plan.indexes == ["change_history_change_pkey"]
    assert PER_DAY - 10 <= plan.rows_read <= PER_DAY
    assert found["number"].value == plan.rows_read
