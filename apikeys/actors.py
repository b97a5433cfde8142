"""Actors of changes: a caller over HTTP, a person in the admin, or a command."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.utils import timezone

from apikeys import revalidation
from apikeys.authentication import caller_of
from apikeys.grants import EVERYTHING, Grant
from infra_service.lib.api.identifiers import uuid7_of

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Callable, Iterator

    from django.http import HttpRequest
    from rest_framework.request import Request

    from apikeys.grants import Caller
    from apikeys.models.users import User
    from infra_service.lib.database.compiled import Prefetch


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The actor of a change: a caller over HTTP, a person in the admin, or a command.

    ``grant`` limits the grants that the actor can create. It is the token's grant for a caller, and
    contains every permission for an operator.
    """

    name: str
    grant: Grant = EVERYTHING
    user_id: uuid.UUID | None = None
    token_id: str = ""
    address: str | None = None
    request_id: str = ""
    client_request_id: str = ""
    trace_id: str = ""
    # Set only for an API request. An operator has no caller.
    caller: Caller | None = None
    # The time of a past action. Only seed_demo sets it.
    at: dt.datetime | None = None

    @classmethod
    def of(cls, request: Request) -> Actor:
        """Return the actor of an authenticated API request."""
        caller = caller_of(request)
        return cls(
            name=caller.username,
            grant=caller.grant,
            user_id=caller.user_id,
            token_id=caller.token_id,
            caller=caller,
            **_origin(request),
        )

    @classmethod
    def of_person(cls, request: HttpRequest, user: User | None = None) -> Actor:
        """Return the logged-in admin user, or the given user during login, as an operator.

        A person who is not logged in has an empty name.
        """
        person = request.user if user is None else user
        return cls(
            name=person.get_username(),
            user_id=person.pk,
            **_origin(request),
        )

    @classmethod
    def of_unauthenticated(cls, request: Request) -> Actor:
        """Return the actor of a request that is not yet authenticated, without permissions."""
        return cls(name="", grant=Grant(frozenset()), **_origin(request))

    @classmethod
    def of_command(cls, name: str) -> Actor:
        """Return the actor of a management command, which is an operator."""
        return cls(name=f"command {name}")

    def now(self) -> dt.datetime:
        """Return the time of the action."""
        return timezone.now() if self.at is None else self.at

    def dated(
        self, time: str, new_id: Callable[[dt.datetime], object] = uuid7_of
    ) -> dict[str, Any]:
        """Return the id and time for the row of a past action, or {} for a current action."""
        return {} if self.at is None else {"id": new_id(self.at), time: self.at}

    def unchanged(self) -> Q:
        """Return the condition that the caller is unchanged, for an UPDATE without an event.

        If the UPDATE matches no row, call ``refresh`` to find out whether the caller changed.

        Raises:
            TokenExpired: the token has expired.
        """
        return Q() if self.caller is None else revalidation.unchanged(self.caller)

    def refresh(self, prefetch: Prefetch[Any] | None = None) -> Actor:
        """Return the actor with current permissions. The same query loads the row of ``prefetch``.

        Raises:
            CredentialsInvalid, TokenExpired: the token was revoked or expired in the meantime.
            CallerChanged: the caller lost permissions in the meantime.
        """
        if self.caller is None:
            return self
        return dataclasses.replace(self, caller=revalidation.refresh(self.caller, prefetch))


def _origin(request: HttpRequest | Request) -> dict[str, Any]:
    """Return the fields of an actor that describe its request."""
    ids = ("request_id", "client_request_id", "trace_id")
    return {
        "address": request.META.get("REMOTE_ADDR") or None,
        **{name: getattr(request, name, "") for name in ids},
    }


_acting: ContextVar[Callable[[], Actor] | None] = ContextVar("acting", default=None)


@contextmanager
def acting(actor: Callable[[], Actor]) -> Iterator[None]:
    """Set the current actor for the block, for events without an explicit actor."""
    before = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(before)


def current_actor() -> Actor:
    """Return the current actor: the person in the admin, or a command."""
    actor = _acting.get()
    return Actor(name="command") if actor is None else actor()
