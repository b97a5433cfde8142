"""Each write checks its caller again, in a statement that it sends anyway."""

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
from apikeys.audit import AuditedUpdate, authorize_and_record
from apikeys.callers import find_caller
from apikeys.errors import CallerChanged, CredentialsInvalid, TokenExpired
from apikeys.models import AccessToken, ApiKey, AuditEvent, Issuer, TrustPolicy, User
from apikeys.querysets import ApiKeyQuerySet
from apikeys.tokens import TokenKind
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith
from tests.apikeys.test_expiry_and_revocation import HOUR, minted
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


@pytest.mark.both
@pytest.mark.parametrize("name", CHANGES)
def test_changed_key_is_detected(
    owner: KeyOwner, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, status, reason = CHANGES[name]
    after(lambda: change(owner), monkeypatch)

    answer = owner.send("POST", "/v1/api-keys", NEW)

    assert (answer.status_code, error_reason(answer)) == (status, reason)
    assert ApiKey.objects.count() == 1
    assert not AuditEvent.objects.exclude(token_id="").exists()


def test_revoked_token_is_refused(owner: KeyOwner, monkeypatch: pytest.MonkeyPatch) -> None:
    token = minted(owner)
    after(lambda: AccessToken.objects.revoke(AccessToken.objects.get().pk), monkeypatch)

    answer = token.send("POST", "/v1/api-keys", NEW)

    assert (answer.status_code, error_reason(answer)) == (401, "CREDENTIALS_INVALID")


def test_renamed_caller_is_accepted(owner: KeyOwner, monkeypatch: pytest.MonkeyPatch) -> None:
    after(lambda: ApiKey.objects.change(name="renamed"), monkeypatch)

    assert owner.send("POST", "/v1/api-keys", NEW).status_code == 201


ACTIONS: dict[str, tuple[str, Any]] = {
    "a change": ("", {"name": "late"}),
    "a rotation": (":rotate", {}),
    "a revocation": (":revoke", {}),
}


@pytest.mark.parametrize("by_token", [False, True], ids=["by a key", "by a token"])
@pytest.mark.parametrize("name", ACTIONS)
def test_caller_revoked_while_waiting_for_a_row_lock_is_rejected(
    owner: KeyOwner,
    key_with: KeyWith,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    *,
    by_token: bool,
) -> None:
    """Another transaction locks the row, and the caller is revoked before it releases the row."""
    other = key_with(*owner.key.scopes, name="other", lifetime=HOUR / 2)
    caller = minted(owner) if by_token else owner
    tail, body = ACTIONS[name]
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


def test_expired_token_is_refused(client_with: ClientWith, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the exact time of expiry, writes of every kind are refused."""
    now = timezone.now()
    caller = replace(find_caller(client_with("state:write").secret), expires_at=now)
    actor = Actor(name="x", caller=caller)
    monkeypatch.setattr(timezone, "now", lambda: now)

    with pytest.raises(TokenExpired):
        authorize_and_record(actor, "x", "y")
    with pytest.raises(TokenExpired):
        actor.unchanged()
    with pytest.raises(TokenExpired):
        rename_users(actor)
    assert not AuditEvent.objects.filter(action="x").exists()


_RENAMING = AuditedUpdate(User.objects.all, "display_name")


def rename_users(actor: Actor) -> bool:
    return _RENAMING.run(actor, "x", "y", {}, display_name="renamed")


@pytest.fixture
def caller_of(key_with: KeyWith, client_with: ClientWith, operator: User) -> Callable[[str], Any]:
    """Return a factory of callers of a form, each with a second caller of that form."""
    issuer = Issuer.objects.create(kind="GITHUB", url="https://issuer.example", audience="x")

    def exchanged() -> Any:
        policy = TrustPolicy.objects.create(
            issuer=issuer, owner=operator, name="ci", scopes=["state:read"],
            conditions=[{"claim": "a", "equals": "b"}],
        )  # fmt: skip
        return client_with(
            "state:read", kind=TokenKind.SERVICE, trust_policy=policy,
            expires_at="2099-01-01T00:00:00Z",
        )  # fmt: skip

    makers: dict[str, Callable[[], Any]] = {
        "key": lambda: key_with("state:read"),
        "issued": lambda: client_with("state:read"),
        "minted": lambda: minted(key_with("state:read", "apikey:write")),
        "exchanged": exchanged,
    }

    def make(form: str) -> Any:
        makers[form]()
        return find_caller(makers[form]().secret)

    return make


def _row(caller: Any) -> Any:
    model = ApiKey if caller.token_id == caller.api_key_id else AccessToken
    return model.objects.filter(pk=caller.token_id)


# Also emergency changes by SQL alone, which leave the revision unchanged.
ENDS: dict[str, tuple[tuple[str, ...], Callable[[Any], object]]] = {
    "revoked with SQL": (revalidation.FORMS, lambda c: _row(c).update(revoked_at=timezone.now())),
    "changed": (revalidation.FORMS, lambda c: _row(c).change(scopes=["state:write"])),
    "owner deactivated": (
        revalidation.FORMS, lambda c: User.objects.filter(pk=c.user_id).update(is_active=False),
    ),
    "key revoked with SQL": (
        ("minted",),
        lambda c: ApiKey.objects.filter(pk=c.api_key_id).update(revoked_at=timezone.now()),
    ),
    "key changed": (
        ("minted",),
        lambda c: ApiKey.objects.filter(pk=c.api_key_id).change(scopes=["cluster:read"]),
    ),
    "policy disabled with SQL": (
        ("exchanged",),
        lambda c: TrustPolicy.objects.filter(pk=c.trust_policy_id).update(
            disabled_at=timezone.now()
        ),
    ),
    "policy changed": (
        ("exchanged",),
        lambda c: TrustPolicy.objects.filter(pk=c.trust_policy_id).change(scopes=["state:write"]),
    ),
    "issuer disabled": (
        ("exchanged",), lambda _caller: Issuer.objects.update(disabled_at=timezone.now()),
    ),
}  # fmt: skip


@pytest.mark.both
@pytest.mark.parametrize(
    ("form", "what"), [(form, what) for what, (forms, _) in ENDS.items() for form in forms]
)
def test_each_kind_of_change_revalidates_each_form_of_caller(
    caller_of: Callable[[str], Any], form: str, what: str
) -> None:
    caller = caller_of(form)
    actor = Actor(name="x", caller=caller)
    everybody = User.objects.count()
    assert User.objects.filter(actor.unchanged()).count() == everybody
    assert rename_users(actor)

    ENDS[what][1](caller)

    assert not User.objects.filter(actor.unchanged()).exists()
    assert not rename_users(actor)
    with pytest.raises((CredentialsInvalid, CallerChanged)):
        authorize_and_record(actor, "z", "y")
    assert not AuditEvent.objects.filter(action="z").exists()


def test_issued_token_is_accepted(client_with: ClientWith) -> None:
    client = client_with("state:write")
    actor = Actor(name="x", caller=find_caller(client.secret))
    authorize_and_record(actor, "x", "y")
    AccessToken.objects.change(scopes=["state:read"])

    with pytest.raises(CallerChanged):
        authorize_and_record(actor, "x", "y")
    assert AuditEvent.objects.filter(action="x").count() == 1


def test_constantly_changing_caller_gets_503(
    owner: KeyOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh = revalidation.refresh

    def and_change(caller: Any) -> Any:
        found = refresh(caller)
        ApiKey.objects.change(name="x")
        return found

    monkeypatch.setattr(revalidation, "refresh", and_change)
    after(lambda: ApiKey.objects.change(name="x"), monkeypatch)

    answer = owner.send("POST", "/v1/api-keys", NEW)
    assert (answer.status_code, error_reason(answer)) == (503, "CALLER_CHANGED")


def queries(client: KeyClient, method: str, path: str, body: Any) -> int:
    client.get("/v1/whoami")  # so that the use of the key is noted
    with CaptureQueriesContext(connection) as captured:
        assert client.send(method, path, body).status_code < 300
    return len([q for q in captured if "SAVEPOINT" not in q["sql"]])


def test_it_costs_no_statement(owner: KeyOwner) -> None:
    """The number of statements is the same as without the check."""
    # One of them locks the owner, whose keys are counted.
    assert queries(owner, "POST", "/v1/api-keys", NEW) == 5
    # On PostgreSQL a single statement inserts the token and its event.
    assert queries(owner, "POST", "/v1/access-tokens", NEW) == 4 - IS_POSTGRESQL
    assert queries(owner, "PATCH", owner.path, {"name": "x"}) == 6
    other = ApiKey.objects.latest("id")
    assert queries(owner, "POST", f"/v1/api-keys/{other.pk}:rotate", {}) == 6
