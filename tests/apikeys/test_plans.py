"""PostgreSQL reads a bounded number of 100,000 events for any filter."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict

from apikeys.api.filters import AuditEventFilters
from apikeys.models import AuditEvent
from filterlang.fields import field_set
from infra_service.lib.api import pagination
from infra_service.lib.database.bounded_pages.reading import MOST_ROWS
from infra_service.lib.database.months import highest_id, lowest_id
from tests.apikeys.admin.conftest import AUDIT_LOG
from tests.conftest import ApiClient, ClientWith
from tests.support.partitions import with_months
from tests.support.people import person
from tests.support.plans import Plan, analyze, plans_of, rows_of_a_module

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="about PostgreSQL's planner"
)

PATH = "/api/v1/audit-events"
ROWS = 100_000
_FILL = """
INSERT INTO apikeys_auditevent
  (id, occurred_at, action, actor_id, actor_name, token_id, resource_id, request_id, details)
SELECT (lpad(to_hex((extract(epoch FROM occurred_at) * 1000)::bigint), 12, '0') || '70008000'
    || lpad(to_hex(n), 12, '0'))::uuid,
  occurred_at,
  CASE WHEN n IN (10, 50) THEN 'test.rare' ELSE 'state.push' END,
  CASE WHEN n IN (10, 50) THEN '00000000-0000-7000-8000-000000000001'::uuid
    ELSE '00000000-0000-7000-8000-000000000002'::uuid END,
  CASE WHEN n IN (10, 50) THEN 'rare' ELSE 'ci' END,
  CASE WHEN n IN (10, 50) THEN 'tok-rare' ELSE 'tok-common' END,
  CASE WHEN n IN (10, 50) THEN 'rare' ELSE 'common' END,
  CASE WHEN n IN (10, 50) THEN 'rare' ELSE 'common' END,
  CASE WHEN n IN (10, 50) THEN '{"trace_id": "rare"}' ELSE '{"trace_id": "common"}' END::jsonb
FROM generate_series(1, 100000) n,
  LATERAL (SELECT timestamptz '2026-01-01' + n * interval '10 seconds' AS occurred_at) AS dated
