"""The audit trail: who did what, with which token, to what, from where, in which request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apikeys.authentication import caller_of
from apikeys.compiled import insert
from apikeys.grants import EVERYTHING, Grant
from apikeys.models import AuditEvent

if TYPE_CHECKING:
    import uuid

    from django.http import HttpRequest
    from rest_framework.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts: a caller over HTTP, a person in the admin, or a command.

    ``grant`` is what they may hand on: a caller what the token holds, an operator everything.
    """

    name: str
    grant: Grant = EVERYTHING
    user_id: uuid.UUID | None = None
    token_id: str = ""
    address: str | None = None
    request_id: str = ""
    client_request_id: str = ""

    @classmethod
    def of(cls, request: Request) -> Actor:
        """Return the actor of an authenticated API request."""
        caller = caller_of(request)
        return cls(
            name=caller.username,
            grant=caller.grant,
            user_id=caller.user_id,
            token_id=caller.token_id,
            address=request.META.get("REMOTE_ADDR") or None,
            request_id=getattr(request, "request_id", ""),
            client_request_id=getattr(request, "client_request_id", ""),
        )

    @classmethod
    def of_person(cls, request: HttpRequest) -> Actor:
        """Return the person who is logged in to the admin, an operator."""
        return cls(
            name=request.user.get_username(),
            user_id=request.user.pk,
            address=request.META.get("REMOTE_ADDR") or None,
            request_id=getattr(request, "request_id", ""),
            client_request_id=getattr(request, "client_request_id", ""),
        )


def record(actor: Actor, action: str, resource_id: object, **details: Any) -> None:
    """Append one event; call it in the transaction of the change that it tells of."""
    insert(
        AuditEvent(
            action=action,
            actor_id=actor.user_id,
            actor_name=actor.name,
            token_id=actor.token_id,
            resource_id=str(resource_id),
            address=actor.address,
            request_id=actor.request_id,
            client_request_id=actor.client_request_id,
            details=details,
        )
    )
