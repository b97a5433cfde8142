"""Authentication of tokens with a single query by digest."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from django.db.models import BinaryField, CharField, DateTimeField, Q
from django.utils import timezone

from apikeys import metrics, tokens
from apikeys.bindings import Binding
from apikeys.errors import AddressNotAllowed, CredentialsInvalid, TokenExpired
from apikeys.grants import Caller, Grant
from apikeys.idle_owners import idle_before
from apikeys.metrics import Authentication
from apikeys.models.credentials import AccessToken, ApiKey
from apikeys.networks import Networks
from apikeys.querysets import LAST_USED_RESOLUTION
from apikeys.scopes import with_included
from apikeys.tokens import TokenKind
from apikeys.usability import (
    KEY_EXPIRIES,
    KEY_REVOCATIONS,
    TOKEN_EXPIRIES,
    TOKEN_REVOCATIONS,
    UnusableReason,
    unusable_reason,
)
from infra_service.lib.database.compiled import CompiledQuery, Parameter

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from infra_service.lib.database.compiled import Prefetch


#: The columns of a grant, also of the key or policy behind a token (see ``_grant``).
_GRANT: Final = (
    "scopes", "expires_at", "allowed_networks",
    "bound_cluster_id", "bound_component_ids", "bound_environment_ids", "bound_application_ids",
)  # fmt: skip
_COMMON: Final = (
    "id", *_GRANT, "last_used_at", "revision", "unusable_reason", "created_by_id",
    "created_by__username",
)  # fmt: skip
_OF_KEY: Final = (*_COMMON, "digest", "previous_digest_expires_at")
_OF_TOKEN: Final = (
    *_COMMON,
    "created_at",
    "api_key_id", "api_key__revision", "api_key__rotated_at",
    *(f"api_key__{name}" for name in _GRANT),
    "trust_policy_id", "trust_policy__revision",
    *(f"trust_policy__{name}" for name in _GRANT),
)  # fmt: skip

#: The outcome in the metrics for each reason. An expired token has its own error.
_OUTCOMES: Final = {
    UnusableReason.REVOKED: Authentication.REVOKED,
    UnusableReason.API_KEY_REVOKED: Authentication.REVOKED,
    UnusableReason.TRUST_POLICY_DISABLED: Authentication.REVOKED,
    UnusableReason.ISSUER_DISABLED: Authentication.REVOKED,
    UnusableReason.OWNER_INACTIVE: Authentication.INACTIVE,
    UnusableReason.OWNER_IDLE: Authentication.IDLE,
    UnusableReason.EXPIRED: Authentication.EXPIRED,
    UnusableReason.API_KEY_EXPIRED: Authentication.EXPIRED,
    UnusableReason.TRUST_POLICY_EXPIRED: Authentication.EXPIRED,
}


def find_caller(token: str, prefetch: Prefetch[Any] | None = None, address: str = "") -> Caller:
    """Authenticate a token with a single query, and record its use from the client's address.

    If the token exists, the same query loads the row of ``prefetch``.

    Raises:
        CredentialsInvalid: the format, digest or status is wrong. The response does not disclose
            which of these applies.
        TokenExpired: the token was valid until it expired.
        AddressNotAllowed: the client's address is outside the token's networks.
    """
    # 1. Recognize the kind of token by its prefix.
    kind = tokens.kind_of(token)
    if kind is None:
        raise refused(Authentication.MALFORMED)
    return find_by_digest(kind, tokens.digest(token), prefetch, address)


def find_by_digest(
    kind: TokenKind, digest: bytes, prefetch: Prefetch[Any] | None = None, address: str = ""
) -> Caller:
    """Authenticate the token with this digest; see ``find_caller``.

    Raises:
        CredentialsInvalid, TokenExpired, AddressNotAllowed: see ``find_caller``.
    """
    now = timezone.now()
    # 2. Look up its digest; refuse an unknown, revoked or expired token.
    caller, last_used_at = _identify(kind, digest, now, prefetch)
    # 3. Check the client's address.
    if not caller.networks.allows(address):
        metrics.count(Authentication.ADDRESS)
        raise AddressNotAllowed(caller.token_id)
    # 4. Record the use, at most once a minute.
    if last_used_at is None or last_used_at <= now - LAST_USED_RESOLUTION:
        model = ApiKey if kind is TokenKind.API_KEY else AccessToken
        model.objects.touch(caller.token_id, now, address)
    metrics.count(Authentication.OK)
    return caller


def refresh(caller: Caller, prefetch: Prefetch[Any] | None = None) -> Caller:
    """Load the caller again, and the row of ``prefetch`` in the same query.

    Raises:
        CredentialsInvalid, TokenExpired: the token was revoked or expired in the meantime.
    """
    return _identify(caller.kind, caller.digest, timezone.now(), prefetch)[0]


def _identify(
    kind: TokenKind, digest: bytes, now: dt.datetime, prefetch: Prefetch[Any] | None = None
) -> tuple[Caller, dt.datetime | None]:
    """Return the caller and the time of the last use of the token."""
    row = _find_row(kind, digest, now, prefetch)
    if row is None:
        raise refused(Authentication.UNKNOWN)
    if reason := row["unusable_reason"]:
        outcome = _OUTCOMES[reason]
        if outcome is not Authentication.EXPIRED:
            raise refused(outcome, row["id"])
        metrics.count(outcome)
        raise TokenExpired(row["id"])
    grant, is_retired = _grant(row, ""), False
    if kind is TokenKind.API_KEY:
        api_key_id = row["id"]
        is_retired = bytes(row["digest"]) != digest
        if is_retired:
            ends = filter(None, (grant.expires_at, row["previous_digest_expires_at"]))
            grant = dataclasses.replace(grant, expires_at=min(ends))
    elif api_key_id := row["api_key_id"]:
        # A minted token never exceeds the current grant of its key.
        grant = grant.intersection(_grant(row, "api_key__"))
        rotated_at = row["api_key__rotated_at"]
        is_retired = rotated_at is not None and row["created_at"] <= rotated_at
    elif row["trust_policy_id"]:
        grant = grant.intersection(_grant(row, "trust_policy__"))
    caller = Caller(
        kind=kind,
        token_id=row["id"],
        api_key_id=api_key_id,
        user_id=row["created_by_id"],
        username=row["created_by__username"],
        scopes=with_included(grant.scopes),
        binding=grant.binding,
        expires_at=grant.expires_at,
        digest=digest,
        is_retired=is_retired,
        revision=row["revision"],
        api_key_revision=row.get("api_key__revision"),
        trust_policy_id=row.get("trust_policy_id"),
        trust_policy_revision=row.get("trust_policy__revision"),
        networks=grant.networks,
    )
    return caller, row["last_used_at"]


def refused(why: Authentication, token_id: str | None = None) -> CredentialsInvalid:
    """Count the refusal and return its error, which is the same for all reasons."""
    metrics.count(why)
    return CredentialsInvalid(token_id)


def _grant(row: dict[str, Any], prefix: str) -> Grant:
    binding = Binding.of_columns(
        row[f"{prefix}bound_cluster_id"],
        row[f"{prefix}bound_component_ids"],
        row[f"{prefix}bound_environment_ids"],
        row[f"{prefix}bound_application_ids"],
    )
    networks = Networks.of_column(row[f"{prefix}allowed_networks"])
    return Grant(frozenset(row[f"{prefix}scopes"]), binding, row[f"{prefix}expires_at"], networks)


_DIGEST: Final = Parameter("digest", BinaryField())
_NOW: Final = Parameter("now", DateTimeField())
_IDLE_BEFORE: Final = Parameter("idle_before", DateTimeField())


def _api_keys() -> QuerySet[ApiKey, Any]:
    previous = Q(previous_digest=_DIGEST, previous_digest_expires_at__gt=_NOW)
    found = ApiKey.objects.filter(Q(digest=_DIGEST) | previous)
    reason = unusable_reason(KEY_REVOCATIONS, KEY_EXPIRIES, now=_NOW, idle_before=_IDLE_BEFORE)
    rows: QuerySet[ApiKey, Any] = found.annotate(unusable_reason=reason).values_list(*_OF_KEY)
    return rows


def _access_tokens() -> QuerySet[AccessToken, Any]:
    found = AccessToken.objects.filter(digest=_DIGEST, kind=Parameter("kind", CharField()))
    reason = unusable_reason(TOKEN_REVOCATIONS, TOKEN_EXPIRIES, now=_NOW, idle_before=_IDLE_BEFORE)
    rows: QuerySet[AccessToken, Any]
    rows = found.annotate(unusable_reason=reason).values_list(*_OF_TOKEN)
    return rows


_API_KEY: Final = CompiledQuery(_api_keys)
_ACCESS_TOKEN: Final = CompiledQuery(_access_tokens)


def _find_row(
    kind: TokenKind, digest: bytes, now: dt.datetime, prefetch: Prefetch[Any] | None
) -> dict[str, Any] | None:
    names: Sequence[str]
    query: CompiledQuery[Any]
    given: dict[str, Any] = {"digest": digest, "now": now, "idle_before": idle_before(now)}
    if kind is TokenKind.API_KEY:
        names, query = _OF_KEY, _API_KEY
    else:
        names, query = _OF_TOKEN, _ACCESS_TOKEN
        given["kind"] = kind.name
    row = query.row(**given) if prefetch is None else query.row_with(prefetch, **given)
    return None if row is None else dict(zip(names, row, strict=True))
