"""GET /api/v1/audit-events."""

import uuid
from typing import Any

import pytest

from apikeys import audit
from apikeys.actors import Actor
from apikeys.models import AuditEvent
from tests.apikeys.conftest import KeyWith, wire
from tests.conftest import ApiClient, ClientWith, error_reason

PATH = "/api/v1/audit-events"
A_USER = uuid.UUID("0190b1c0-0000-7000-8000-000000000001")


@pytest.fixture
def auditor(client_with: ClientWith) -> ApiClient:
    return client_with("audit:read")


@pytest.fixture
def events(auditor: ApiClient) -> None:
    """Three events, after the event of the auditor's own token."""
    ada = Actor(
        name="ada", user_id=A_USER, token_id="tok-a", address="2001:db8::1", request_id="r1"
    )
    audit.authorize_and_record(ada, "state.push", "s1", version=1)
    audit.authorize_and_record(ada, "state.lock", "s1")
    audit.authorize_and_record(Actor(name="bob", token_id="tok-b"), "state.push", "s2")


def found(auditor: ApiClient, **query: Any) -> list[tuple[str, str]]:
    response = auditor.get(PATH, query)
    assert response.status_code == 200, response.json()
    return [(e["action"], e["resource_id"]) for e in response.json()["audit_events"]]


def test_newest_items_are_listed_first(auditor: ApiClient, events: None) -> None:
    assert found(auditor) == [
        ("state.push", "s2"), ("state.lock", "s1"), ("state.push", "s1"),
        ("access_token.issue", auditor.token.pk),
    ]  # fmt: skip


def test_event_contains_all_fields(auditor: ApiClient, events: None) -> None:
    response = auditor.get(PATH + "/", {"filter": "field['actor_name'] = 'ada'", "page_size": 1})

    event = AuditEvent.objects.get(action="state.lock")
    assert response.json()["audit_events"] == [
        {
            "id": str(event.pk),
            "occurred_at": wire(event.occurred_at),
            "action": "state.lock",
            "actor_id": str(A_USER),
            "actor_name": "ada",
            "token_id": "tok-a",
            "resource_id": "s1",
            "address": "2001:db8::1",
            "request_id": "r1",
            "client_request_id": "",
            "trace_id": None,
            "details": {},
        }
    ]
    assert response.json()["next_page_token"]


def test_pages_contain_every_item_once(auditor: ApiClient, events: None) -> None:
    seen, token = [], ""
    for _ in range(4):
        answer = auditor.get(PATH, {"page_size": 1, "page_token": token}).json()
        seen += [event["resource_id"] for event in answer["audit_events"]]
        token = answer["next_page_token"]

    assert (seen, token) == (["s2", "s1", "s1", auditor.token.pk], "")


@pytest.mark.both
@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("field['action'] = 'state.push'", 2),
        ("field['action'] STARTS_WITH 'state.'", 3),
        (f"field['actor_id'] = '{A_USER}'", 2),
        ("field['token_id'] = 'tok-b'", 1),
        ("field['resource_id'] = 's1' AND field['action'] != 'state.lock'", 1),
        ("field['request_id'] = 'r1'", 2),
        ("field['occurred_at'] < '2020-01-01T00:00:00Z'", 0),
    ],
)
def test_filters_select_matching_items(
    auditor: ApiClient, events: None, expression: str, count: int
) -> None:
    assert len(found(auditor, filter=expression)) == count


def test_a_bound_token_does_not_reach_it(client_with: ClientWith) -> None:
    response = client_with("audit:read", bound_cluster_id=uuid.uuid4()).get(PATH)

    assert (response.status_code, error_reason(response)) == (404, "AUDIT_TRAIL_NOT_FOUND")


def test_it_needs_its_scope(client_with: ClientWith) -> None:
    response = client_with("state:read").get(PATH)

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


def test_it_takes_no_api_key(key_with: KeyWith) -> None:
    response = key_with("audit:read").get(PATH)

    assert (response.status_code, error_reason(response)) == (403, "TOKEN_KIND_UNSUPPORTED")
