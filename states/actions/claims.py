"""Claim slugs: each slug of a parent belongs to the entry that has it now, or had it last.

The unique constraint of ``SlugClaim`` decides between callers that claim the same slug at the same
moment. Every action that changes an entry's slug or parent claims the slug here first, in the
transaction that writes the entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from apikeys.scopes import Scope
from states import addresses, slugs
from states.errors import EntryExists, SlugTaken
from states.models import SlugClaim

if TYPE_CHECKING:
    import uuid

    from apikeys.actors import Actor
    from states.models.catalogue_entry import CatalogueEntry


def claim_if_free(entry: CatalogueEntry) -> uuid.UUID | None:
    """Claim the slug of an entry; return None, or the id of the entry that owns it already."""
    owner_id = addresses.find_id(type(entry), cast("str", entry.slug), entry.parent_id)
    if owner_id is not None:
        return owner_id
    new = SlugClaim(**_place(entry), entry_id=entry.pk)
    SlugClaim.objects.bulk_create([new], ignore_conflicts=True)
    claimed: uuid.UUID = SlugClaim.objects.values_list("entry_id", flat=True).get(**_place(entry))
    return None if claimed == entry.pk else claimed


def claim(entry: CatalogueEntry, actor: Actor, *, takes_over: bool) -> None:
    """Claim the slug of an entry.

    With ``takes_over``, also a former slug of another entry, if the actor may change that entry.

    Raises:
        SlugTaken: the slug belongs to another entry.
    """
    owner_id = claim_if_free(entry)
    if owner_id in (None, entry.pk):
        return
    former = SlugClaim.objects.filter(**_place(entry), entry_id=owner_id)
    if not (
        takes_over
        and not type(entry).of_slug(entry.slug, entry.parent_id).exists()
        and _may_change(type(entry), owner_id, actor)
        and former.update(entry_id=entry.pk)
    ):
        raise _refusal(SlugTaken, entry, owner_id, actor)


def claim_by_name(entry: CatalogueEntry, actor: Actor, *, suffix: bool) -> None:
    """Set an entry's slug, derived from its name, with a suffix if that slug is taken.

    A name without characters that a slug allows always gets a suffix, because all such names share
    the slug of their kind.

    Raises:
        EntryExists: the slug belongs to another entry, and no suffix is wanted.
    """
    kind = str(entry._meta.model_name)
    best, *others = slugs.choices(entry.name, kind, entry.pk)
    for slug in (best, *others):
        entry.slug = slug
        owner_id = claim_if_free(entry)
        if owner_id is None:
            return
        if not suffix and (best != kind or _has_name(type(entry), owner_id, entry.name)):
            raise _refusal(EntryExists, entry, owner_id, actor)
    raise SlugTaken


def refuse_same_name(entry: CatalogueEntry, actor: Actor) -> None:
    """Refuse an entry whose name another entry of the same parent has.

    Raises:
        EntryExists: another entry has the name.
    """
    same = type(entry).of_parent(entry.parent_id).filter(name=entry.name).order_by("id")
    owner_id = same.values_list("pk", flat=True).first()
    if owner_id is not None:
        raise _refusal(EntryExists, entry, owner_id, actor)


def keep(entry: CatalogueEntry, parent_id: uuid.UUID, slug: str) -> None:
    """Keep the claim of the entry's previous slug, so that its addresses stay valid.

    A release before 1.1 writes entries without a claim.
    """
    claim = SlugClaim(
        kind=str(entry._meta.model_name), parent_id=parent_id, slug=slug, entry_id=entry.pk
    )
    SlugClaim.objects.bulk_create(
        [claim],
        update_conflicts=True,
        unique_fields=["kind", "parent_id", "slug"],
        update_fields=["entry_id"],
    )


def _place(entry: CatalogueEntry) -> dict[str, Any]:
    kind = entry._meta.model_name
    return {"kind": kind, "parent_id": entry.parent_id, "slug": entry.slug}


def _has_name(model: type[CatalogueEntry], entry_id: uuid.UUID, name: str) -> bool:
    return bool(model.objects.filter(pk=entry_id, name=name).exists())


def _may_change(model: type[CatalogueEntry], entry_id: uuid.UUID, actor: Actor) -> bool:
    grant = actor.grant
    return (
        Scope.STATE_ADMIN in grant.scopes
        and model.is_changed_by(grant.binding)
        and model.objects.inside(grant.binding).filter(pk=entry_id).exists()
    )


def _refusal(
    error: type[EntryExists], entry: CatalogueEntry, owner_id: uuid.UUID, actor: Actor
) -> EntryExists:
    """Return the error, which names the owner only to an actor that may read it."""
    grant = actor.grant
    readable = type(entry).objects.inside(grant.binding).filter(pk=owner_id)
    owner = readable.first() if Scope.STATE_READ in grant.scopes else None
    if owner is None:
        return error()
    return error(str(entry._meta.model_name), {"id": str(owner.pk), "name": owner.name})
