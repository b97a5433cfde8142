"""Lookup and revocation of exposed secrets of this service."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Q
from django.utils import timezone

from apikeys import tokens
from apikeys.actions.access_tokens import revoke_access_token
from apikeys.actions.api_keys import revoke_api_key
from apikeys.models import AccessToken, ApiKey

if TYPE_CHECKING:
    from collections.abc import Collection

    from apikeys.actors import Actor


class Exposed(NamedTuple):
    """The key or access token of an exposed secret."""

    credential: ApiKey | AccessToken
    #: A rotation has replaced the secret, which still works for the grace period.
    is_retired: bool

    @property
    def kind(self) -> str:
        """Return the kind of credential, for use in messages."""
        return str(self.credential._meta.verbose_name)


def digest_of(secret: str) -> bytes:
    return tokens.digest(secret)


def working(digests: Collection[bytes]) -> dict[bytes, Exposed]:
    """Return the credentials of these secrets that currently work, by digest."""
    if not digests:
        return {}
    found: dict[bytes, Exposed] = {}
    of_people = {"created_by__is_active": True}
    now = timezone.now()
    replaced = Q(previous_digest__in=digests, previous_digest_expires_at__gt=now)
    for key in ApiKey.objects.active().filter(Q(digest__in=digests) | replaced, **of_people):
        expiry = key.previous_digest_expires_at
        if key.previous_digest is not None and expiry is not None and expiry > now:
            found[bytes(key.previous_digest)] = Exposed(key, is_retired=True)
        found[bytes(key.digest)] = Exposed(key, is_retired=False)
    for token in AccessToken.objects.active().filter(digest__in=digests, **of_people):
        found[bytes(token.digest)] = Exposed(token, is_retired=False)
    return {digest: exposed for digest, exposed in found.items() if digest in digests}


def revoke(exposed: Exposed, *, actor: Actor) -> None:
    """Revoke the credential and its descendants, unless a rotation already replaced the secret."""
    if exposed.is_retired:
        return
    if isinstance(exposed.credential, ApiKey):
        revoke_api_key(key=exposed.credential, actor=actor)
    else:
        revoke_access_token(token=exposed.credential, actor=actor)
