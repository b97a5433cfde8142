"""Idempotency-Key: a POST that is repeated acts once, and answers as the first did."""

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from infra_service.lib.api import limits, throttling
from infra_service.lib.api.counters import MemoryCounters
from infra_service.lib.api.idempotent_requests import ANSWERS_KEPT, SECRETS_KEPT, IdempotentRequest
from infra_service.lib.api.limits import Limiter
from infra_service.operations.housekeeping.parts import PARTS
from states.models import Component
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith
from tests.conftest import ClientWith, error_reason

KEYS = "/v1/api-keys"
WISH = {"api_key": {"name": "x", "scopes": ["state:read"]}}
UUID = "0c4a9d5e-6c1c-4a53-8f0e-3d7c1b6f2a90"


def post(client: Client, path: str, body: Any = None, key: str | None = UUID) -> Any:
    """Send a POST with an Idempotency-Key."""
    content = b"" if body is None else json.dumps(body).encode()
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.generic("POST", path, content, "application/json", headers=headers)


@pytest.mark.both
def test_a_repeated_creation_has_the_first_answer(owner: KeyOwner) -> None:
    first = post(owner, KEYS, WISH)
    again = post(owner, KEYS, WISH)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert (first.headers.get("Idempotent-Replayed"), again["Idempotent-Replayed"]) == (
        None,
        "true",
    )
    assert (again["Cache-Control"], again["Content-Type"]) == ("no-store", "application/json")
    assert ApiKey.objects.filter(name="x").count() == 1
    assert AuditEvent.objects.filter(action="api_key.create", details__name="x").count() == 1
    assert KeyClient(again.json()["secret"]).get("/v1/whoami").status_code == 200


@pytest.mark.both
@pytest.mark.parametrize("grace_period", [0, 3600])
def test_a_key_that_rotates_itself_can_repeat_it(owner: KeyOwner, grace_period: int) -> None:
    body = {"grace_period": grace_period}
    first = post(owner, f"{owner.path}:rotate", body)
    again = post(owner, f"{owner.path}:rotate", body)

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert KeyClient(again.json()["secret"]).get("/v1/whoami").status_code == 200
    assert AuditEvent.objects.filter(action="api_key.rotate").count() == 1


