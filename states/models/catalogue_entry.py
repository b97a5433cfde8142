"""What applications, components and environments have in common: names, slugs, who sees them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from apikeys.bindings import EVERYWHERE
from states import slugs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.db.models import Q

    from apikeys.bindings import Binding

#: The parent of what has none.
NO_PARENT: Final = uuid.UUID(int=0)


class CatalogueQuerySet(models.QuerySet[Any]):
    def inside(self, binding: Binding) -> CatalogueQuerySet:
        """Those that a token with this binding sees: what it names, or has a state inside."""
        if binding.cluster_id is not None:
            return self.none()
        if binding == EVERYWHERE:
            return self.all()
        return self.filter(self.model.seen_by(binding))

    def named(self, beginning: str) -> CatalogueQuerySet:
        """Those whose name begins so, in the order of their names; the index on names serves it.

        Names are in the order of their bytes, in which nothing comes after U+10FFFF.
        """
        after = f"{beginning}\U0010ffff"
        return self.filter(name__gte=beginning, name__lt=after).order_by("name", "id")


class CatalogueEntry(models.Model):
    """A named thing that states belong to.

    Ids tell entries apart, and slugs in their parent; names need not differ.
    """

    #: Columns in the order of bytes, in which what begins with a text is a range.
    byte_ordered = frozenset({"name"})
    #: The parts of a token's binding that reach beyond an entry, so that it cannot change one:
    #: something may belong to the entry that is outside of them.
    shared_beyond: ClassVar[tuple[str, ...]]
    #: The parts that name entries of this kind: a new entry is none of them.
    named_by: ClassVar[tuple[str, ...]]

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200, blank=True)
    # What addresses name it by. What a push has registered by ids has none until somebody names it.
    slug = models.CharField(max_length=slugs.MOST, null=True)  # noqa: DJ001 - as said
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = CatalogueQuerySet.as_manager()

    class Meta:
        abstract = True
        indexes = [models.Index(fields=["name", "id"], name="%(class)s_by_name")]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(name="%(class)s_slug_form", condition=slugs.of_the_form()),
        ]

    def __str__(self) -> str:
        return self.name or str(self.id)

    @property
    def parent_id(self) -> uuid.UUID:
        """In what its slug is unique: an application's id, or ``NO_PARENT``."""
        return NO_PARENT

    @classmethod
    def of_parent(cls, parent_id: Any) -> models.QuerySet[Any]:
        """Return the entries of this parent, which may be a parameter."""
        del parent_id  # only components have parents
        return cls._default_manager.all()

    @classmethod
    def of_slug(cls, slug: Any, parent_id: Any) -> models.QuerySet[Any]:
        """Return the entry of this slug, as a queryset; each may be a parameter."""
        return cls.of_parent(parent_id).filter(slug=slug)

    @classmethod
    def in_parents(cls, parent_ids: Collection[uuid.UUID]) -> models.QuerySet[Any]:
        """Return what has no parent, or one of these."""
        del parent_ids  # only components have parents
        return cls._default_manager.all()

    @classmethod
    def seen_by(cls, binding: Binding) -> Q:
        """Return the condition for what a token sees that is bound, but to no cluster."""
        raise NotImplementedError

    @classmethod
    def is_changed_by(cls, binding: Binding) -> bool:
        """Whether all that may belong to an entry is inside, so that it is the token's alone."""
        return binding.cluster_id is None and all(
            getattr(binding, name) is None for name in cls.shared_beyond
        )

    @classmethod
    def is_created_by(cls, binding: Binding) -> bool:
        """Whether a token may create an entry: not if it is bound to entries that there are."""
        return binding.cluster_id is None and all(
            getattr(binding, name) is None for name in cls.named_by
        )

    @classmethod
    def allows(cls, binding: Binding, fields: Mapping[str, Any]) -> bool:
        """Whether an entry with these fields, or so changed, is inside of the binding."""
        del binding, fields  # only components belong to something
        return True
