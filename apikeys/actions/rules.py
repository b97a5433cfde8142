"""Rules for every creation or change of keys and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone

from apikeys.errors import ExpiryPast, SecretRetired

if TYPE_CHECKING:
    from apikeys.actors import Actor
    from apikeys.models.grant_holder import GrantHolder


def refuse_retired(actor: Actor) -> None:
    """Refuse a secret that a rotation replaced, so that a former holder cannot take over the key.

    Raises:
        SecretRetired: the secret, or the secret behind the token, was replaced.
    """
    if actor.caller is not None and actor.caller.is_retired:
        raise SecretRetired


def refuse_expired(credential: GrantHolder) -> None:
    """Refuse a key, token, policy or webhook with an expiry in the past.

    Raises:
        ExpiryPast: the expiry is in the past.
    """
    if credential.expires_at is not None and credential.expires_at <= timezone.now():
        raise ExpiryPast


def creator_columns(actor: Actor) -> dict[str, Any]:
    """Return the columns that record the calling key and token, or {} without a caller."""
    caller = actor.caller
    if caller is None:
        return {}
    token_id = "" if caller.token_id == caller.api_key_id else caller.token_id
    return {"maker_id": caller.api_key_id, "maker_token_id": token_id}
