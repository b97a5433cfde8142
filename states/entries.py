"""The catalogue: what states belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection

    from apikeys.grants import Binding


class CatalogueQuerySet(models.QuerySet[Any]):
    """Rules over many entries of one kind."""

    def inside(self, binding: Binding) -> CatalogueQuerySet:
        """Those that a token with this binding sees."""
        if binding.cluster_id is not None:
            return self.none()
        ids = getattr(binding, self.model.bound_by)
        return self.all() if ids is None else self.filter(self.model.among(ids))

    def named(self, beginning: str) -> CatalogueQuerySet:
        """Those whose name begins so, in the order of their names; the index on names serves it.

        Names are in the order of their bytes, in which nothing comes after U+10FFFF.
        """
        after = f"{beginning}\U0010ffff"
        return self.filter(name__gte=beginning, name__lt=after).order_by("name", "id")


class CatalogueEntry(models.Model):
    """A named thing that states belong to. Ids tell entries apart; names need not differ."""

    #: Columns in the order of bytes, in which what begins with a text is a range.
    byte_ordered = frozenset({"name"})
    #: The part of a token's binding that says which of these it sees.
    bound_by: ClassVar[str]

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = CatalogueQuerySet.as_manager()

    class Meta:
        abstract = True
        indexes = [models.Index(fields=["name", "id"], name="%(class)s_by_name")]

    def __str__(self) -> str:
        return self.name or str(self.id)

    @classmethod
    def among(cls, ids: Collection[uuid.UUID]) -> Q:
        """Return the condition for what a token that is bound to these ids sees."""
        return Q(pk__in=ids)

    @classmethod
    def is_reached(cls, binding: Binding, *, exists: bool) -> bool:
        """Whether a token may change an entry that it sees, or create one (``exists=False``)."""
        free = getattr(binding, cls.bound_by) is None
        return binding.cluster_id is None and (free or exists)


class Application(CatalogueEntry):
    """A group of components."""

    bound_by = "component_ids"

    @classmethod
    def among(cls, ids: Collection[uuid.UUID]) -> Q:
        """Return the condition for the applications of these components."""
        return Q(pk__in=Component.objects.filter(pk__in=ids).values("application_id"))

    @classmethod
    def is_reached(cls, binding: Binding, *, exists: bool) -> bool:  # noqa: ARG003 - the same for both
        """Whether it may: not when it is bound to some components, since others share it."""
        return super().is_reached(binding, exists=False)


class Component(CatalogueEntry):
    """A piece of infrastructure that has one state in each environment."""

    bound_by = "component_ids"

    application = models.ForeignKey(
        Application,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="components",
        db_index=False,
    )

    class Meta(CatalogueEntry.Meta):
        indexes = [
            *CatalogueEntry.Meta.indexes,
            models.Index(fields=["application", "id"], name="component_by_application"),
        ]


class Environment(CatalogueEntry):
    """Where a component is deployed: production, staging and the like."""

    bound_by = "environment_ids"
