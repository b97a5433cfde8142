"""Rules for every creation or change of keys and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apikeys.errors import ExpiryPast, SecretRetired
from apikeys.grants import Grant

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    if credential.has_expired:
        raise ExpiryPast


def changed_grant(holder: GrantHolder, changes: Mapping[str, Any], actor: Actor) -> Grant:
    """Return the grant of a key or policy after the changes."""
    binding = holder.binding
    if "binding" in changes:
        binding = changes["binding"].within_applications_of(actor.grant.binding)
    return Grant(
        frozenset(changes.get("scopes", holder.scopes)),
        binding,
        # A later expiry is a larger grant. Otherwise, any key could extend an expiring key.
        changes.get("expires_at", holder.expires_at),
        changes.get("allowed_networks", holder.grant.networks),
    )


def creator_columns(actor: Actor) -> dict[str, Any]:
    """Return the columns that record the calling key and token, or {} without a caller."""
    caller = actor.caller
    if caller is None:
        return {}
    token_id = "" if caller.token_id == caller.api_key_id else caller.token_id
    return {"maker_id": caller.api_key_id, "maker_token_id": token_id}
