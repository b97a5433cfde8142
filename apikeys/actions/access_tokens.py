"""What is done with access tokens."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from apikeys import audit, tokens
from apikeys.actions import descent
from apikeys.actions.rules import refuse_ended, refuse_retired
from apikeys.actions.trail import change_and_record, described
from apikeys.errors import LifetimeExceeded
from apikeys.identifiers import access_token_id
from apikeys.models import AccessToken, ApiKey, TrustPolicy
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
MAX_MINTED_LIFETIME: Final = dt.timedelta(hours=12)


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
) -> tuple[AccessToken, str]:
    """Issue a token by an operator's word; return it with its secret, kept nowhere.

    Raises:
        GrantExceeded: it would hold more than the actor.
        ExpiryPast: it would have ended already.
    """
    token = AccessToken(
        **actor.dated("created_at", access_token_id),
        kind=kind.name,
        created_by=user,
        name=name,
        expires_at=expires_at,
    )
    secret = _hand_out(token, actor, scopes, binding, allowed_networks)
    owner = user.get_username()
    audit.authorize_and_insert(actor, "access_token.issue", token, owner=owner, **described(token))
    return token, secret


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
    allowed_networks: Networks | None = None,
) -> tuple[AccessToken, str]:
    """Mint a token from the key that calls; return it with its secret, kept nowhere.

    It lives for ``ttl`` or until ``expires_at``; without either for an hour, or as long as the key.

    Raises:
        GrantExceeded: it would hold more than the key.
        LifetimeExceeded: it would live for over 12 hours, or longer than the key.
        ExpiryPast: it would have ended already.
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
    secret = _hand_out(token, actor, scopes, binding, allowed_networks)
    audit.authorize_and_insert(actor, "access_token.mint", token, **described(token))
    return token, secret


def _hand_out(
    token: AccessToken,
    actor: Actor,
    scopes: Iterable[str],
    binding: Binding | None,
    networks: Networks | None,
) -> str:
    """Give the token a secret and what it may do, and return the secret."""
    refuse_ended(token)
    grant = actor.grant.handed_on(scopes, binding, token.expires_at, networks)
    secret = tokens.generate(TokenKind[token.kind])
    token.digest = tokens.digest(secret)
    for column, value in grant.columns().items():
        setattr(token, column, value)
    return secret


@retrying
@transaction.atomic
def revoke_access_token(*, token: AccessToken, actor: Actor) -> int:
    """Revoke the token, and all keys that it has made, and so on; policies are disabled.

    Return how many tokens and keys were revoked: none when it was already.

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
    return 1 + descent.revoke(ApiKey.objects.made_by_token(token.pk), token.pk, actor)
