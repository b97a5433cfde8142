"""From a token to its caller: one query by digest that brings all that a request needs."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import BinaryField, CharField, DateTimeField, Q
from django.utils import timezone

from apikeys import tokens
from apikeys.compiled import CompiledQuery, Parameter
from apikeys.errors import CredentialsInvalid, TokenExpired
from apikeys.models import LAST_USED_RESOLUTION, AccessToken, ApiKey
from apikeys.tokens import TokenKind

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection

    from django.db.models import QuerySet


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a token works. None is everywhere; outside, everything is answered with 404."""

    cluster_id: uuid.UUID | None = None
    component_ids: frozenset[uuid.UUID] | None = None
    environment_ids: frozenset[uuid.UUID] | None = None

    def allows_state(self, component_id: uuid.UUID, environment_id: uuid.UUID) -> bool:
        """Whether the state of this component and environment is inside."""
        return (
            self.cluster_id is None
            and (self.component_ids is None or component_id in self.component_ids)
            and (self.environment_ids is None or environment_id in self.environment_ids)
        )

    def allows_cluster(self, cluster_id: uuid.UUID) -> bool:
        """Whether the cluster is inside."""
        return (
            self.component_ids is None
            and self.environment_ids is None
            and self.cluster_id in (None, cluster_id)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The authenticated caller, as ``request.user`` and ``request.auth``."""

    kind: TokenKind
    token_id: str
    user_id: uuid.UUID
    username: str
    scopes: frozenset[str]
    binding: Binding
    expires_at: dt.datetime | None
    is_authenticated: bool = True


_COMMON = (
    "id", "scopes", "expires_at", "revoked_at", "last_used_at",
    "bound_cluster_id", "bound_component_ids", "bound_environment_ids",
    "created_by_id", "created_by__username", "created_by__is_active",
)  # fmt: skip
_OF_PARENT = ("kind", "api_key_id", "api_key__scopes", "api_key__expires_at", "api_key__revoked_at")


def find_caller(token: str) -> Caller:
    """Return the caller that this token stands for, and note its use.

    Raises:
        CredentialsInvalid: the form, the digest or the status is wrong; the answer is the same.
        TokenExpired: the token was right until it expired.
    """
    kind = tokens.kind_of(token)
    if kind is None:
        raise CredentialsInvalid
    now = timezone.now()
    row = _find_row(kind, tokens.digest(token), now)
    if row is None or row["revoked_at"] or not row["created_by__is_active"]:
        raise CredentialsInvalid
    scopes = frozenset(row["scopes"])
    expires_at = row["expires_at"]
    if row.get("api_key_id"):  # minted: it dies with its key, and has no more than its key has now
        if row["api_key__revoked_at"]:
            raise CredentialsInvalid
        scopes &= frozenset(row["api_key__scopes"])
        expires_at = min(filter(None, (expires_at, row["api_key__expires_at"])))
    if expires_at is not None and expires_at <= now:
        raise TokenExpired
    if row["last_used_at"] is None or row["last_used_at"] <= now - LAST_USED_RESOLUTION:
        model = ApiKey if kind is TokenKind.API_KEY else AccessToken
        model.objects.touch(row["id"], now)
    return Caller(
        kind=kind,
        token_id=row["id"],
        user_id=row["created_by_id"],
        username=row["created_by__username"],
        scopes=scopes,
        binding=Binding(
            cluster_id=row["bound_cluster_id"],
            component_ids=_uuids(row["bound_component_ids"]),
            environment_ids=_uuids(row["bound_environment_ids"]),
        ),
        expires_at=expires_at,
    )


def _api_keys() -> QuerySet[ApiKey, Any]:
    digest = Parameter("digest", BinaryField())
    now = Parameter("now", DateTimeField())
    previous = Q(previous_digest=digest, previous_digest_expires_at__gt=now)
    return ApiKey.objects.filter(Q(digest=digest) | previous).values_list(*_COMMON)


def _access_tokens() -> QuerySet[AccessToken, Any]:
    digest, kind = Parameter("digest", BinaryField()), Parameter("kind", CharField())
    issued = AccessToken.objects.filter(digest=digest, kind=kind)
    return issued.values_list(*_COMMON, *_OF_PARENT)


_API_KEY: Final = CompiledQuery(_api_keys)
_ACCESS_TOKEN: Final = CompiledQuery(_access_tokens)


def _find_row(kind: TokenKind, digest: bytes, now: dt.datetime) -> dict[str, Any] | None:
    if kind is TokenKind.API_KEY:
        row = _API_KEY.row(digest=digest, now=now)
    else:
        row = _ACCESS_TOKEN.row(digest=digest, kind=kind.name)
    return None if row is None else dict(zip((*_COMMON, *_OF_PARENT), row, strict=False))


def _uuids(texts: Collection[str] | None) -> frozenset[uuid.UUID] | None:
    return None if texts is None else frozenset(map(uuid.UUID, texts))
