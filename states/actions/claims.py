"""Claims of slugs: within a parent, a slug belongs to the entry that has it now, or had it last.

The unique constraint of ``SlugClaim`` decides between concurrent claims of the same slug. Every
action that changes the slug or the parent of an entry first claims the slug here, in the
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
    """Claim the slug of an entry. Return None, or the id of the entry that already owns it."""
    owner_id = addresses.find_id(type(entry), cast("str", entry.slug), entry.parent_id)
    if owner_id is not None:
        return owner_id
    new = SlugClaim(**_place(entry), entry_id=entry.pk)
    SlugClaim.objects.bulk_create([new], ignore_conflicts=True)
    claimed: uuid.UUID = SlugClaim.objects.values_list("entry_id", flat=True).get(**_place(entry))
    return None if claimed == entry.pk else claimed


def claim(entry: CatalogueEntry, actor: Actor, *, takes_over: bool) -> None:
    """Claim the slug of an entry.

    With ``takes_over``, the entry can also claim the former slug of another entry, if the actor may
    change the other entry.

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
    """Derive and claim an entry's slug from its name. Add a suffix if ``suffix`` permits it.

    A name without any letter or digit that a slug can contain may always get a suffix, because the
    derived slug of all these names is the kind of the entry. Without ``suffix``, such a name is
    still rejected if another entry has it.

    Raises:
        EntryExists: the slug belongs to another entry, and a suffix is not permitted.
        SlugTaken: all possible slugs belong to other entries.
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
    """Reject an entry if another entry of the same parent has the same name.

    Raises:
        EntryExists: another entry has the name.
    """
    same = type(entry).of_parent(entry.parent_id).filter(name=entry.name).order_by("id")
    owner_id = same.values_list("pk", flat=True).first()
    if owner_id is not None:
        raise _refusal(EntryExists, entry, owner_id, actor)


def keep(entry: CatalogueEntry, parent_id: uuid.UUID, slug: str) -> None:
    """Keep the claim of an entry's previous slug, so that addresses with this slug stay valid.

    The claim is created if it is missing, because a release before 1.1 writes entries without one.
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
    """Return the error, which names the owner of the slug only if the actor may read the owner."""
    grant = actor.grant
    readable = type(entry).objects.inside(grant.binding).filter(pk=owner_id)
    owner = readable.first() if Scope.STATE_READ in grant.scopes else None
    if owner is None:
        return error()
    return error(str(entry._meta.model_name), {"id": str(owner.pk), "name": owner.name})
