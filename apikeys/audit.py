"""The audit trail: who did what, with which token, to what, from where, in which request."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import transaction
from django.db.models import Model, Q
from django.utils import timezone

from apikeys import revalidation
from apikeys.authentication import caller_of
from apikeys.grants import EVERYTHING, Grant
from apikeys.models.trail import AuditEvent
from infra_service.api.identifiers import uuid7_of
from infra_service.database.compiled import CompiledChange, insert

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Callable, Iterator, Mapping

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from rest_framework.request import Request

    from apikeys.grants import Caller
    from apikeys.models.users import User
    from infra_service.database.compiled import Asked

M = TypeVar("M", bound=Model)


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
    # Of an API request; an operator has none.
    caller: Caller | None = None
    # When it acts, if that is not now: a made-up past, which only seed_demo has.
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
            address=request.META.get("REMOTE_ADDR") or None,
            request_id=getattr(request, "request_id", ""),
            client_request_id=getattr(request, "client_request_id", ""),
            caller=caller,
        )

    @classmethod
    def of_person(cls, request: HttpRequest, user: User | None = None) -> Actor:
        """Return the person who is logged in to the admin, an operator; or, at the door, the user.

        A person who is not logged in has no name.
        """
        person = request.user if user is None else user
        return cls(
            name=person.get_username(),
            user_id=person.pk,
            address=request.META.get("REMOTE_ADDR") or None,
            request_id=getattr(request, "request_id", ""),
            client_request_id=getattr(request, "client_request_id", ""),
        )

    @classmethod
    def of_command(cls, name: str) -> Actor:
        """Return the actor of a management command: whoever may run it, an operator."""
        return cls(name=f"command {name}")

    def now(self) -> dt.datetime:
        """Return when it acts."""
        return timezone.now() if self.at is None else self.at

    def dated(
        self, time: str, new_id: Callable[[dt.datetime], object] = uuid7_of
    ) -> dict[str, Any]:
        """Return the id and the time of a new row, unless they are its defaults, those of now."""
        return {} if self.at is None else {"id": new_id(self.at), time: self.at}

    def unchanged(self) -> Q:
        """Return a condition for a deed without an event: that the caller may still do it.

        Where it changed nothing, ``look_again`` tells whether this was why.

        Raises:
            TokenExpired: the caller's time is over.
        """
        return Q() if self.caller is None else revalidation.unchanged(self.caller)

    def look_again(self, along: Asked[Any] | None = None) -> Actor:
        """Return the actor as it is now, to try again; what is asked along is as it is now, too.

        Raises:
            CredentialsInvalid, TokenExpired: the caller has ended since it was let in.
            CallerChanged: it has lost rights since.
        """
        if self.caller is None:
            return self
        return dataclasses.replace(self, caller=revalidation.look_again(self.caller, along))


_acting: ContextVar[Callable[[], Actor] | None] = ContextVar("acting", default=None)


@contextmanager
def acting(actor: Callable[[], Actor]) -> Iterator[None]:
    """Say who acts in the block, for what is recorded where nobody can be asked."""
    before = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(before)


def current_actor() -> Actor:
    """Return who acts: the person in the admin, or a command."""
    actor = _acting.get()
    return Actor(name="command") if actor is None else actor()


def record(actor: Actor, action: str, resource_id: object, **details: Any) -> None:
    """Append one event; call it in the transaction of the change that it tells of.

    The caller is looked at again in the same statement. So a change of the caller itself comes
    after its event.

    Raises:
        CredentialsInvalid, TokenExpired: the caller has ended since it was let in.
        CallerChanged: it has lost rights since.
    """
    event = _event(actor, action, resource_id, details)
    if actor.caller is None:
        insert(event)
    else:
        revalidation.insert_if_unchanged(event, actor.caller)


def record_new(actor: Actor, action: str, row: Model, **details: Any) -> None:
    """Insert a new row and append its event, as ``record`` does, in one statement.

    Raises:
        CredentialsInvalid, TokenExpired, CallerChanged: as ``record``.
    """
    event = _event(actor, action, row.pk, details)
    if actor.caller is not None:
        revalidation.insert_if_unchanged(event, actor.caller, row)
        return
    with transaction.atomic():
        insert(row)
        insert(event)


def record_working_key(actor: Actor, action: str, key_id: str, **details: Any) -> None:
    """Append the event of a key that is about to work, or to work again, as ``record`` does.

    Whoever revokes the caller waits until the transaction ends, and then finds the key.

    Raises:
        TooManyApiKeys: the caller's owner has enough.
    """
    event = _event(actor, action, key_id, details)
    if actor.caller is None:
        insert(event)
    else:
        revalidation.insert_if_unchanged(event, actor.caller, adds_key=True)


def record_consequences(
    actor: Actor, action: str, details: Mapping[str, Mapping[str, Any]]
) -> None:
    """Append what follows from an event that the transaction has, by the ids of the resources."""
    AuditEvent.objects.bulk_create(
        [_event(actor, action, resource_id, dict(d)) for resource_id, d in details.items()]
    )


class Deed(Generic[M]):
    """A change of one row, rows that are inserted with it, and its event: all of it or nothing.

    The caller is looked at again in the same statement, which is one round trip (``compiled``).
    ``build`` has the row as it was read, for the change to find that somebody else was faster.
    """

    def __init__(self, build: Callable[[], QuerySet[M]], *columns: str, **fixed: Any) -> None:
        self._of_operators = CompiledChange(build, *columns, **fixed)
        self._of_callers = {
            form: CompiledChange(partial(_by, build, form), *columns, **fixed)
            for form in revalidation.FORMS
        }

    def run(
        self,
        actor: Actor,
        action: str,
        resource_id: object,
        details: dict[str, Any],
        *rows: Model,
        **given: Any,
    ) -> bool:
        """Do it, or find that the row or the caller was changed; ``look_again`` tells the latter.

        Raises:
            TokenExpired: the caller's time is over.
        """
        change = self._of_operators
        if actor.caller is not None:
            form, seen = revalidation.as_given(actor.caller)
            change, given = self._of_callers[form], {**given, **seen}
        return change.run_with(*rows, _event(actor, action, resource_id, details), **given)


def _by(build: Callable[[], QuerySet[M]], form: str) -> QuerySet[M]:
    return build().filter(revalidation.unchanged_of(form))


def _event(actor: Actor, action: str, resource_id: object, details: dict[str, Any]) -> AuditEvent:
    return AuditEvent(
        **actor.dated("occurred_at"),
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
