"""Rows that PostgreSQL reads for the lists of keys, tokens and events: a page's, at any depth."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from infra_service.lib.database.bounded_pages.reading import MOST_ROWS
from tests.apikeys.admin.conftest import AUDIT_LOG, KEYS, TOKENS
from tests.support.people import person
from tests.support.plans import analyze, plans_of, rows_of_a_module

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="about PostgreSQL's planner"
)

ROWS = 20_000
# Almost all tokens are minted and expired; every 200th was issued and expires within weeks.
_FILL = """
INSERT INTO apikeys_apikey
  (id, name, scopes, digest, created_at, expires_at, revoked_at, revision, created_by_id)
SELECT 'key-' || lpad(n::text, 25, '0'), 'key', '["state:read"]', sha256(('k' || n)::bytea),
  now() - interval '400 days',
  CASE WHEN n % 3 = 0 THEN now() + (n % 400 - 200) * interval '1 day' END,
  CASE WHEN n % 500 = 0 THEN now() END, 0, '{owner}'
FROM generate_series(1, {rows} / 10) n;
INSERT INTO apikeys_accesstoken
  (id, name, kind, scopes, digest, created_at, expires_at, revoked_at, revision, created_by_id,
   api_key_id)
SELECT 'tok-' || lpad(n::text, 25, '0'), 'token', 'PERSONAL', '["state:read"]',
  sha256(('t' || n)::bytea), now() - ({rows} - n) * interval '1 minute',
  now() + CASE WHEN n % 200 = 0 THEN n % 100 * interval '1 day' + interval '1 hour'
    ELSE (n - {rows} - 1) * interval '1 minute' END + interval '8 hours',
  CASE WHEN n IN (7, 1000) THEN now() END, 0, '{owner}',
  CASE WHEN n % 200 > 0 THEN 'key-' || lpad((1 + n % 2000)::text, 25, '0') END
FROM generate_series(1, {rows}) n;
INSERT INTO apikeys_auditevent
  (id, occurred_at, action, actor_name, token_id, resource_id, request_id, details)
SELECT (lpad(to_hex((extract(epoch FROM occurred_at) * 1000)::bigint), 12, '0') || '70008000'
    || lpad(to_hex(n), 12, '0'))::uuid,
  occurred_at,
  CASE WHEN n IN (10, 50) THEN 'test.rare' ELSE (array['state.push', 'state.read'])[1 + n % 2] END,
  'ci', '', 'r' || n % 1000, '', '{{}}'
FROM generate_series(1, {rows}) n,
  LATERAL (SELECT timestamptz '2026-01-01' + n * interval '1 second' AS occurred_at) AS dated;
"""


@pytest.fixture(scope="module")
def credentials(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Keys, tokens and events for all tests of this module, which each roll back to them."""
    models = (ApiKey, AccessToken, AuditEvent, User)
    yield from rows_of_a_module(django_db_blocker, make_credentials, *models)


def make_credentials() -> None:
    owner = User.objects.create(username="owner")
    with connection.cursor() as cursor:
        cursor.execute(_FILL.format(rows=ROWS, owner=owner.pk))


@pytest.fixture
def client(credentials: None, db: None) -> Client:
    return person("viewer")


def rows_read(client: Client, table: str, path: str) -> int:
    """Return how many rows of the table the page looked at."""
    with plans_of(table, analyze=True) as plans:
        answer = client.get(path)
    assert answer.status_code == 200, path
    assert plans, path
    nodes = [node for plan in plans for node in plan.nodes()]
    # Partitions have the name of their table and a month.
    own = [node for node in nodes if node.get("Relation Name", "").startswith(table)]
    assert "Seq Scan" not in [node["Node Type"] for node in own], path
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in own
    )