"""
# Values per field: of two of the oldest rows, of all other rows, and of no row.
VALUES = {
    "action": ("test.rare", "state.push", "none"),
    "actor_id": tuple(f"00000000-0000-7000-8000-00000000000{n}" for n in (1, 2, 3)),
    "actor_name": ("rare", "ci", "none"),
    "token_id": ("tok-rare", "tok-common", "none"),
    "resource_id": ("rare", "common", "none"),
    "request_id": ("rare", "common", "none"),
    "trace_id": ("rare", "common", "none"),
    "occurred_at": ("2026-01-01T00:01:40Z", "2026-01-05T00:00:00Z", "2030-01-01T00:00:00Z"),
}


def terms(name: str, operators: tuple[str, ...]) -> Iterator[str]:
    """Yield the field with each operator and value."""
    low = "2025-01-01T00:00:00Z"
    for operator, value in itertools.product(operators, VALUES[name]):
        match operator:
            case "IN" | "NOT IN":
                yield f"field['{name}'] {operator} ('{value}', '{VALUES[name][2]}')"
            case "BETWEEN":
                yield f"field['{name}'] BETWEEN '{low}' AND '{value}'"
                yield f"field['{name}'] BETWEEN '{value}' AND '2031-01-01T00:00:00Z'"
            case "EXISTS" | "IS NULL" | "IS NOT NULL":
                if value == VALUES[name][0]:
                    yield f"field['{name}'] {operator}"
            case _:
                yield f"field['{name}'] {operator} '{value}'"


@pytest.fixture(scope="module")
def events(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """100,000 events, ten seconds from each to the next, for all tests of this module."""
    yield from rows_of_a_module(django_db_blocker, make_events, AuditEvent)


def make_events() -> None:
    with connection.cursor() as cursor, connection.schema_editor() as editor:
        for index in AuditEvent._meta.indexes:
            editor.remove_index(AuditEvent, index)
        cursor.execute("SET LOCAL maintenance_work_mem = '256MB'")
        cursor.execute(_FILL)
        for index in AuditEvent._meta.indexes:
            editor.add_index(AuditEvent, index)


@pytest.fixture
def reader(events: None, client_with: ClientWith) -> ApiClient:
    return client_with("audit:read")


def deep(text: str) -> str:
    """Return the token of the page that begins in the middle of the list."""
    middle = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=10 * ROWS // 2)
    row = AuditEvent.objects.get(occurred_at=middle)
    query = QueryDict(mutable=True)
    query["filter"] = text
    scope = pagination._scope(PATH, query, "")
    return pagination.PageRequest(1, None, scope).token(str(row.occurred_at), str(row.pk))


def plans(reader: ApiClient, text: str, token: str = "") -> tuple[list[Plan], Any]:
    with plans_of("apikeys_auditevent", analyze=True) as found:
        answer = reader.get(PATH, {"filter": text, "page_size": "100", "page_token": token})
    assert answer.status_code == 200, answer.content
    return found, answer.json()


def filters() -> Iterator[str]:
    single: list[str] = []
    for field in field_set(AuditEventFilters).values():
        single += terms(field.name, field.operators)
    yield ""
    yield from single
    # Two fields: a rare and a common value, or two values that never occur together.
    for one, other in itertools.combinations(VALUES, 2):
        yield f"field['{one}'] = '{VALUES[one][0]}' AND field['{other}'] = '{VALUES[other][1]}'"
        yield f"field['{other}'] = '{VALUES[other][1]}' AND field['{one}'] != '{VALUES[one][1]}'"
    yield "field['action'] = 'state.push' AND field['resource_id'] CONTAINS 'x'"
    yield "field['action'] = 'none' OR field['resource_id'] = 'none'"
    yield " AND ".join(["field['actor_name'] ~= 'nobody'"] * 24)
    yield " OR ".join(["field['actor_name'] CONTAINS 'nobody'"] * 24)


def test_any_filter_reads_a_bounded_piece(reader: ApiClient) -> None:
    too_much = {}
    for text in filters():
        for token in ("", deep(text))[: 1 if " AND " in text else 2]:
            found, _ = plans(reader, text, token)
            # Each statement alone: the count in the index, the page, and its end.
            for plan in found:
                counted = plan.sql.count("COUNT(*)")
                if plan.rows_read > max(counted, 1) * (MOST_ROWS + 1):
                    too_much[text, bool(token), plan.sql] = plan.rows_read
                if "Seq Scan" in plan.types:
                    too_much[text, bool(token), plan.sql] = "reads the table"
            assert len(found) <= 3
    assert too_much == {}


def test_indexed_filter_reads_only_matching_rows(reader: ApiClient) -> None:
    rows = {}
    for name, (rare, common, nothing) in VALUES.items():
        if name in ("actor_name", "trace_id"):  # have no index
            continue
        for operator, value, number in (("=", rare, 2), ("=", nothing, 0), ("IN", rare, 2)):
            written = f"('{value}')" if operator == "IN" else f"'{value}'"
            text = f"field['{name}'] {operator} {written}"
            found, answer = plans(reader, text)
            expected = min(number, 1) if name == "occurred_at" else number
            assert (len(answer["audit_events"]), answer["next_page_token"]) == (expected, ""), text
            rows[text] = sum(plan.rows_read for plan in found)
        for token in ("", deep(f"field['{name}'] = '{common}'")):
            found, _ = plans(reader, f"field['{name}'] = '{common}'", token)
            rows[name, bool(token)] = sum(plan.rows_read for plan in found)
    assert {what: number for what, number in rows.items() if number > 101} == {}
    # The rare rows among the common rows: counted in the index, then filtered.
    text = "field['action'] = 'state.push' AND field['token_id'] = 'tok-rare'"
    found, answer = plans(reader, text)
    assert (answer["audit_events"], answer["next_page_token"]) == ([], "")
    # Events of a token on a day in the past.
    day = dt.datetime(2026, 1, 7, tzinfo=dt.UTC)
    text = (
        f"field['token_id'] = 'tok-common' AND field['occurred_at'] >= '{day.isoformat()}' "
        f"AND field['occurred_at'] < '{(day + dt.timedelta(minutes=5)).isoformat()}'"
    )
    found, answer = plans(reader, text)
    assert len(answer["audit_events"]) == 30
    assert sum(plan.rows_read for plan in found) == 30


def test_unindexed_filter_is_read_page_by_page(reader: ApiClient) -> None:
    """Two of the oldest of 12,000 events: three pages, the first two empty."""
    since = "field['actor_name'] = 'rare' AND field['occurred_at'] < '2026-01-02T09:00:00Z'"
    token, found = "", []
    for _ in range(10):
        answer = reader.get(PATH, {"filter": since, "page_token": token}).json()
        found.append(len(answer["audit_events"]))
        token = answer["next_page_token"]
        if not token:
            break
    assert found == [0, 0, 2]


JULY = dt.datetime(2025, 7, 1, tzinfo=dt.UTC)
_EVENTS_OF_MONTHS = """
INSERT INTO apikeys_auditevent
  (id, occurred_at, action, actor_name, token_id, resource_id, request_id, details)
