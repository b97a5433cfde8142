"""Remove empty records: states without versions, and catalogue entries without states.

A mistyped address registers a component, an environment and a state. The UNLOCK of a state that was
never pushed removes these records. ``delete_entry`` and ``remove_unused`` remove entries that
remain.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import PROTECT, Q

from apikeys import audit
from apikeys.bound_ids import bound_ids
from infra_service.lib.database.batches import batches_of
from infra_service.lib.database.retries import retrying
from states.errors import EntryInUse
from states.models import Application, Component, CountTotal, Environment, SlugClaim, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apikeys.actors import Actor
    from states.models.catalogue_entry import CatalogueEntry

#: The maximum duration of a registration. An entry that changed later was changed by a person.
_REGISTRATION: Final = dt.timedelta(seconds=1)
#: The condition of a state without a workspace, checked again when the state is locked.
_NO_WORKSPACE: Final = Q(workspace__isnull=True)
#: Entries per batch.
_BATCH: Final = 1_000


def remove_empty(state: State, actor: Actor, condition: Q | None = None, **details: Any) -> bool:
    """Remove a state if it has no version, lock or freeze, and matches ``condition``.

    Call this in a transaction.

    The component is locked first, as in ``find_or_register``. The state is locked before the check,
    because ``delete()`` deletes by id alone, and would lose a concurrent LOCK or push. A waiting
    writer then finds no row to change, and registers the state again.
    """
    list(Component.objects.select_for_update().filter(pk=state.component_id))
    unused = State.objects.filter(pk=state.pk, version_number=0, lock_id=None, frozen_at=None)
    empty = unused.filter(condition or Q()).select_for_update().first()
    if empty is None:
        return False
    empty.delete()
    audit.authorize_and_record(actor, "state.delete", state.pk, version=0, **details)
    return True


def unregister(state: State, actor: Actor) -> None:
    """Remove a state without versions, and the unused entries that its registration created.

    Entries that existed before, or that were changed since then, stay. Entries in a binding stay,
    because a new registration would give them another id. A state with a workspace also stays.
    """
    if state.version_number == 0 and state.workspace is None:
        _unregister(state, actor)


@retrying
@transaction.atomic
def _unregister(state: State, actor: Actor) -> None:
    if not remove_empty(state, actor, _NO_WORKSPACE):
        return
    made = Q(created_at=state.created_at, updated_at__lt=state.created_at + _REGISTRATION)
    entries = [
        entry
        for model, entry_id in (
            (Component, state.component_id),
            (Application, state.application_id),
            (Environment, state.environment_id),
        )
        for entry in model._default_manager.select_for_update().filter(made, pk=entry_id)
    ]
    bound = bound_ids() if entries else set()
    for entry in entries:
        if entry.pk not in bound and not _is_used(entry):
            _delete(entry)


@retrying
@transaction.atomic
def delete_entry(*, model: type[CatalogueEntry], entry_id: uuid.UUID, actor: Actor) -> None:
    """Delete an unused entry with its current and former slugs. Ignore a missing entry.

    Raises:
        EntryInUse: the entry has components, states, or deleted states within their retention.
    """
    entry = model._default_manager.select_for_update().filter(pk=entry_id).first()
    if entry is None:
        return
    if _is_used(entry):
        raise EntryInUse(str(model._meta.verbose_name), str(entry))
    _delete_and_record(entry, actor)


def remove_unused(
    *, before: dt.datetime, actor: Actor, dry_run: bool = False
) -> Iterator[list[CatalogueEntry]]:
    """Remove the unused entries that have not changed since ``before``, and yield them in batches.

    Entries in the binding of a key, token, trust policy or webhook stay. If such an entry were
    registered again, it would have another id, which the binding would not include.
    """
    removed_ids = set[uuid.UUID]()
    for model in (Component, Application, Environment):
        unchanged = model._default_manager.filter(created_at__lt=before, updated_at__lt=before)
        for old in batches_of(unchanged, _BATCH):
            used = _used_ids(model, [entry.pk for entry in old], without=removed_ids)
            unused = [entry for entry in old if entry.pk not in used]
            # Read for each batch, because new bindings can be created during a long run.
            bound = bound_ids() if unused else set()
            removed = [
                entry
                for entry in unused
                if entry.pk not in bound and (dry_run or _remove_if_unused(entry, before, actor))
            ]
            removed_ids |= {entry.pk for entry in removed}
            yield removed


def _used_ids(
    model: type[CatalogueEntry], ids: list[uuid.UUID], *, without: set[uuid.UUID]
) -> set[uuid.UUID]:
    """Return the ids of entries with states or components, ignoring the components ``without``."""
    of_states = State.objects.filter(**{f"{model._meta.model_name}__in": ids})
    used = set(of_states.values_list(f"{model._meta.model_name}_id", flat=True).distinct())
    if model is Application:
        components = Component.objects.filter(application__in=ids)
        members = components.values_list("application_id", "pk")
        used |= {entry_id for entry_id, component_id in members if component_id not in without}
    return used


@retrying
@transaction.atomic
def _remove_if_unused(entry: CatalogueEntry, before: dt.datetime, actor: Actor) -> bool:
    """Remove an entry, unless it has changed or is in use.

    A concurrent push waits or is detected.
    """
    entries = type(entry)._default_manager.select_for_update()
    current = entries.filter(pk=entry.pk, updated_at__lt=before).first()
    if current is None or _is_used(current):
        return False
    _delete_and_record(current, actor)
    return True


def _delete_and_record(entry: CatalogueEntry, actor: Actor) -> None:
    kind, entry_id = entry._meta.model_name, entry.pk
    _delete(entry)
    audit.authorize_and_record(actor, f"{kind}.delete", entry_id, name=entry.name, slug=entry.slug)


def _is_used(entry: CatalogueEntry) -> bool:
    users: Any = [use for use in entry._meta.related_objects if use.on_delete is PROTECT]
    return any(
        use.related_model._default_manager.filter(**{use.field.name: entry.pk}).exists()
        for use in users
    )


def _delete(entry: CatalogueEntry) -> None:
    SlugClaim.objects.filter(kind=str(entry._meta.model_name), entry_id=entry.pk).delete()
    if isinstance(entry, Environment):
        CountTotal.objects.filter(environment_id=entry.pk).delete()  # only counts of 0 remain
    entry.delete()