def test_repeated_rotations_are_limited(
    owner: KeyOwner, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """They count as failures of their address, and not for the key that works."""
    settings.RATE_LIMIT_FAILURES, settings.RATE_LIMIT_KEY = 3, 2
    limiter = Limiter(MemoryCounters())
    monkeypatch.setattr(throttling, "limiter", lambda: limiter)
    monkeypatch.setattr(limits.time, "time", lambda: 1_800_000_000.0)
    secret = post(owner, f"{owner.path}:rotate").json()["secret"]

    answers = [post(owner, f"{owner.path}:rotate") for _ in range(5)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert error_reason(answers[-1]) == "RATE_LIMITED"
    assert KeyClient(secret).get("/v1/whoami").status_code == 200


def test_replaced_secret_can_only_repeat_its_rotation(owner: KeyOwner) -> None:
    path = f"{owner.path}:rotate"
    post(owner, path)

    for answer in (
        post(owner, path, key="another"),
        post(owner, path, key=None),
        post(owner, KEYS),
    ):
        assert (answer.status_code, error_reason(answer)) == (401, "CREDENTIALS_INVALID")
    changed = post(owner, path, {"grace_period": 60})
    assert (changed.status_code, error_reason(changed)) == (422, "IDEMPOTENCY_KEY_REUSED")


def test_a_secret_is_not_repeated_to_a_key_that_has_ended(owner: KeyOwner) -> None:
    post(owner, f"{owner.path}:rotate")
    actions.revoke_api_key(key=owner.key, actor=Actor(name="test"))

    answer = post(owner, f"{owner.path}:rotate")

    assert (answer.status_code, error_reason(answer)) == (401, "CREDENTIALS_INVALID")


def test_a_secret_is_not_repeated_after_another_rotation(owner: KeyOwner) -> None:
    secret = post(owner, f"{owner.path}:rotate").json()["secret"]
    post(KeyClient(secret), f"{owner.path}:rotate", key="another")

    assert post(owner, f"{owner.path}:rotate").status_code == 401


@pytest.mark.parametrize(
    ("path", "body"),
    [(KEYS, {"api_key": {**WISH["api_key"], "name": "y"}}), ("/v1/access-tokens", WISH["api_key"])],
)
def test_another_request_with_the_same_key(owner: KeyOwner, path: str, body: Any) -> None:
    post(owner, KEYS, WISH)

    answer = post(owner, path, body)

    assert (answer.status_code, error_reason(answer)) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert answer.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert not ApiKey.objects.filter(name="y").exists()
    assert not AccessToken.objects.exists()


def test_each_caller_has_keys_of_their_own(owner: KeyOwner, key_with: KeyWith) -> None:
    other = key_with("apikey:write", "state:read", user=User.objects.create(username="other"))

    mine, theirs = post(owner, KEYS, WISH).json(), post(other, KEYS, WISH).json()

    assert mine["secret"] != theirs["secret"]
    assert ApiKey.objects.filter(name="x").count() == 2


def test_a_final_slash_is_the_same_path(owner: KeyOwner) -> None:
    assert post(owner, KEYS, WISH).json() == post(owner, f"{KEYS}/", WISH).json()


@pytest.mark.both
def test_a_failure_is_not_stored(owner: KeyOwner) -> None:
    refused = post(owner, KEYS, {"api_key": {"name": "x", "scopes": ["state:admin"]}})
    assert (refused.status_code, error_reason(refused)) == (403, "GRANT_EXCEEDED")
    assert post(owner, KEYS, {"api_key": {"name": ""}}).status_code == 400
    assert post(owner, KEYS, {"x": 1}).status_code == 400
    assert not IdempotentRequest.objects.exists()

    assert post(owner, KEYS, WISH).status_code == 201


@pytest.mark.both
def test_change_is_rolled_back_if_the_response_is_not_stored(
    owner: KeyOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise DatabaseError("the process ended")

    with monkeypatch.context() as patch:
        patch.setattr(IdempotentRequest, "store", fail)
        assert post(owner, KEYS, WISH).status_code == 500
    assert not ApiKey.objects.filter(name="x").exists()
    assert not AuditEvent.objects.filter(action="api_key.create", details__name="x").exists()

    assert post(owner, KEYS, WISH).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "ä", "\x7f"])
def test_idempotency_key_of_the_wrong_form_is_rejected(owner: KeyOwner, key: str) -> None:
    answer = post(owner, KEYS, WISH, key=key)

    assert (answer.status_code, error_reason(answer)) == (400, "IDEMPOTENCY_KEY_INVALID")
    assert not ApiKey.objects.filter(name="x").exists()


@pytest.mark.parametrize("key", ["x", "x" * 255, '"8e03978e-40d5-43dd-bc93-6894a57f9324"', "a b"])
def test_idempotency_key_of_the_right_form_is_accepted(owner: KeyOwner, key: str) -> None:
    assert post(owner, KEYS, WISH, key=key).status_code == 201
    assert post(owner, KEYS, WISH, key=key)["Idempotent-Replayed"] == "true"


def age(by: dt.timedelta) -> None:
    """Make each stored request older by this duration."""
    for request in IdempotentRequest.objects.all():
        request.created_at -= by
        assert request.answer_until is not None
        request.answer_until -= by
        request.save()


def test_a_secret_is_removed_after_ten_minutes(owner: KeyOwner, client_with: ClientWith) -> None:
    post(owner, KEYS, WISH)
    state_admin = client_with("state:write", "state:admin")
    made = post(state_admin, "/api/v1/components", {"component": {"name": "c"}})
    age(SECRETS_KEPT)

    answer = post(owner, KEYS, WISH)
    assert (answer.status_code, error_reason(answer)) == (410, "IDEMPOTENT_ANSWER_REMOVED")
    assert ApiKey.objects.filter(name="x").count() == 1
    again = post(state_admin, "/api/v1/components", {"component": {"name": "c"}})
    assert (again.status_code, again.json()) == (201, made.json())
    assert Component.objects.count() == 1

    post(owner, KEYS, WISH, key="another")
    assert IdempotentRequest.objects.filter(answer=None).count() == 1
    assert post(owner, KEYS, WISH).status_code == 410


def test_a_key_can_be_used_again_after_24_hours(owner: KeyOwner) -> None:
    post(owner, KEYS, WISH)
    age(ANSWERS_KEPT)

    answer = post(owner, KEYS, {"api_key": {**WISH["api_key"], "name": "y"}})

    assert answer.status_code == 201
    assert ApiKey.objects.filter(name__in="xy").count() == 2


def test_the_answer_is_stored_encrypted(owner: KeyOwner, settings: Any) -> None:
    secret = post(owner, KEYS, WISH).json()["secret"]
    row = IdempotentRequest.objects.get()
    stored = b"".join(str(value).encode() for value in vars(row).values()) + bytes(
        row.answer or b""
    )
    assert secret.encode() not in stored
    assert UUID.encode() not in stored

    settings.STATE_ENCRYPTION_KEYS = ["MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="]
    assert post(owner, KEYS, WISH).status_code == 410


def test_housekeeping_deletes_expired_responses(owner: KeyOwner) -> None:
    post(owner, KEYS, WISH)
    post(owner, "/v1/access-tokens", {"name": "t", "scopes": ["state:read"]}, key="2")
    age(ANSWERS_KEPT)
    post(owner, KEYS, WISH, key="3")

    assert sum(PARTS["tokens"]()) == 2

    assert IdempotentRequest.objects.count() == 1


def test_request_without_the_header_adds_no_queries(owner: KeyOwner) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert post(owner, KEYS, WISH, key=None).status_code == 201

    assert not [query for query in queries if "idempotent" in query["sql"]]
    assert not IdempotentRequest.objects.exists()


#: POSTs that take no Idempotency-Key, and the reason.
OTHERS = {
    "StateBackendView": "a push that is repeated makes no second version",
    "McpView": "reads",
    "StateAtView": "a push that is repeated makes no second version",
    "StateInApplicationView": "a push that is repeated makes no second version",
    "StateLockView": "a lock has an id of its own",
    "StateLockAtView": "a lock has an id of its own",
    "StateLockInApplicationView": "a lock has an id of its own",
    "NoAddressView": "refuses everything",
    "StateViewSet.force_unlock": "names the lock that it releases",
    "StateViewSet.freeze": "changes nothing if the state is frozen for this reason",
    "StateViewSet.unfreeze": "makes a state writable that is",
    "StateViewSet.undelete": "makes a state visible that is",
    "FindResourcesViewSet.find": "reads",
    "WorkloadViewSet.report_failure": "reports the same failure again",
    "ApiKeyViewSet.revoke": "is final",
    "AccessTokenViewSet.revoke": "is final",
    "IssuerViewSet.disable": "is final",
    "TrustPolicyViewSet.disable": "is final",
    "TrustPolicyViewSet.test": "reads",
    "TokenExchangeView": "an assertion is accepted once",
}


def posts(resolver: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each method of a view that answers a POST of the API, by its name."""
    for pattern in resolver.url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from posts(pattern, path)
        elif isinstance(pattern, URLPattern) and not path.startswith("admin"):
            view: Any = getattr(pattern.callback, "cls", None)
            names = getattr(pattern.callback, "actions", None)
            if names and "post" in names:
                yield f"{view.__name__}.{names['post']}", getattr(view, names["post"])
            elif view is not None and not names and hasattr(view, "post"):
                yield view.__name__, view.post


def test_each_post_is_idempotent_or_has_a_reason() -> None:
    found = dict(posts(get_resolver()))
    others = {name for name, method in found.items() if not hasattr(method, "is_idempotent")}

    assert others == set(OTHERS)
    assert len(found) - len(others) == 14