def deep(model: Any, path: str, side: str, **query: str) -> str:
    row = model.objects.order_by("id")[ROWS // 4]
    found = "&".join(f"{name}={value}" for name, value in query.items())
    times = [str(row.occurred_at)] if model is AuditEvent else []
    return f"{path}?{found}&{urlencode({side: json.dumps([0, *times, str(row.pk)])})}"


def test_tokens_are_read_by_an_index(client: Client) -> None:
    read = {
        query: rows_read(client, "apikeys_accesstoken", f"{TOKENS}?{query}")
        for query in (
            "", "status=active", "status=expiring", "status=unused", "status=expired",
            "status=revoked",
            f"q=key-{77:025}", f"q=tok-{77:025}", "q=owner",
        )
    }  # fmt: skip

    # The other filters use a dedicated index.
    most = {
        "status=active": 2 * MOST_ROWS,
        "status=expiring": 200,
        "status=unused": 200,
        "status=expired": 15_001,
    }
    assert {query: n for query, n in read.items() if n > most.get(query, 60)} == {}


def test_keys_are_read_by_an_index(client: Client) -> None:
    for query in (
        "", "status=revoked", f"q=key-{77:025}", "q=owner", "order=expires", "order=-expires",
        "order=expires&status=revoked",
    ):  # fmt: skip
        assert rows_read(client, "apikeys_apikey", f"{KEYS}?{query}") <= 60, query
    # Only a third of the keys expires. Half of these have expired and are not read, nor are keys
    # that expire after the requested period.
    for status, most in (("active", 400), ("expiring", 150)):
        path = f"{KEYS}?order=expires&status={status}"
        assert rows_read(client, "apikeys_apikey", path) <= most, status


def test_events_are_read_by_an_index(client: Client) -> None:
    for query in (
        "", "action=test.rare", "action=state.push", "q=r77", "q=none", "actor=owner",
        "token=tok-1", "order=moment", "since=2026-01-02", "until=2026-01-02&order=moment",
    ):  # fmt: skip
        assert rows_read(client, "apikeys_auditevent", f"{AUDIT_LOG}?{query}") <= 60, query
    for query in ("address=192.0.2.1", "actor=nobody", "actor=nobody&since=2026-01-02"):
        assert rows_read(client, "apikeys_auditevent", f"{AUDIT_LOG}?{query}") <= 3 * MOST_ROWS, (
            query
        )


def test_events_of_deleted_objects(client: Client) -> None:
    """A search by the recorded name reads a bounded number of deletions, and never the log."""
    with connection.cursor() as cursor:
        cursor.execute("""
            INSERT INTO apikeys_auditevent
              (id, occurred_at, action, actor_name, token_id, resource_id, request_id, details)
            SELECT gen_random_uuid(), timestamptz '2026-02-01' + n * interval '1 second',
              'component.delete', 'ci', '', 'd' || n, '', jsonb_build_object('name', 'gone-' || n)
            FROM generate_series(1, 20000) n
        """)
    analyze(AuditEvent)
    for query in ("q=gone-2", "q=gone-20000", "q=none"):
        read = rows_read(client, "apikeys_auditevent", f"{AUDIT_LOG}?{query}")
        assert read <= 2 * MOST_ROWS + 60, query
    shown = client.get(f"{AUDIT_LOG}?q=GONE-20000").context["cl"].result_list
    assert [event.resource_id for event in shown] == ["d20000"]


@pytest.mark.parametrize("side", ["after", "before"])
def test_deep_pages_are_read_by_an_index(side: str, client: Client) -> None:
    pages = [
        ("apikeys_accesstoken", deep(AccessToken, TOKENS, side)),
        ("apikeys_accesstoken", deep(AccessToken, TOKENS, side, q="owner")),
        ("apikeys_auditevent", deep(AuditEvent, AUDIT_LOG, side)),
        ("apikeys_auditevent", deep(AuditEvent, AUDIT_LOG, side, action="state.push")),
    ]
    for table, path in pages:
        assert rows_read(client, table, path) <= 60, path


def test_overview_shows_the_finding(client: Client) -> None:
    AccessToken.objects.update(created_at=timezone.now() - timedelta(days=300))
    analyze(AccessToken)
    for table, most in {
        # Issued tokens only: the tokens that expire soon are listed and counted, and all are
        # checked for unused tokens.
        "apikeys_accesstoken": 4 * ROWS // 200,
        # All keys are checked for unused keys and counted first; the keys that expire soon are
        # listed and counted, with their owners.
        "apikeys_apikey": 3 * ROWS // 10 + 100,
        "apikeys_auditevent": 60,
    }.items():
        assert rows_read(client, table, "/admin/") <= most, table
