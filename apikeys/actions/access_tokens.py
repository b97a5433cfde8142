"""What is done with access tokens."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone

from apikeys import audit, tokens
from apikeys.actions.trail import described
from apikeys.errors import LifetimeExceeded
from apikeys.grants import Binding, Grant
from apikeys.models import AccessToken
from apikeys.tokens import TokenKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apikeys.audit import Actor
    from apikeys.callers import Caller
    from apikeys.models import User

MINTED_LIFETIME: Final = dt.timedelta(hours=1)
MAX_MINTED_LIFETIME: Final = dt.timedelta(hours=12)


@transaction.atomic
def issue_access_token(
    *,
    kind: TokenKind,
    user: User,
    name: str,
    scopes: Iterable[str],
    expires_at: dt.datetime | None,
    actor: Actor,
    binding: Binding | None = None,
) -> tuple[AccessToken, str]:
    """Issue a token by an operator's word; return it with its secret, kept nowhere.

    Raises:
        GrantExceeded: it would hold more than the actor.
    """
    token = AccessToken(kind=kind.name, created_by=user, name=name, expires_at=expires_at)
    secret = _hand_out(token, scopes, binding, actor)
    audit.record(actor, "access_token.issue", token.pk, **described(token))
    return token, secret


@transaction.atomic
def mint_access_token(
    *,
    caller: Caller,
    kind: TokenKind,
    name: str,
    scopes: Iterable[str],
    ttl: dt.timedelta | None,
    expires_at: dt.datetime | None,
    actor: Actor,
    binding: Binding | None = None,
) -> tuple[AccessToken, str]:
    """Mint a token from the key that calls; return it with its secret, kept nowhere.

    It lives for ``ttl`` or until ``expires_at``; without either for an hour, or as long as the key.

    Raises:
        GrantExceeded: it would hold more than the key.
        LifetimeExceeded: it would live for over 12 hours, or longer than the key.
    """
    now = timezone.now()
    latest = now + MAX_MINTED_LIFETIME
    if caller.expires_at is not None:
        latest = min(latest, caller.expires_at)
    if ttl is not None:
        expires_at = now + ttl
    elif expires_at is None:
        expires_at = min(now + MINTED_LIFETIME, latest)
    if expires_at > latest:
        raise LifetimeExceeded("ttl" if ttl is not None else "expires_at", latest)
    token = AccessToken(
        kind=kind.name,
        created_by_id=caller.user_id,
        api_key_id=caller.api_key_id,
        name=name,
        created_at=now,
        expires_at=expires_at,
    )
    secret = _hand_out(token, scopes, binding, actor)
    audit.record(actor, "access_token.mint", token.pk, **described(token))
    return token, secret


def _hand_out(
    token: AccessToken, scopes: Iterable[str], binding: Binding | None, actor: Actor
) -> str:
    """Store the token and return its secret."""
    grant = Grant(frozenset(scopes), actor.grant.binding if binding is None else binding)
    actor.grant.check(grant)
    secret = tokens.generate(TokenKind[token.kind])
    token.scopes, token.digest = sorted(grant.scopes), tokens.digest(secret)
    for column, value in grant.binding.columns().items():
        setattr(token, column, value)
    token.save(force_insert=True)
    return secret


@transaction.atomic
def revoke_access_token(*, token: AccessToken, actor: Actor) -> bool:
    """Revoke the token; return whether it was not before."""
    revoked = bool(AccessToken.objects.revoke(token.pk))
    if revoked:
        audit.record(actor, "access_token.revoke", token.pk)
    return revoked
