"""Issue, mint and revoke access tokens."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from apikeys import audit, tokens
from apikeys.actions import descent
from apikeys.actions.audited_changes import change_and_record, described
from apikeys.actions.rules import refuse_expired, refuse_retired
from apikeys.errors import LifetimeExceeded
from apikeys.identifiers import access_token_id
from apikeys.models import AccessToken, ApiKey, TrustPolicy
from apikeys.models.credentials import MAX_TOKEN_SECONDS
from apikeys.tokens import TokenKind
from infra_service.lib.database.retries import retrying

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apikeys.actors import Actor
    from apikeys.bindings import Binding
    from apikeys.grants import Caller
    from apikeys.models import User
    from apikeys.networks import Networks

MINTED_LIFETIME: Final = dt.timedelta(hours=1)
MAX_MINTED_LIFETIME: Final = dt.timedelta(seconds=MAX_TOKEN_SECONDS)


def issue_access_token(
    *,
    kind: TokenKind,
    user: User,
    name: str,
    scopes: Iterable[str],
    expires_at: dt.datetime | None,
    actor: Actor,
    binding: Binding | None = None,
    allowed_networks: Networks | None = None,
    token_id: str | None = None,
) -> tuple[AccessToken, str]:
    """Issue a token on behalf of an operator. Return the token and its secret, which is not stored.

    Raises:
        IntegrityError: a token with the id ``token_id`` exists.
        GrantExceeded: the token would exceed the actor's grant.
        ExpiryPast: the expiry is in the past.
    """
    token = AccessToken(
        **actor.dated("created_at", access_token_id),
        kind=kind.name,
        created_by=user,
        name=name,
        expires_at=expires_at,
    )
    token.pk = token_id or token.pk
    secret = _issue(token, actor, scopes, binding, allowed_networks)
    owner = user.get_username()
    audit.authorize_and_insert(actor, "access_token.issue", token, owner=owner, **described(token))
    return token, secret


def mint_access_token(
    *,
    caller: Caller,
    kind: TokenKind,
    name: str,
    scopes: Iterable[str],
    actor: Actor,
    ttl: dt.timedelta | None = None,
    expires_at: dt.datetime | None = None,
    binding: Binding | None = None,
    allowed_networks: Networks | None = None,
) -> tuple[AccessToken, str]:
    """Mint a token from the calling key. Return the token and its secret, which is not stored.

    The token is valid for ``ttl`` or until ``expires_at``. The default is an hour, or the remaining
    lifetime of the key if it is shorter.

    Raises:
        GrantExceeded: the token would exceed the key's grant.
        LifetimeExceeded: the lifetime would exceed 12 hours, or the lifetime of the key.
        ExpiryPast: the expiry is in the past.
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
    secret = _issue(token, actor, scopes, binding, allowed_networks)
    audit.authorize_and_insert(actor, "access_token.mint", token, **described(token))
    return token, secret


def _issue(
    token: AccessToken,
    actor: Actor,
    scopes: Iterable[str],
    binding: Binding | None,
    networks: Networks | None,
) -> str:
    """Set the token's secret and grant, and return the secret."""
    refuse_expired(token)
    grant = actor.grant.delegated(scopes, binding, token.expires_at, networks)
    secret = tokens.generate(TokenKind[token.kind])
    token.digest = tokens.digest(secret)
    for column, value in grant.columns().items():
        setattr(token, column, value)
    return secret


@retrying
@transaction.atomic
def revoke_access_token(*, token: AccessToken, actor: Actor) -> int:
    """Revoke the token and all its descendant keys, and disable their policies.

    Return the number of revoked tokens and keys: 0 if the token was already revoked.

    Raises:
        SecretRetired: the actor's secret was replaced.
    """
    refuse_retired(actor)
    working = AccessToken.objects.filter(pk=token.pk, revoked_at=None)
    revocation = {"revoked_at": Now()}
    if not change_and_record(
        token.pk, working, revocation, actor=actor, action="access_token.revoke"
    ):
        return 0
    policies = TrustPolicy.objects.filter(maker_token_id=token.pk)
    descent.disable_policies(policies, token.pk, actor)
    return 1 + descent.revoke(ApiKey.objects.filter(maker_token_id=token.pk), token.pk, actor)
