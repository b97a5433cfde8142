"""Shared base of applications, components and environments: names, slugs, visibility."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.db import models
from django.utils import timezone

from apikeys.bindings import EVERYWHERE
from infra_service.lib.database.prefixes import starts_with
from infra_service.lib.uuids import uuid7
from states import slugs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.db.models import Q

    from apikeys.bindings import Binding

#: The parent id of entries without a parent.
NO_PARENT: Final = uuid.UUID(int=0)


class CatalogueQuerySet(models.QuerySet[Any]):
    def inside(self, binding: Binding) -> CatalogueQuerySet:
        """Return the entries that the binding lists, and the entries of states within it."""
        if binding.cluster_id is not None:
            return self.none()
        if binding == EVERYWHERE:
            return self.all()
        return self.filter(self.model.seen_by(binding))

    def named(self, beginning: str) -> CatalogueQuerySet:
        """Return the entries whose names start with this text, ordered by name (indexed)."""
        return self.filter(starts_with(self.model, "name", beginning)).order_by("name", "id")


class CatalogueEntry(models.Model):
    """The base class of catalogue entries.

    Ids are unique, and slugs are unique within a parent. Names need not be unique.
    """

    #: Columns ordered by bytes, so that a prefix is a range.
    byte_ordered = frozenset({"name"})
    #: The parts of a binding that prevent changes of an entry, because the entry can have states
    #: outside the binding.
    shared_beyond: ClassVar[tuple[str, ...]]
    #: The parts of a binding that list existing entries, and so prevent the creation of an entry.
    named_by: ClassVar[tuple[str, ...]]

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200, blank=True)
    # The slug in addresses; null in an entry that a push registered by id, until it gets a name.
    slug = models.CharField(max_length=slugs.MOST, null=True)  # noqa: DJ001 - see above
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = CatalogueQuerySet.as_manager()

    class Meta:
        abstract = True
        indexes = [
            models.Index(fields=["name", "id"], name="%(class)s_by_name"),
            models.Index(fields=["updated_at", "id"], name="%(class)s_by_change"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(name="%(class)s_slug_form", condition=slugs.of_the_form()),
        ]

    def __str__(self) -> str:
        return self.name or str(self.id)

    @property
    def parent_id(self) -> uuid.UUID:
        """Return the id of the application in which the slug is unique, or ``NO_PARENT``."""
        return NO_PARENT

    @classmethod
    def of_parent(cls, parent_id: Any) -> models.QuerySet[Any]:
        """Return the entries with this parent id, which may be a query parameter."""
        del parent_id  # only components have parents
        return cls._default_manager.all()

    @classmethod
    def of_slug(cls, slug: Any, parent_id: Any) -> models.QuerySet[Any]:
        """Return a queryset with the entry of this slug. Both arguments may be query parameters."""
        return cls.of_parent(parent_id).filter(slug=slug)

    @classmethod
    def in_parents(cls, parent_ids: Collection[uuid.UUID]) -> models.QuerySet[Any]:
        """Return the entries without a parent, and the entries with any of these parents."""
        del parent_ids  # only components have parents
        return cls._default_manager.all()

    @classmethod
    def seen_by(cls, binding: Binding) -> Q:
        """Return the condition for the entries that a caller with the binding can see.

        The binding must not contain a cluster.
        """
        raise NotImplementedError

    @classmethod
    def is_changed_by(cls, binding: Binding) -> bool:
        """Return whether a caller may change entries.

        The binding must include all states of the entries.
        """
        return binding.cluster_id is None and all(
            getattr(binding, name) is None for name in cls.shared_beyond
        )

    @classmethod
    def is_created_by(cls, binding: Binding) -> bool:
        """Return whether a caller may create entries.

        The binding must not list entries of this kind, or of a kind below it.
        """
        return binding.cluster_id is None and all(
            getattr(binding, name) is None for name in cls.named_by
        )

    @classmethod
    def allows(cls, binding: Binding, fields: Mapping[str, Any]) -> bool:
        """Return whether an entry with these new or changed fields is within the binding."""
        del binding, fields  # only components have parents
        return True
