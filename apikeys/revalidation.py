"""Revalidate a caller in the transaction of its change.

The service authenticates a token before the request body arrives, which may take a long time. Each
change therefore adds a condition to one of its statements: the token, its key or trust policy, and
its owner are unchanged. If the condition fails, the service loads the caller again. It rejects
revoked and expired tokens and callers that lost permissions. For other callers, it repeats the
statement.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db.models import CharField, DateTimeField, Exists, PositiveIntegerField, Q, UUIDField
from django.utils import timezone

from apikeys import callers
from apikeys.errors import CallerChanged, TokenExpired, TooManyApiKeys
from apikeys.models.credentials import AccessToken, ApiKey
from apikeys.tokens import TokenKind
from infra_service.lib.database.compiled import CompiledInsert, Parameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import Model, QuerySet

    from apikeys.grants import Caller
    from apikeys.models.audit_log import AuditEvent
    from infra_service.lib.database.compiled import Prefetch

#: The maximum number of active keys per owner. A revocation covers all descendants of a key in a
#: transaction, and must always be possible.
MAX_WORKING_KEYS: Final = 1000
# An attempt fails only if another change to the caller succeeds.
_ATTEMPTS: Final = 20


def unchanged(caller: Caller) -> Q:
    """Return the condition that the caller is unchanged, for use in an UPDATE.

    Raises:
        TokenExpired: the token has expired.
    """
    _refuse_ended(caller)
    return Q(Exists(_CREDENTIALS[_form(caller)](_seen(caller))))


def unchanged_of(form: str) -> Q:
    """Return the condition for all callers of a kind. ``as_given`` returns its parameters."""
    return Q(Exists(_CREDENTIALS[form](_PARAMETERS)))


def as_given(caller: Caller) -> tuple[str, dict[str, Any]]:
    """Return the kind of caller and the values of its parameters.

    Raises:
        TokenExpired: the token has expired.
    """
    _refuse_ended(caller)
    return _form(caller), _seen(caller)


def refresh(caller: Caller, prefetch: Prefetch[Any] | None = None) -> Caller:
    """Load the caller again, and the row of ``prefetch`` in the same query.

    Raises:
        CredentialsInvalid, TokenExpired: the token was revoked or expired in the meantime.
        CallerChanged: the caller lost permissions in the meantime.
    """
    now = callers.refresh(caller, prefetch)
    if not caller.grant.is_within(now.grant):
        raise CallerChanged
    return now


def insert_if_unchanged(
    event: AuditEvent, caller: Caller, *rows: Model, adds_key: bool = False
) -> None:
    """Insert the event of a change, and rows with it, if the caller still has permission.

    With ``adds_key``, the statement also locks the caller until the transaction ends. A revocation
    then waits, and finds the new or reactivated key.

    Raises:
        CredentialsInvalid, TokenExpired, CallerChanged: see ``refresh``.
        TooManyApiKeys: the owner of the new key has the maximum number of active keys.
    """
    _refuse_ended(caller)
    statement = (_ADDING if adds_key else _ACTING)[_form(caller)]
    for _ in range(_ATTEMPTS):
        now, seen = timezone.now(), _seen(caller)
        given = {**seen, "user_id": caller.user_id, "key_id": event.resource_id, "now": now}
        if statement.run(event, *rows, **given):
            return
        caller = refresh(caller)
        if adds_key and _seen(caller) == seen:
            raise TooManyApiKeys(MAX_WORKING_KEYS)
    raise CallerChanged


def _refuse_ended(caller: Caller) -> None:
    if caller.expires_at is not None and caller.expires_at <= timezone.now():
        raise TokenExpired(caller.token_id)


def _form(caller: Caller) -> str:
    if caller.kind is TokenKind.API_KEY:
        return "key"
    if caller.api_key_id is not None:
        return "minted"
    return "issued" if caller.trust_policy_id is None else "exchanged"


def _seen(caller: Caller) -> dict[str, Any]:
    return {
        "token_id": caller.token_id,
        "revision": caller.revision,
        "api_key_revision": caller.api_key_revision,
        "trust_policy_revision": caller.trust_policy_revision,
    }


def _own(model: type[ApiKey | AccessToken], given: dict[str, Any]) -> QuerySet[Any, Any]:
    return model._default_manager.filter(
        pk=given["token_id"],
        revision=given["revision"],
        revoked_at=None,
        created_by__is_active=True,
    )


def _minted(given: dict[str, Any]) -> QuerySet[Any, Any]:
    return _own(AccessToken, given).filter(
        api_key__revision=given["api_key_revision"], api_key__revoked_at=None
    )


def _exchanged(given: dict[str, Any]) -> QuerySet[Any, Any]:
    return _own(AccessToken, given).filter(
        trust_policy__revision=given["trust_policy_revision"],
        trust_policy__disabled_at=None,
        trust_policy__issuer__disabled_at=None,
    )


_CREDENTIALS: Final[dict[str, Callable[[dict[str, Any]], QuerySet[Any, Any]]]] = {
    "key": partial(_own, ApiKey),
    "issued": partial(_own, AccessToken),
    "minted": _minted,
    "exchanged": _exchanged,
}
#: Kinds of callers, by the columns that a revalidation reads.
FORMS: Final = tuple(_CREDENTIALS)
_PARAMETERS: Final = {
    "token_id": Parameter("token_id", CharField()),
    "revision": Parameter("revision", PositiveIntegerField()),
    "api_key_revision": Parameter("api_key_revision", PositiveIntegerField()),
    "trust_policy_revision": Parameter("trust_policy_revision", PositiveIntegerField()),
}


def _acting(form: str) -> QuerySet[Any, Any]:
    return _CREDENTIALS[form](_PARAMETERS).values_list("pk")


def _adding(form: str) -> QuerySet[Any, Any]:
    now = Parameter("now", DateTimeField())
    working = ApiKey.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=now),
        ~Q(pk=Parameter("key_id", CharField())),  # may already be active in this transaction
        created_by=Parameter("user_id", UUIDField()),
        revoked_at=None,
    )
    enough = Exists(working[MAX_WORKING_KEYS - 1 :])
    locked = ("self",) if form == "key" else ("self", "api_key")
    creators = _CREDENTIALS[form](_PARAMETERS).filter(~enough)
    if form == "minted":
        creators = creators.select_related("api_key")
    return creators.select_for_update(no_key=True, of=locked)


_ACTING: Final = {form: CompiledInsert(partial(_acting, form)) for form in _CREDENTIALS}
_ADDING: Final = {form: CompiledInsert(partial(_adding, form)) for form in ("key", "minted")}
