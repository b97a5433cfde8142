"""The audit trail: who did what, with which token, to what, from where, in which request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import transaction
from django.db.models import Model

from apikeys import revalidation
from apikeys.models.trail import AuditEvent
from infra_service.lib.database.compiled import CompiledChange, insert

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.db.models import QuerySet

    from apikeys.actors import Actor

M = TypeVar("M", bound=Model)


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


class AuditedUpdate(Generic[M]):
    """An UPDATE of one row, related inserts and the audit event, in one atomic statement.

    The same statement revalidates the caller (``compiled``: one round trip). ``build`` returns the
    queryset of the row as it was read, so that the UPDATE detects another writer.
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
        """Run the update; return False if the row or the caller changed (see ``Actor.refresh``).

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
        details=details,
    )
