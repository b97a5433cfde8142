"""Create, change and register applications, components and environments atomically."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone

from apikeys import audit
from infra_service.lib.database.constraints import breaks
from infra_service.lib.database.retries import retrying
from states.actions import claims, rules
from states.errors import ENTRY_NOT_FOUND, SlugTaken
from states.models import Application, Component, Environment, State
from states.models.catalogue_entry import NO_PARENT, CatalogueEntry

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterator, Mapping

    from apikeys.actors import Actor
    from states.addresses import Names

E = TypeVar("E", bound=CatalogueEntry)

#: The fields of an entry that determine the addresses of its states.
_NAME_FIELDS: Final = {"name", "slug", "application_id"}

_UNIQUE: Final = (
    (Application, "application_slug"),
    (Component, "component_slug_in_application"),
    (Component, "component_slug_without_application"),
    (Environment, "environment_slug"),
)


@contextmanager
def _unique_slug() -> Iterator[None]:
    """Reject a slug that belongs to an entry without a claim, from a release before 1.1.

    Raises:
        SlugTaken: another entry of the same parent has the slug.
    """
    try:
        yield
    except IntegrityError as error:
        if any(breaks(error, model, name) for model, name in _UNIQUE):
            raise SlugTaken from error
        raise


@retrying
@transaction.atomic
def create(
    *, model: type[E], fields: Mapping[str, Any], actor: Actor, slug_suffix: bool = False
) -> E:
    """Create a catalogue entry.

    ``fields`` are ``name``, ``slug`` and the fields of the kind. The default slug is derived from
    the name. With ``slug_suffix``, a suffix makes the derived slug unique.

    Raises:
        ApplicationNotFound: the application of a component is deleted.
        EntryExists: another entry of the same parent has the name, or owns the derived slug.
        SlugTaken: the slug belongs to another entry of the same parent.
    """
    lock_entry(Application, fields.get("application_id"))
    entry = model(**actor.dated("created_at"), **fields)
    if entry.slug is not None:
        claims.claim(entry, actor, takes_over=True)
    else:
        if not slug_suffix:
            claims.refuse_same_name(entry, actor)
        claims.claim_by_name(entry, actor, suffix=slug_suffix)
    _insert(entry)
    values = _values({**fields, "slug": entry.slug})
    audit.authorize_and_record(actor, f"{model._meta.model_name}.create", entry.pk, **values)
    return entry


def _insert(entry: CatalogueEntry) -> None:
    with _unique_slug():
        entry.save(force_insert=True)


def register(
    names: Names, component_id: uuid.UUID, environment_id: uuid.UUID, moment: dt.datetime
) -> tuple[uuid.UUID, uuid.UUID]:
    """Return the ids of the component and environment with these names.

    Missing entries are registered with the given ids and time. Concurrent calls register an entry
    once. Call this function in the transaction that uses the ids.
    """
    parent_id = NO_PARENT
    if names.application is not None:
        application = Application(name=names.application, slug=names.application)
        parent_id = _registered(application, moment)
    component = Component(
        pk=component_id,
        name=names.component,
        slug=names.component,
        application_id=None if parent_id == NO_PARENT else parent_id,
    )
    environment = Environment(pk=environment_id, name=names.environment, slug=names.environment)
    return _registered(component, moment), _registered(environment, moment)


def _registered(entry: CatalogueEntry, moment: dt.datetime) -> uuid.UUID:
    owner_id = claims.claim_if_free(entry)
    if owner_id is not None:
        return owner_id
    # Two imports of the same export can register the same ids at the same time.
    if not type(entry)._default_manager.filter(pk=entry.pk).exists():
        entry.created_at = moment
        _insert(entry)
    return entry.pk


def lock_entry(model: type[CatalogueEntry], entry_id: uuid.UUID | None) -> None:
    """Lock an entry so that it cannot be deleted until the transaction ends.

    Raises:
        ApplicationNotFound, ComponentNotFound, EnvironmentNotFound: the entry is deleted.
    """
    if entry_id is not None:
        locked = model._default_manager.select_for_update(no_key=True).filter(pk=entry_id)
        if not locked.values_list("pk").first():
            raise ENTRY_NOT_FOUND[str(model._meta.model_name)]


@retrying
@transaction.atomic
def change(
    *, model: type[CatalogueEntry], entry_id: uuid.UUID, changes: Mapping[str, Any], actor: Actor
) -> None:
    """Change an entry. Moving a component also moves its states, in the same transaction.

    The row is locked first, because ``registration.find_or_register`` also locks it. A state that
    is registered concurrently is therefore moved with the component, or registered in the new
    application. An entry without a slug gets a free slug when it gets a name. Former slugs still
    resolve to the entry. Only an explicit slug takes over the former slug of another entry.

    Raises:
        ApplicationNotFound, ComponentNotFound, EnvironmentNotFound: the entry, or the new
            application of a component, is deleted.
        SlugTaken: the slug belongs to another entry of the same parent.
        StateFrozen: the entry would be renamed or moved, but one of its states is frozen.
    """
    # 1. Block registrations and other changes until the transaction ends.
    entry = model._default_manager.select_for_update().filter(pk=entry_id).first()
    if entry is None:
        raise ENTRY_NOT_FOUND[str(model._meta.model_name)]
    lock_entry(Application, changes.get("application_id"))
    changed = _changed(entry, changes)
    if not changed:
        return
    if _NAME_FIELDS & changed.keys():
        _check_freezes(entry)
    before = {name: getattr(entry, name) for name in changed}
    parent_id, slug = entry.parent_id, entry.slug
    # 2. Claim the slug in the new parent.
    for name, value in changed.items():
        setattr(entry, name, value)
    if entry.slug is None and "name" in changed:
        claims.claim_by_name(entry, actor, suffix=True)
        changed["slug"], before["slug"] = entry.slug, None
    elif entry.slug is not None and (entry.parent_id, entry.slug) != (parent_id, slug):
        claims.claim(entry, actor, takes_over=changes.get("slug") is not None)
    # 3. Update the entry, and the copies of its application in its states.
    with _unique_slug():
        model._default_manager.filter(pk=entry_id).update(**changed, updated_at=timezone.now())
    if slug is not None and (entry.parent_id, entry.slug) != (parent_id, slug):
        claims.keep(entry, parent_id, slug)
    if model is Component and "application_id" in changed:
        moved = State.objects.filter(component_id=entry_id)
        moved.change(application_id=changed["application_id"])
    # 4. Record the change in the audit log.
    was, now = _values({name: before[name] for name in changed}), _values(changed)
    details = {name: {"from": was[name], "to": now[name]} for name in changed}
    audit.authorize_and_record(actor, f"{model._meta.model_name}.update", entry_id, **details)


def _check_freezes(entry: CatalogueEntry) -> None:
    """Refuse to rename or move an entry with a frozen state.

    ``freezing.freeze`` locks the entries of the state, so a concurrent freeze waits.
    """
    frozen = State.objects.frozen().filter(**{str(entry._meta.model_name): entry.pk})
    for state in frozen.order_by("pk")[:1]:
        rules.check_freeze(state)


def _changed(entry: CatalogueEntry, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with new values. An entry keeps its slug if the new slug is null."""
    return {
        name: value
        for name, value in changes.items()
        if value != getattr(entry, name) and (name != "slug" or value is not None)
    }


def _values(fields: Mapping[str, Any]) -> dict[str, str | bool | None]:
    """Return the values for the audit log."""
    return {
        name: value if value is None or isinstance(value, bool) else str(value)
        for name, value in fields.items()
    }
