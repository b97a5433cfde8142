"""The audit trail: who did what, with which token, to what, from where, in which request."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apikeys.models import AuditEvent

if TYPE_CHECKING:
    from rest_framework.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts: a caller over HTTP, a person in the admin, or a command."""

    name: str
    user_id: uuid.UUID | None = None
    token_id: str = ""
    address: str | None = None
    request_id: str = ""

    @classmethod
    def of(cls, request: Request) -> Actor:
        """Return the actor of an authenticated API request."""
        return cls(
            name=request.auth.username,
            user_id=request.auth.user_id,
            token_id=request.auth.token_id,
            address=request.META.get("REMOTE_ADDR") or None,
            request_id=request.request_id,
        )


def record(actor: Actor, action: str, resource_id: object, **details: Any) -> None:
    """Append one event; call it in the transaction of the change that it tells of."""
    AuditEvent.objects.create(
        action=action,
        actor_id=actor.user_id,
        actor_name=actor.name,
        token_id=actor.token_id,
        resource_id=str(resource_id),
        address=actor.address,
        request_id=actor.request_id,
        details=details,
    )
