"""What is done with applications, components and environments; each whole or not at all."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from django.db import IntegrityError, transaction
from django.utils import timezone

from apikeys import audit
from infra_service.database.constraints import breaks
from infra_service.database.retries import retrying
from states import addresses, slugs
from states.errors import SlugTaken
from states.models import Application, Component, Environment, FormerSlug, State
from states.models.catalogue_entry import NO_PARENT, CatalogueEntry

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Mapping

    from apikeys.actors import Actor
    from states.addresses import Names

E = TypeVar("E", bound=CatalogueEntry)

_UNIQUE: Final = (
    (Application, "application_slug"),
    (Component, "component_slug_in_application"),
    (Component, "component_slug_without_application"),
    (Environment, "environment_slug"),
)


@contextmanager
def _unique_slug() -> Iterator[None]:
    """Tell that another entry has the slug; what else breaks a rule is a fault of ours.

    Raises:
        SlugTaken: another entry of the same parent has it.
    """
    try:
        yield
    except IntegrityError as error:
        if any(breaks(error, model, name) for model, name in _UNIQUE):
            raise SlugTaken from error
        raise


@transaction.atomic
def create(*, model: type[E], fields: Mapping[str, Any], actor: Actor) -> E:
    """Create an entry; ``fields`` are ``name``, ``slug`` and those of its kind.

    Without a slug it gets one of its name, which no other entry has or had.

    Raises:
        SlugTaken: another entry of the same parent has the slug.
    """
    entry = model(**fields)
    if entry.slug is None:
        _insert_with_free_slug(entry)
    else:
        with _unique_slug():
            entry.save(force_insert=True)
    said = _values({**fields, "slug": entry.slug})
    audit.record(actor, f"{model._meta.model_name}.create", entry.pk, **said)
    return entry


def _insert_with_free_slug(entry: CatalogueEntry) -> None:
    """Insert the entry with the first slug that is free, also when others insert the same."""
    rows = type(entry)._default_manager
    for slug in _free_slugs(entry):
        entry.slug = slug
        rows.bulk_create([entry], ignore_conflicts=True)
        if rows.filter(pk=entry.pk).exists():
            return
    raise SlugTaken


def _free_slugs(entry: CatalogueEntry) -> Iterator[str]:
    """Yield the slugs that no entry has or had, by the name of this one."""
    kind = str(entry._meta.model_name)
    for slug in slugs.choices(entry.name, kind, entry.pk):
        if addresses.find_id(type(entry), slug, entry.parent_id) is None:
            yield slug


def register(
    names: Names, component_id: uuid.UUID, environment_id: uuid.UUID
) -> tuple[uuid.UUID, uuid.UUID]:
    """Return the ids of what is named; what is not there is registered, and gets these.

    Of any number at the same moment one registers it. Call it in the transaction of what follows.
    """
    parent_id = NO_PARENT
    if names.application is not None:
        parent_id = _registered(Application(name=names.application, slug=names.application))
    component = Component(
        pk=component_id,
        name=names.component,
        slug=names.component,
        application_id=None if parent_id == NO_PARENT else parent_id,
    )
    environment = Environment(pk=environment_id, name=names.environment, slug=names.environment)
    return _registered(component), _registered(environment)


def _registered(entry: CatalogueEntry) -> uuid.UUID:
    model, slug = type(entry), cast("str", entry.slug)
    found = addresses.find_id(model, slug, entry.parent_id)
    if found is None:
        model._default_manager.bulk_create([entry], ignore_conflicts=True)
        found = addresses.find_id(model, slug, entry.parent_id)
    return cast("uuid.UUID", found)


@retrying
@transaction.atomic
def change(
    *, model: type[CatalogueEntry], entry_id: uuid.UUID, changes: Mapping[str, Any], actor: Actor
) -> None:
    """Change an entry; the states of a component that is moved go with it, at once.

    The row is locked first: ``actions.find_or_register`` locks it too, so that a state that is
    registered meanwhile is either moved here or registered where the component has gone. An entry
    without a slug gets one with its name; one that changes it is still found by the former one.

    Raises:
        SlugTaken: another entry of the same parent has the slug.
    """
    # 1. Nobody registers a state or changes the entry until this is done.
    entry = model._default_manager.select_for_update().get(pk=entry_id)
    former = (entry.parent_id, entry.slug)
    changed = _changed(entry, changes)
    before = {name: getattr(entry, name) for name in changed}
    if not changed:
        return
    # 2. The entry, and what is copied from it.
    entries = model._default_manager.filter(pk=entry_id)
    with _unique_slug():
        entries.update(**changed, updated_at=timezone.now())
    if not changed.keys().isdisjoint({"slug", "application_id"}):
        _remember(entry, *former)
    if model is Component and "application_id" in changed:
        State.objects.filter(component_id=entry_id).update(application_id=changed["application_id"])
    # 3. The trail.
    was, now = _values({name: before[name] for name in changed}), _values(changed)
    details = {name: {"from": was[name], "to": now[name]} for name in changed}
    audit.record(actor, f"{model._meta.model_name}.update", entry_id, **details)


def _changed(entry: CatalogueEntry, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what differs; a slug is never taken away, and one of the name added where is none."""
    changed = {
        name: value
        for name, value in changes.items()
        if value != getattr(entry, name) and (name != "slug" or value is not None)
    }
    if entry.slug is None and "slug" not in changed and "name" in changed:
        changed["slug"] = next(_free_slugs(type(entry)(id=entry.pk, **changed)))
    return changed


def _remember(entry: CatalogueEntry, parent_id: uuid.UUID, slug: str | None) -> None:
    """Let addresses with the slug go on, until another entry has it."""
    if slug is None:
        return
    former = FormerSlug(
        kind=str(entry._meta.model_name), parent_id=parent_id, slug=slug, entry_id=entry.pk
    )
    FormerSlug.objects.bulk_create(
        [former],
        update_conflicts=True,
        unique_fields=["kind", "parent_id", "slug"],
        update_fields=["entry_id"],
    )


def _values(fields: Mapping[str, Any]) -> dict[str, str | bool | None]:
    """Return the values as the trail keeps them."""
    return {
        name: value if value is None or isinstance(value, bool) else str(value)
        for name, value in fields.items()
    }
