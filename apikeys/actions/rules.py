"""Rules of keys and tokens that hold for whoever creates or changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apikeys.errors import ExpiryPast, SecretRetired

if TYPE_CHECKING:
    from apikeys.actors import Actor
    from apikeys.models.grant_holder import GrantHolder


def refuse_retired(actor: Actor) -> None:
    """Refuse the secret that a rotation has replaced: who has it still is not to take the key.

    Raises:
        SecretRetired: it is such a secret, or a token from before the rotation.
    """
    if actor.caller is not None and actor.caller.is_retired:
        raise SecretRetired


def refuse_ended(credential: GrantHolder) -> None:
    """Refuse a key, token or policy that would have ended when it is made, however close it was.

    Raises:
        ExpiryPast: it would have.
    """
    if credential.expires_at is not None and credential.expires_at <= credential.created_at:
        raise ExpiryPast


def maker_columns(actor: Actor) -> dict[str, Any]:
    """Return what a row keeps of the key, and the token of it, that makes it; nothing of others."""
    caller = actor.caller
    if caller is None:
        return {}
    token_id = "" if caller.token_id == caller.api_key_id else caller.token_id
    return {"maker_id": caller.api_key_id, "maker_token_id": token_id}
