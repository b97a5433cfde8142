"""What is done with keys and tokens, over several models; keyword-only and atomic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from apikeys import audit, tokens
from apikeys.models import AccessToken, ApiKey

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from apikeys.audit import Actor
    from apikeys.models import User
    from apikeys.scopes import Scope
    from apikeys.tokens import TokenKind


@transaction.atomic
def issue_access_token(
    *,
    kind: TokenKind,
    user: User,
    name: str,
    scopes: Iterable[Scope],
    expires_at: dt.datetime | None,
    actor: Actor,
) -> tuple[AccessToken, str]:
    """Issue a personal or service access token; return it with its secret, kept nowhere."""
    secret = tokens.generate(kind)
    token = AccessToken(
        kind=kind.name,
        created_by=user,
        name=name,
        scopes=sorted(set(scopes)),
        digest=tokens.digest(secret),
        expires_at=expires_at,
    )
    token.save(force_insert=True)
    audit.record(actor, "access_token.issue", token.pk, name=name, scopes=token.scopes)
    return token, secret


@transaction.atomic
def revoke_api_key(*, key: ApiKey, actor: Actor) -> bool:
    """Revoke the key, and with it all that was minted from it; return whether it was not before."""
    revoked = bool(ApiKey.objects.revoke(key.pk))
    if revoked:
        audit.record(actor, "api_key.revoke", key.pk)
    return revoked
