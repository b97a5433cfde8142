"""Rate limits: per token, key and owner, and per address for failed authentications."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys import tokens
from apikeys.models import ApiKey
from apikeys.tokens import TokenKind
from infra_service.lib.api import limits, throttling
from infra_service.lib.api.counters import MemoryCounters
from infra_service.lib.api.limits import Limiter
from infra_service.lib.api.redis_counters import RedisCounters
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith
from tests.conftest import error_reason

WHOAMI = "/v1/whoami"
NOW = 1_800_000_015.5  # 44.5 seconds before the next window


@pytest.fixture(autouse=True)
def limited(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RATE_LIMIT_TOKEN, settings.RATE_LIMIT_FAILURES = 3, 2
    settings.RATE_LIMIT_KEY = settings.RATE_LIMIT_OWNER = 0
    limiter = Limiter(MemoryCounters())
    monkeypatch.setattr(throttling, "limiter", lambda: limiter)
    monkeypatch.setattr(limits.time, "time", lambda: NOW)


def wrong(address: str = "192.0.2.1", token: str = "x") -> Any:
    return Client(raise_request_exception=False).get(
        WHOAMI, headers={"Authorization": f"Bearer {token}"}, REMOTE_ADDR=address
    )


def test_each_token_has_its_own_count(owner: KeyOwner, key_with: KeyWith) -> None:
    assert [owner.get(WHOAMI).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert key_with("state:read").get(WHOAMI).status_code == 200


def test_a_refused_request(owner: KeyOwner) -> None:
    for _ in range(3):
        owner.get(WHOAMI)

    response = owner.get(WHOAMI)

    assert (response.status_code, error_reason(response)) == (429, "RATE_LIMITED")
    assert response.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert response["Retry-After"] == "45"
    info = response.json()["error"]["details"][0]
    assert info["metadata"] == {"limit": "token", "requests_per_minute": "3"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/api-keys", 400),
        ("GET", "/api/v1/states", 403),
        ("GET", "/v1/api-keys/key-0", 404),
        ("PUT", "/v1/api-keys", 405),
    ],
)
def test_rejected_requests_count(owner: KeyOwner, method: str, path: str, status: int) -> None:
    answers = [owner.send(method, path, {}) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [status] * 3 + [429]


def test_a_token_that_has_ended_counts(owner: KeyOwner, settings: Any) -> None:
    """It counts under its own name only, or anyone who finds it could block its owner."""
    settings.RATE_LIMIT_FAILURES, settings.RATE_LIMIT_OWNER = 0, 4
    ApiKey.objects.filter(pk=owner.key.pk).update(revoked_at=timezone.now())

    assert [owner.get(WHOAMI).status_code for _ in range(4)] == [401, 401, 401, 429]
    limit = owner.get(WHOAMI).json()["error"]["details"][0]["metadata"]["limit"]
    assert limit == "token"
    ApiKey.objects.filter(pk=owner.key.pk).update(revoked_at=None)
    settings.RATE_LIMIT_TOKEN = 0
    assert owner.get(WHOAMI).status_code == 200


@pytest.mark.parametrize("limit", ["key", "owner"])
def test_a_key_and_its_owner_have_counts(owner: KeyOwner, settings: Any, limit: str) -> None:
    """A new token does not reset the count."""
    setattr(settings, f"RATE_LIMIT_{limit.upper()}", 4)
    settings.RATE_LIMIT_TOKEN = 100
    body = {"access_token": {"name": "job", "scopes": ["state:read"]}}
    secrets = [owner.send("POST", "/v1/access-tokens", body).json()["secret"] for _ in range(2)]
    first, second = (KeyClient(secret) for secret in secrets)

    assert [c.get(WHOAMI).status_code for c in (first, second)] == [200, 200]
    refused = second.get(WHOAMI)
    assert refused.status_code == 429
    metadata = refused.json()["error"]["details"][0]["metadata"]
    assert metadata == {"limit": limit, "requests_per_minute": "4"}


def test_all_keys_of_an_owner_count_together(
    owner: KeyOwner, key_with: KeyWith, settings: Any
) -> None:
    settings.RATE_LIMIT_OWNER = 2
    assert [owner.get(WHOAMI).status_code for _ in range(2)] == [200, 200]

    assert key_with("state:read").get(WHOAMI).status_code == 429


def test_public_paths_are_not_counted(anonymous: Client) -> None:
    assert {anonymous.get("/healthz").status_code for _ in range(9)} == {200}


def test_failures_are_counted_by_address() -> None:
    assert [wrong().status_code for _ in range(3)] == [401, 401, 429]
    assert wrong("192.0.2.2").status_code == 401

    response = wrong()
    assert (error_reason(response), response["Retry-After"]) == ("RATE_LIMITED", "45")
    assert "WWW-Authenticate" not in response


def test_an_ipv6_host_has_a_whole_network() -> None:
    hosts = ("2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::1", "2001:db8:0:1::1")

    assert [wrong(host).status_code for host in hosts] == [401, 401, 429, 401]


def test_ipv4_mapped_addresses_are_counted_separately() -> None:
    """In the form that a dual-stack socket reports."""
    hosts = ("::ffff:192.0.2.1", "::ffff:192.0.2.2", "::ffff:192.0.2.3", "::ffff:192.0.2.4")

    assert [wrong(host).status_code for host in hosts] == [401, 401, 401, 401]
    assert [wrong("192.0.2.1").status_code for _ in range(2)] == [401, 429]


@pytest.mark.parametrize("address", ["", "unix:"])
def test_invalid_address_is_limited_too(address: str) -> None:
    assert [wrong(address).status_code for _ in range(3)] == [401, 401, 429]


def test_a_right_token_from_there_is_let_in(owner: KeyOwner, db: None) -> None:
    for _ in range(9):
        wrong("127.0.0.1", tokens.generate(TokenKind.API_KEY))

    assert owner.get(WHOAMI).status_code == 200


def test_no_credentials_are_no_failure(anonymous: Client) -> None:
    assert {anonymous.get(WHOAMI).status_code for _ in range(9)} == {401}


def test_an_unauthenticated_request_is_not_counted_for_a_token(settings: Any) -> None:
    settings.RATE_LIMIT_FAILURES = 0

    assert {wrong().status_code for _ in range(9)} == {401}


def test_without_counters_requests_go_on(owner: KeyOwner, monkeypatch: pytest.MonkeyPatch) -> None:
    limiter = Limiter(RedisCounters("redis://127.0.0.1:1/0"))
    monkeypatch.setattr(throttling, "limiter", lambda: limiter)

    assert {owner.get(WHOAMI).status_code for _ in range(9)} == {200}
    assert {KeyClient("x").get(WHOAMI).status_code for _ in range(9)} == {401}


def test_a_response_describes_the_limits_that_counted_the_request(
    owner: KeyOwner, settings: Any
) -> None:
    settings.RATE_LIMIT_OWNER = 4

    response = owner.get(WHOAMI)

    assert response["RateLimit-Policy"] == '"token";q=3;w=60, "owner";q=4;w=60'
    assert response["RateLimit"] == '"token";r=2;t=45, "owner";r=3;t=45'
    owner.get(WHOAMI)
    owner.get(WHOAMI)
    refused = owner.get(WHOAMI)
    assert refused.status_code == 429
    assert refused["RateLimit"] == '"token";r=0;t=45, "owner";r=0;t=45'
    assert refused["Retry-After"] == "45"


def test_a_refusal_of_a_later_check_describes_the_limits(owner: KeyOwner) -> None:
    response = owner.send("GET", "/api/v1/states", {})

    assert response.status_code == 403
    assert response["RateLimit"] == '"token";r=2;t=45'


def test_only_the_refusal_of_a_failure_describes_its_limit() -> None:
    """A lower count would reveal how often others use a token that has expired."""
    answers = [wrong() for _ in range(3)]

    assert ["RateLimit" in answer for answer in answers] == [False, False, True]
    assert answers[-1]["RateLimit-Policy"] == '"address";q=2;w=60'
    assert answers[-1]["RateLimit"] == '"address";r=0;t=45'


def test_no_limits_and_public_paths_have_no_headers(
    owner: KeyOwner, anonymous: Client, settings: Any
) -> None:
    settings.RATE_LIMIT_TOKEN = 0

    for answer in (owner.get(WHOAMI), anonymous.get("/healthz"), anonymous.get(WHOAMI)):
        assert "RateLimit" not in answer
        assert "RateLimit-Policy" not in answer


def test_the_headers_cost_no_statement(
    owner: KeyOwner, settings: Any, django_assert_num_queries: Any
) -> None:
    owner.get(WHOAMI)  # records the key's use
    with CaptureQueriesContext(connection) as with_headers:
        assert "RateLimit" in owner.get(WHOAMI)
    settings.RATE_LIMIT_TOKEN = 0

    with django_assert_num_queries(len(with_headers)):
        assert "RateLimit" not in owner.get(WHOAMI)
