"""From a token to its caller: one query by digest that brings all that a request needs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from django.db.models import BinaryField, CharField, DateTimeField, Q
from django.utils import timezone

from apikeys import metrics, tokens
from apikeys.bindings import Binding
from apikeys.errors import CredentialsInvalid, TokenExpired
from apikeys.grants import Caller, Grant
from apikeys.idle_owners import is_idle, last_signed_on
from apikeys.metrics import Authentication
from apikeys.models.credentials import AccessToken, ApiKey
from apikeys.querysets import LAST_USED_RESOLUTION
from apikeys.scopes import with_included
from apikeys.tokens import TokenKind
from infra_service.database.compiled import CompiledQuery, Parameter

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from infra_service.database.compiled import Asked


_COMMON = (
    "id", "scopes", "expires_at", "revoked_at", "last_used_at", "revision",
    "bound_cluster_id", "bound_component_ids", "bound_environment_ids", "bound_application_ids",
    "created_by_id", "created_by__username", "created_by__is_active", "owner_signed_on",
)  # fmt: skip
_OF_KEY = (*_COMMON, "digest", "previous_digest_expires_at")
_OF_TOKEN = (
    *_COMMON,
    "created_at", "api_key_id", "api_key__scopes", "api_key__expires_at", "api_key__revoked_at",
    "api_key__bound_cluster_id", "api_key__bound_component_ids", "api_key__bound_environment_ids",
    "api_key__bound_application_ids",
    "api_key__revision", "api_key__rotated_at",
    "trust_policy_id", "trust_policy__scopes", "trust_policy__expires_at",
    "trust_policy__disabled_at", "trust_policy__issuer__disabled_at",
    "trust_policy__bound_cluster_id", "trust_policy__bound_component_ids",
    "trust_policy__bound_environment_ids", "trust_policy__bound_application_ids",
    "trust_policy__revision",
)  # fmt: skip

#: What has a moment in any of these is no secret any more.
_ENDS = (
    "revoked_at", "api_key__revoked_at",
    "trust_policy__disabled_at", "trust_policy__issuer__disabled_at",
)  # fmt: skip


def find_caller(token: str, along: Asked[Any] | None = None) -> Caller:
    """Return the caller that this token stands for, and note its use.

    What is asked ``along`` comes in the same round trip, if there is such a token.

    Raises:
        CredentialsInvalid: the form, the digest or the status is wrong; the answer is the same.
        TokenExpired: the token was right until it expired.
    """
    kind = tokens.kind_of(token)
    if kind is None:
        raise refused(Authentication.MALFORMED)
    now = timezone.now()
    caller, last_used_at = _identify(kind, tokens.digest(token), now, along)
    if last_used_at is None or last_used_at <= now - LAST_USED_RESOLUTION:
        model = ApiKey if kind is TokenKind.API_KEY else AccessToken
        model.objects.touch(caller.token_id, now)
    metrics.count(Authentication.OK)
    return caller


def look_again(caller: Caller, along: Asked[Any] | None = None) -> Caller:
    """Return the caller as it is now, and bring along what is asked, as ``find_caller`` does.

    Raises:
        CredentialsInvalid, TokenExpired: it has ended meanwhile.
    """
    return _identify(caller.kind, caller.digest, timezone.now(), along)[0]


def _identify(
    kind: TokenKind, digest: bytes, now: dt.datetime, along: Asked[Any] | None = None
) -> tuple[Caller, dt.datetime | None]:
    """Return the caller, and when its secret was last used."""
    row = _find_row(kind, digest, now, along)
    if row is None:
        raise refused(Authentication.UNKNOWN)
    if any(row.get(column) for column in _ENDS):  # a minted one dies with its origin
        raise refused(Authentication.REVOKED, row["id"])
    if not row["created_by__is_active"]:
        raise refused(Authentication.INACTIVE, row["id"])
    if is_idle(row["owner_signed_on"], now):
        raise refused(Authentication.IDLE, row["id"])
    grant, is_retired = _grant(row, ""), False
    if kind is TokenKind.API_KEY:
        api_key_id = row["id"]
        is_retired = bytes(row["digest"]) != digest
        if is_retired:
            grant = dataclasses.replace(
                grant, expires_at=_sooner(grant.expires_at, row["previous_digest_expires_at"])
            )
    elif api_key_id := row["api_key_id"]:
        # Minted: it has no more than its key has now.
        grant = grant.intersection(_grant(row, "api_key__"))
        rotated_at = row["api_key__rotated_at"]
        is_retired = rotated_at is not None and row["created_at"] <= rotated_at
    elif row["trust_policy_id"]:
        grant = grant.intersection(_grant(row, "trust_policy__"))
    if grant.expires_at is not None and grant.expires_at <= now:
        metrics.count(Authentication.EXPIRED)
        raise TokenExpired(row["id"])
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
    )
    return caller, row["last_used_at"]


def _sooner(end: dt.datetime | None, other: dt.datetime) -> dt.datetime:
    return other if end is None else min(end, other)


def refused(why: Authentication, token_id: str | None = None) -> CredentialsInvalid:
    """Count the refusal and return its error, which tells the caller the same for all of them."""
    metrics.count(why)
    return CredentialsInvalid(token_id)


def _grant(row: dict[str, Any], prefix: str) -> Grant:
    binding = Binding.of_columns(
        row[f"{prefix}bound_cluster_id"],
        row[f"{prefix}bound_component_ids"],
        row[f"{prefix}bound_environment_ids"],
        row[f"{prefix}bound_application_ids"],
    )
    return Grant(frozenset(row[f"{prefix}scopes"]), binding, row[f"{prefix}expires_at"])


def _api_keys() -> QuerySet[ApiKey, Any]:
    digest = Parameter("digest", BinaryField())
    now = Parameter("now", DateTimeField())
    previous = Q(previous_digest=digest, previous_digest_expires_at__gt=now)
    return _rows(ApiKey.objects.filter(Q(digest=digest) | previous), _OF_KEY)


def _access_tokens() -> QuerySet[AccessToken, Any]:
    digest, kind = Parameter("digest", BinaryField()), Parameter("kind", CharField())
    return _rows(AccessToken.objects.filter(digest=digest, kind=kind), _OF_TOKEN)


def _rows(found: QuerySet[Any], names: Sequence[str]) -> QuerySet[Any, Any]:
    rows: QuerySet[Any, Any] = found.annotate(owner_signed_on=last_signed_on("created_by__"))
    return rows.values_list(*names)


_API_KEY: Final = CompiledQuery(_api_keys)
_ACCESS_TOKEN: Final = CompiledQuery(_access_tokens)


def _find_row(
    kind: TokenKind, digest: bytes, now: dt.datetime, along: Asked[Any] | None
) -> dict[str, Any] | None:
    names: Sequence[str]
    query: CompiledQuery[Any]
    given: dict[str, Any]
    if kind is TokenKind.API_KEY:
        names, query, given = _OF_KEY, _API_KEY, {"digest": digest, "now": now}
    else:
        names, query, given = _OF_TOKEN, _ACCESS_TOKEN, {"digest": digest, "kind": kind.name}
    row = query.row(**given) if along is None else query.row_with(along, **given)
    return None if row is None else dict(zip(names, row, strict=True))
