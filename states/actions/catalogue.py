"""What is done with applications, components and environments; each whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.db import transaction
from django.utils import timezone

from apikeys import audit
from infra_service.database.retries import retrying
from states.entries import CatalogueEntry, Component
from states.models import State

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from apikeys.audit import Actor

E = TypeVar("E", bound=CatalogueEntry)


@transaction.atomic
def create(*, model: type[E], fields: Mapping[str, Any], actor: Actor) -> E:
    """Create an entry; ``fields`` are ``name`` and, of a component, ``application_id``."""
    entry = model(**fields)
    entry.save(force_insert=True)
    audit.record(actor, f"{model._meta.model_name}.create", entry.pk, **_texts(fields))
    return entry


@retrying
@transaction.atomic
def change(
    *, model: type[CatalogueEntry], entry_id: uuid.UUID, changes: Mapping[str, Any], actor: Actor
) -> None:
    """Change an entry; the states of a component that is moved go with it, at once.

    The row is locked first: ``actions.find_or_register`` locks it too, so that a state that is
    registered meanwhile is either moved here or registered where the component has gone.
    """
    # 1. Nobody registers a state or changes the entry until this is done.
    entry = model._default_manager.select_for_update().get(pk=entry_id)
    before = {name: getattr(entry, name) for name in changes}
    changed = {name: value for name, value in changes.items() if value != before[name]}
    if not changed:
        return
    # 2. The entry, and what is copied from it.
    entries = model._default_manager.filter(pk=entry_id)
    entries.update(**changed, updated_at=timezone.now())
    if model is Component and "application_id" in changed:
        State.objects.filter(component_id=entry_id).update(application_id=changed["application_id"])
    # 3. The trail.
    was, now = _texts({name: before[name] for name in changed}), _texts(changed)
    details = {name: {"from": was[name], "to": now[name]} for name in changed}
    audit.record(actor, f"{model._meta.model_name}.update", entry_id, **details)


def _texts(fields: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in fields.items()}
