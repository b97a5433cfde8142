"""The audit log: actor, token, action, resource, client address and request of each change."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import transaction
from django.db.models import Model

from apikeys import revalidation
from apikeys.models import AuditEvent, User
from infra_service.lib.database.compiled import CompiledChange, insert

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.db.models import QuerySet

    from apikeys.actors import Actor

M = TypeVar("M", bound=Model)


def authorize_and_record(actor: Actor, action: str, resource_id: object, **details: Any) -> None:
    """Revalidate the caller and append one event, in the transaction of the change.

    A single statement does both. Change the caller's own credential only after this call.

    Raises:
        CredentialsInvalid, TokenExpired: the token was revoked or expired in the meantime.
        CallerChanged: the caller lost permissions in the meantime.
    """
    event = _event(actor, action, resource_id, details)
    if actor.caller is None:
        insert(event)
    else:
        revalidation.insert_if_unchanged(event, actor.caller)


def authorize_and_insert(actor: Actor, action: str, row: Model, **details: Any) -> None:
    """Revalidate the caller, insert a row and append its event, in one statement.

    Raises:
        CredentialsInvalid, TokenExpired, CallerChanged: see ``authorize_and_record``.
    """
    event = _event(actor, action, row.pk, details)
    if actor.caller is not None:
        revalidation.insert_if_unchanged(event, actor.caller, row)
        return
    with transaction.atomic():
        insert(row)
        insert(event)


def lock_owner(actor: Actor) -> None:
    """Lock the caller's user before ``record_key_activation``. Operators have no limit of keys."""
    if actor.caller is not None:
        User.objects.lock(actor.caller.user_id)


def record_key_activation(actor: Actor, action: str, key_id: str, **details: Any) -> None:
    """Append the event of a key that becomes active, and check the owner's limit of active keys.

    A concurrent revocation of the caller waits for this transaction, and then finds the key. Call
    ``lock_owner`` at the start of the transaction.

    Raises:
        TooManyApiKeys: the owner has the maximum number of active keys.
        CredentialsInvalid, TokenExpired, CallerChanged: see ``authorize_and_record``.
    """
    event = _event(actor, action, key_id, details)
    if actor.caller is None:
        insert(event)
    else:
        revalidation.insert_if_unchanged(event, actor.caller, adds_key=True)


def record_consequences(
    actor: Actor, action: str, details: Mapping[str, Mapping[str, Any]]
) -> None:
    """Append the events that follow from an event of this transaction.

    ``details`` maps resource ids to event details.
    """
    AuditEvent.objects.bulk_create(
        [_event(actor, action, resource_id, dict(d)) for resource_id, d in details.items()]
    )


class AuditedUpdate(Generic[M]):
    """An UPDATE of one row, related inserts and the audit event, in one atomic statement.

    The same statement revalidates the caller. ``build`` returns a queryset that selects the row
    only if it is unchanged since it was read, so that the UPDATE detects another writer.
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
        """Run the update. Return False if the row or the caller changed (see ``Actor.refresh``).

        Raises:
            TokenExpired: the token has expired.
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
        # The trace id has no column, because most requests have no trace.
        details={**details, "trace_id": actor.trace_id} if actor.trace_id else details,
    )
