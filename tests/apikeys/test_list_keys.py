"""GET /v1/api-keys."""

import datetime as dt
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import ApiKey
from tests.apikeys.conftest import KeyOwner, KeyWith, expire
from tests.conftest import error_reason

PATH = "/v1/api-keys"


def names(client: KeyOwner, **query: object) -> list[str]:
    response = client.get(f"{PATH}?{urlencode(query)}")
    assert response.status_code == 200, response.json()
    return [key["name"] for key in response.json()["api_keys"]]


@pytest.fixture
def three(key_with: KeyWith) -> None:
    """An active, an expired and a revoked key in addition to the caller's own."""
    key_with("state:read", name="active", lifetime=dt.timedelta(days=1))
    expire(key_with("state:read", name="expired").key)
    actions.revoke_api_key(key=key_with("state:read", name="revoked").key, actor=Actor(name="test"))


def test_list_contains_exactly_the_keys_of_the_owner(
    owner: KeyOwner, three: None, outsider: KeyOwner
) -> None:
    response = owner.get(PATH + "/")

    assert response.json()["next_page_token"] == ""
    assert [key["name"] for key in response.json()["api_keys"]] == [
        "test", "active", "expired", "revoked",
    ]  # fmt: skip
    assert response.json()["api_keys"][0] == owner.get(owner.path).json()["api_key"]
    assert list(response.json()) == ["api_keys", "next_page_token"]


@pytest.mark.both
@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("field['status'] = 'API_KEY_STATUS_EXPIRED'", ["expired"]),
        ("field['status'] = 'REVOKED'", ["revoked"]),
        ("field['status'] IN ('ACTIVE', 'REVOKED')", ["test", "active", "revoked"]),
        ("field['status'] != 'ACTIVE'", ["expired", "revoked"]),
        ("field['name'] STARTS_WITH 'e'", ["expired"]),
        ("field['name'] ~= 'RE' AND NOT field['status'] = 'EXPIRED'", ["revoked"]),
        ("field['expires_at'] > '2026-01-01T00:00:00Z'", ["active", "expired"]),
        ("field['created_at'] < '2020-01-01T00:00:00Z'", []),
        ("field['expires_at'] IS NULL", ["test", "revoked"]),
        ("field['expires_at'] IS NOT NULL", ["active", "expired"]),
        ("NOT field['expires_at'] IS NULL AND field['status'] = 'ACTIVE'", ["active"]),
    ],
)
def test_filters_select_matching_items(
    owner: KeyOwner, three: None, expression: str, found: list[str]
) -> None:
    assert names(owner, filter=expression) == found


def test_invalid_filter_is_rejected(owner: KeyOwner) -> None:
    response = owner.get(PATH, {"filter": "field['statuss'] = 'ACTIVE'"})

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FILTER")
    assert response.json()["error"]["details"][0]["metadata"] == {
        "code": "unknown_field", "position": "6", "suggestion": "did you mean 'status'?",
    }  # fmt: skip


def test_pages_contain_every_item_once(owner: KeyOwner, three: None) -> None:
    seen, token = [], ""
    for expected in (3, 1):
        answer = owner.get(PATH, {"page_size": 3, "page_token": token}).json()
        assert len(answer["api_keys"]) == expected
        seen += [key["name"] for key in answer["api_keys"]]
        token = answer["next_page_token"]

    assert token == ""
    assert seen == ["test", "active", "expired", "revoked"]


def test_the_queries_stay_when_the_keys_double(owner: KeyOwner, key_with: KeyWith) -> None:
    owner.get(PATH)
    counts = []
    for _ in range(2):
        for _ in range(5):
            key_with("state:read")
        with CaptureQueriesContext(connection) as queries:
            owner.get(PATH)
        counts.append(len(queries))

    assert counts == [2, 2]  # authentication, and the page


def test_it_needs_its_scope(key_with: KeyWith) -> None:
    response = key_with("apikey:write").get(PATH)

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")


@pytest.mark.both
@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("field['scopes'] CONTAINS 'apikey:write'", ["test", "broad"]),
        ("field['scopes'] = 'state:read'", ["narrow"]),
        ("NOT field['scopes'] CONTAINS 'apikey:write'", ["narrow"]),
        ("field['last_used_at'] IS NULL", ["broad"]),
        ("field['last_used_at'] < '2021-01-01T00:00:00Z'", ["narrow"]),
        ("field['revoked_at'] IS NOT NULL", ["broad"]),
        ("field['unusable_reason'] = 'REVOKED'", ["broad"]),
        ("field['made_by'] = '{owner}'", ["broad"]),
        ("field['id'] = '{owner}'", ["test"]),
    ],
)
def test_stale_and_broad_keys_are_found(
    owner: KeyOwner, key_with: KeyWith, expression: str, found: list[str]
) -> None:
    key_with("state:read", name="narrow")
    used = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    ApiKey.objects.filter(name="narrow").update(last_used_at=used)
    wish = {"name": "broad", "scopes": ["apikey:write", "state:read"]}
    made = owner.send("POST", PATH, wish).json()["api_key"]["id"]
    owner.send("POST", f"{PATH}/{made}:revoke")

    assert names(owner, filter=expression.format(owner=owner.key_id)) == found


@pytest.mark.both
def test_keys_in_the_order_of_their_last_use(owner: KeyOwner, key_with: KeyWith) -> None:
    for number in (3, 1, 2, 1):
        key = key_with("state:read", name=f"used {number}").key
        used = dt.datetime(2020, 1, number, tzinfo=dt.UTC)
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=used)
    for _ in range(2):
        key_with("state:read", name="never")
    owner.get("/v1/whoami")

    def walk(order: str) -> list[str]:
        found, token = [], ""
        while True:
            parameters = {"order_by": order, "page_size": 2, "page_token": token}
            page = owner.get(PATH, parameters).json()
            found += [key["name"] for key in page["api_keys"]]
            token = page["next_page_token"]
            if not token:
                return found

    used = ["used 1", "used 1", "used 2", "used 3", "test"]
    assert walk("last_used_at") == [*used, "never", "never"]
    assert walk("last_used_at desc") == [*reversed(used), "never", "never"]
