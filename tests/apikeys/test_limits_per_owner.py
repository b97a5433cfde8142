"""Twenty simultaneous requests do not exceed the limits of keys and webhooks per owner."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apikeys.models import ApiKey, User
from apikeys.revalidation import MAX_WORKING_KEYS
from infra_service.webhooks.models import MAX_ENDPOINTS, WebhookEndpoint
from tests.apikeys.conftest import KeyWith
from tests.conftest import ClientWith
from tests.infra_service.webhooks.conftest import PATH, SCOPES
from tests.infra_service.webhooks.test_api import body
from tests.support.committed import at_once, db  # noqa: F401 - commits, in place of pytest-django's

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has a single writer"
)

HOUR = dt.timedelta(hours=1)
AGO = timezone.now() - 2 * HOUR
TIMES = 20
FREE = 3


def keys_of(owner: User, number: int, **fields: Any) -> list[ApiKey]:
    keys = [
        ApiKey(name="x", scopes=["state:read"], digest=(number * 10_000 + n).to_bytes(32),
               created_by=owner, **fields)
        for n in range(number)
    ]  # fmt: skip
    return ApiKey.objects.bulk_create(keys)


def outcomes(requests: list[Any]) -> Counter[tuple[int, str]]:
    answers = at_once(requests)
    return Counter(
        (a.status_code, "" if a.status_code < 300 else a.json()["error"]["details"][0]["reason"])
        for a in answers
    )


def test_created_and_renewed_keys(db: None, operator: User, key_with: KeyWith) -> None:  # noqa: F811
    makers = [key_with("apikey:read", "apikey:write", "state:read") for _ in range(4)]
    expired = keys_of(operator, TIMES // 2, created_at=AGO, expires_at=AGO + HOUR)
    keys_of(operator, MAX_WORKING_KEYS - len(makers) - FREE)
    create = {"api_key": {"name": "raced", "scopes": ["state:read"]}}
    requests = [
        partial(makers[n % 4].send, "POST", "/v1/api-keys", create) for n in range(TIMES // 2)
    ] + [
        partial(makers[n % 4].send, "PATCH", f"/v1/api-keys/{key.pk}", {"expires_at": None})
        for n, key in enumerate(expired)
    ]

    found = outcomes(requests)

    assert found[400, "TOO_MANY_API_KEYS"] == TIMES - FREE, found
    assert ApiKey.objects.filter(created_by=operator).active().count() == MAX_WORKING_KEYS


def test_webhooks(db: None, operator: User, client_with: ClientWith) -> None:  # noqa: F811
    client = client_with(*SCOPES)
    made = client.send("POST", PATH, body())
    assert made.status_code == 201, made.content
    first = WebhookEndpoint.objects.get()
    columns = {f.attname: getattr(first, f.attname) for f in first._meta.concrete_fields}
    del columns["id"]
    WebhookEndpoint.objects.bulk_create(
        WebhookEndpoint(**columns) for _ in range(MAX_ENDPOINTS - 1 - FREE)
    )

    found = outcomes([partial(client.send, "POST", PATH, body())] * TIMES)

    assert found == {(201, ""): FREE, (400, "TOO_MANY_WEBHOOKS"): TIMES - FREE}
    assert WebhookEndpoint.objects.count() == MAX_ENDPOINTS


def test_minted_tokens_do_not_wait_for_the_lock_of_an_owner(
    db: None,  # noqa: F811
    operator: User,
    key_with: KeyWith,
) -> None:
    key = key_with("apikey:read", "apikey:write")
    body = {"access_token": {"name": "x", "scopes": ["apikey:read"]}}
    with transaction.atomic():
        User.objects.lock(operator.pk)
        (answer,) = at_once([partial(key.send, "POST", "/v1/access-tokens", body)])

    assert answer.status_code == 201
