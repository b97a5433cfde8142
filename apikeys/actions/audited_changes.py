"""Changes to credentials, recorded together with their audit events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from apikeys import audit
from apikeys.models import AccessToken, TrustPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from apikeys.actors import Actor
    from apikeys.models import ApiKey
    from apikeys.querysets import GrantHolderQuerySet, IssuerQuerySet


def change_and_record(
    credential_id: str,
    rows: GrantHolderQuerySet[Any] | IssuerQuerySet,
    values: Mapping[str, Any],
    *,
    actor: Actor,
    action: str,
    record: Callable[..., None] = audit.authorize_and_record,
    **details: Any,
) -> bool:
    """Change a key, token, policy or issuer and record the event, in the caller's transaction.

    ``rows`` selects the row only if it is unchanged since it was read. If the row has changed, roll
    back and return False. The event is recorded last, because recording revalidates the actor, and
    the change may have waited for another transaction. A change to the actor's own credential is
    recorded first, because the change may invalidate the actor.
    """
    caller = actor.caller
    is_own = caller is not None and credential_id in (caller.token_id, caller.api_key_id)
    if is_own:
        record(actor, action, credential_id, **details)
    if not rows.change(**values):
        transaction.set_rollback(True)
        return False
    if not is_own:
        record(actor, action, credential_id, **details)
    return True


def described(credential: ApiKey | AccessToken | TrustPolicy) -> dict[str, Any]:
    """Return the grant and expiry of a key, token or policy for the audit log."""
    expires_at = credential.expires_at
    described: dict[str, Any] = {
        "name": credential.name,
        "scopes": credential.scopes,
        "expires_at": None if expires_at is None else expires_at.isoformat(),
        "binding": credential.binding.described(),
    }
    if credential.allowed_networks is not None:
        described["allowed_networks"] = credential.allowed_networks
    if isinstance(credential, AccessToken):
        described |= {"kind": credential.kind, "api_key_id": credential.api_key_id}
    if isinstance(credential, TrustPolicy):
        names = ("issuer_id", "conditions", "max_token_seconds")
        described |= {name: getattr(credential, name) for name in names}
        described["owner_id"] = str(credential.owner_id)
    return described


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the old and the new value of each field that has changed."""
    return {
        name: {"from": before.get(name), "to": after.get(name)}
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    }
