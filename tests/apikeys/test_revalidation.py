"""Each deed looks at its caller again, in a statement that it sends anyway."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys import revalidation
from apikeys.actors import Actor
from apikeys.api import views
from apikeys.audit import record
from apikeys.callers import find_caller
from apikeys.errors import CallerChanged, TokenExpired
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from apikeys.querysets import ApiKeyQuerySet
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith
from tests.apikeys.test_ends import HOUR, minted
from tests.conftest import ClientWith, error_reason

IS_POSTGRESQL = connection.vendor == "postgresql"
NEW = {"name": "new", "scopes": ["state:read"]}


def after(change: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the change when the request's body has been read."""
    read_new = views.ApiKeyViewSet.read_new

    def and_then(self: Any) -> Any:
        fields = read_new(self)
        change()
        return fields

    monkeypatch.setattr(views.ApiKeyViewSet, "read_new", and_then)


CHANGES: dict[str, tuple[Callable[[KeyOwner], object], int, str]] = {
    "the key is revoked": (
        lambda owner: ApiKey.objects.revoke(owner.key_id), 401, "CREDENTIALS_INVALID",
    ),
    "its owner is deactivated": (
        lambda _owner: User.objects.update(is_active=False), 401, "CREDENTIALS_INVALID",
    ),
    "it loses a scope": (
        lambda _owner: ApiKey.objects.change(scopes=["apikey:write"]), 503, "CALLER_CHANGED",
    ),
    "it is bound": (
        lambda _owner: ApiKey.objects.change(bound_component_ids=[str(uuid4())]),
        503,
        "CALLER_CHANGED",
    ),
    "it is rotated": (
        lambda _owner: ApiKey.objects.change(digest=b"1" * 32), 401, "CREDENTIALS_INVALID",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_key_that_has_changed(
    owner: KeyOwner, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, status, reason = CHANGES[name]
    after(lambda: change(owner), monkeypatch)

    answer = owner.send("POST", "/v1/api-keys", NEW)

    assert (answer.status_code, error_reason(answer)) == (status, reason)
    assert ApiKey.objects.count() == 1
    assert not AuditEvent.objects.exclude(token_id="").exists()


def test_a_token_that_is_revoked(owner: KeyOwner, monkeypatch: pytest.MonkeyPatch) -> None:
    token = minted(owner)
    after(lambda: AccessToken.objects.revoke(AccessToken.objects.get().pk), monkeypatch)

    answer = token.send("POST", "/v1/api-keys", NEW)

    assert (answer.status_code, error_reason(answer)) == (401, "CREDENTIALS_INVALID")


def test_one_that_was_only_renamed(owner: KeyOwner, monkeypatch: pytest.MonkeyPatch) -> None:
    after(lambda: ApiKey.objects.change(name="renamed"), monkeypatch)

    assert owner.send("POST", "/v1/api-keys", NEW).status_code == 201


DEEDS: dict[str, tuple[str, Any]] = {
    "a change": ("", {"name": "late"}),
    "a rotation": (":rotate", {}),
    "a revocation": (":revoke", {}),
}


@pytest.mark.parametrize("by_token", [False, True], ids=["by a key", "by a token"])
@pytest.mark.parametrize("name", DEEDS)
def test_one_that_ends_while_its_deed_waits_for_the_row(
    owner: KeyOwner,
    key_with: KeyWith,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    *,
    by_token: bool,
) -> None:
    """Another transaction holds the row, and the caller is revoked before it lets go."""
    other = key_with(*owner.key.scopes, name="other", lifetime=HOUR / 2)
    caller = minted(owner) if by_token else owner
    tail, body = DEEDS[name]
    change = ApiKeyQuerySet.change

    def wait_and_change(self: Any, **values: Any) -> int:
        monkeypatch.setattr(ApiKeyQuerySet, "change", change)
        ApiKey.objects.revoke(owner.key_id)
        return change(self, **values)

    before = other.key
    monkeypatch.setattr(ApiKeyQuerySet, "change", wait_and_change)
    answer = caller.send("POST" if tail else "PATCH", other.path + tail, body)

    assert (answer.status_code, error_reason(answer)) == (401, "CREDENTIALS_INVALID")
    assert (other.key.revision, other.key.name) == (before.revision, "other")


def test_a_token_that_has_come_to_its_end(client_with: ClientWith) -> None:
    caller = find_caller(client_with("state:write").secret)

    with pytest.raises(TokenExpired):
        record(Actor(name="x", caller=replace(caller, expires_at=timezone.now())), "x", "y")
    assert not AuditEvent.objects.filter(action="x").exists()


def test_an_issued_token(client_with: ClientWith) -> None:
    client = client_with("state:write")
    actor = Actor(name="x", caller=find_caller(client.secret))
    record(actor, "x", "y")
    AccessToken.objects.change(scopes=["state:read"])

    with pytest.raises(CallerChanged):
        record(actor, "x", "y")
    assert AuditEvent.objects.filter(action="x").count() == 1


def test_one_that_changes_again_and_again(owner: KeyOwner, monkeypatch: pytest.MonkeyPatch) -> None:
    look_again = revalidation.look_again

    def and_change(caller: Any) -> Any:
        found = look_again(caller)
        ApiKey.objects.change(name="x")
        return found

    monkeypatch.setattr(revalidation, "look_again", and_change)
    after(lambda: ApiKey.objects.change(name="x"), monkeypatch)

    answer = owner.send("POST", "/v1/api-keys", NEW)
    assert (answer.status_code, error_reason(answer)) == (503, "CALLER_CHANGED")


def queries(client: KeyClient, method: str, path: str, body: Any) -> int:
    client.get("/v1/whoami")  # so that the use of the key is noted
    with CaptureQueriesContext(connection) as captured:
        assert client.send(method, path, body).status_code < 300
    return len([q for q in captured if "SAVEPOINT" not in q["sql"]])


def test_it_costs_no_statement(owner: KeyOwner) -> None:
    """As many as before callers were looked at again."""
    assert queries(owner, "POST", "/v1/api-keys", NEW) == 4
    # On PostgreSQL the token and its event are one.
    assert queries(owner, "POST", "/v1/access-tokens", NEW) == 4 - IS_POSTGRESQL
    assert queries(owner, "PATCH", owner.path, {"name": "x"}) == 6
    other = ApiKey.objects.latest("id")
    assert queries(owner, "POST", f"/v1/api-keys/{other.pk}:rotate", {}) == 6