SELECT (lpad(to_hex((extract(epoch FROM occurred_at) * 1000)::bigint), 12, '0') || '70008000'
    || lpad(to_hex(n), 12, '0'))::uuid,
  occurred_at, 'state.push', 'ci', 'tok-' || n % 3, 'state-' || n % 5, '', '{}'
FROM generate_series(0, 2000) n,
  LATERAL (SELECT timestamptz '2025-07-01' + n * interval '2 hours' AS occurred_at) AS dated
"""


def test_page_bounded_by_time_reads_at_most_two_partitions(client_with: ClientWith) -> None:
    """The list in the API and in the admin, with a filter, in both directions, and deep inside."""
    with_months(JULY, 6)
    with connection.cursor() as cursor:
        cursor.execute(_EVENTS_OF_MONTHS)
    analyze(AuditEvent)
    client, admin = client_with("audit:read"), person("viewer")
    since, until = "2025-09-10T00:00:00Z", "2025-10-12T00:00:00Z"
    between = f"field['occurred_at'] BETWEEN '{since}' AND '{until}'"
    texts = [between, f"{between} AND field['token_id'] = 'tok-1'",
             f"{between} AND field['resource_id'] IN ('state-1', 'state-2')",
             f"{between} AND field['actor_name'] = 'ci'"]  # fmt: skip
    paths = ["since=2025-09-10&until=2025-10-12",
             "action=state.push&since=2025-10-02&until=2025-10-30",
             "since=2025-09-10&until=2025-10-12&order=moment"]  # fmt: skip

    found: dict[str, set[str]] = {}
    for text in texts:
        token = ""
        for page in ("first", "second"):
            with plans_of("apikeys_auditevent", analyze=True) as plans:
                answer = client.get(PATH, {"filter": text, "page_size": "20", "page_token": token})
            assert len(answer.json()["audit_events"]) == 20, text
            token = answer.json()["next_page_token"]
            found[f"{page} {text}"] = partitions_in(plans)
    for query in paths:
        with plans_of("apikeys_auditevent", analyze=True) as plans:
            assert admin.get(f"{AUDIT_LOG}?{query}").status_code == 200
        found[query] = partitions_in(plans)

    months = {"apikeys_auditevent_2025_09", "apikeys_auditevent_2025_10"}
    assert {text: read for text, read in found.items() if not read or not read <= months} == {}


def test_generic_plan_reads_at_most_two_partitions(db: None) -> None:
    """A prepared statement of webhooks, whose partitions are chosen at its execution."""
    with_months(JULY, 6)
    with connection.cursor() as cursor:
        cursor.execute(_EVENTS_OF_MONTHS)
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(
            "PREPARE bounded (uuid, uuid) AS SELECT id FROM apikeys_auditevent"
            " WHERE id >= $1 AND id < $2 ORDER BY occurred_at DESC, id DESC LIMIT 20"
        )
        limits = (lowest_id(JULY + dt.timedelta(days=40)), highest_id(JULY + dt.timedelta(days=50)))
        cursor.execute(
            "EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE bounded ('{}', '{}')".format(*limits)
        )
        ((explained,),) = cursor.fetchall()
    text = explained if isinstance(explained, str) else json.dumps(explained)
    (plan,) = json.loads(text)
    assert partitions_in([Plan("", plan["Plan"])]) == {"apikeys_auditevent_2025_08"}


def partitions_in(plans: list[Plan]) -> set[str]:
    """Return the partitions that the plans read."""
    nodes = [node for plan in plans for node in plan.nodes()]
    read = [node for node in nodes if "Relation Name" in node and node["Actual Loops"]]
    return {node["Relation Name"] for node in read}
