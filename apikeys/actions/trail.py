from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apikeys.models import AccessToken

if TYPE_CHECKING:
    from apikeys.models import ApiKey


def described(credential: ApiKey | AccessToken) -> dict[str, Any]:
    """Return what the trail keeps of a key or token: all that it may do, and for how long."""
    expires_at = credential.expires_at
    described: dict[str, Any] = {
        "name": credential.name,
        "scopes": credential.scopes,
        "expires_at": None if expires_at is None else expires_at.isoformat(),
        "binding": credential.binding.described(),
    }
    if isinstance(credential, AccessToken):
        described |= {"kind": credential.kind, "api_key_id": credential.api_key_id}
    return described


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return of each thing that has changed what it was and what it is."""
    return {
        name: {"from": before[name], "to": after[name]}
        for name in after
        if before[name] != after[name]
    }
