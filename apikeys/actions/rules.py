"""Rules of keys and tokens that hold for whoever creates or changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apikeys.errors import ExpiryPast, SecretRetired

if TYPE_CHECKING:
    from apikeys.audit import Actor
    from apikeys.models import AccessToken, ApiKey


def refuse_retired(actor: Actor) -> None:
    """Refuse the secret that a rotation has replaced: who has it still is not to take the key.

    Raises:
        SecretRetired: it is such a secret, or a token from before the rotation.
    """
    if actor.caller is not None and actor.caller.is_retired:
        raise SecretRetired


def refuse_ended(credential: ApiKey | AccessToken) -> None:
    """Refuse a key or token that would have ended when it is made, however close it was.

    Raises:
        ExpiryPast: it would have.
    """
    if credential.expires_at is not None and credential.expires_at <= credential.created_at:
        raise ExpiryPast
