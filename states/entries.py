"""The catalogue: what states belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.apps import apps
from django.db import models
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from apikeys.grants import EVERYWHERE
from infra_service.database.pages import NamedBy

if TYPE_CHECKING:
    from apikeys.grants import Binding, Ids


class CatalogueQuerySet(models.QuerySet[Any]):
    """Rules over many entries of one kind."""

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
    """A named thing that states belong to. Ids tell entries apart; names need not differ."""

    #: Columns in the order of bytes, in which what begins with a text is a range.
    byte_ordered = frozenset({"name"})
    #: The parts of a token's binding that reach beyond an entry, so that it cannot change one:
    #: something may belong to the entry that is outside of them.
    shared_beyond: ClassVar[tuple[str, ...]]
    #: The part that names entries of this kind, if one does: a new entry is none of them.
    named_by: ClassVar[str]

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
    def seen_by(cls, binding: Binding) -> Q:
        """Return the condition for what a token sees that is bound, but to no cluster."""
        named: Ids = getattr(binding, cls.named_by)
        if named is not None:
            return Q(pk__in=named)
        # States know entries by the name of their kind.
        return Q(NamedBy(_states_inside(binding), f"{cls._meta.model_name}_id"))

    @classmethod
    def is_changed_by(cls, binding: Binding) -> bool:
        """Whether all that may belong to an entry is inside, so that it is the token's alone."""
        return binding.cluster_id is None and all(
            getattr(binding, name) is None for name in cls.shared_beyond
        )

    @classmethod
    def is_created_by(cls, binding: Binding) -> bool:
        """Whether a token may create an entry; one that is bound to others may not."""
        return binding.cluster_id is None and getattr(binding, cls.named_by) is None


class Application(CatalogueEntry):
    """A group of components."""

    named_by = "component_ids"
    shared_beyond = ("component_ids", "environment_ids")

    @classmethod
    def seen_by(cls, binding: Binding) -> Q:
        """Return the condition for the applications of the token's components or states."""
        seen = Q()
        if binding.component_ids is not None:
            own = Component.objects.filter(pk__in=binding.component_ids)
            seen &= Q(NamedBy(own, "application_id"))
        if binding.environment_ids is not None:
            seen &= Q(NamedBy(_states_inside(binding), "application_id"))
        return seen


class Component(CatalogueEntry):
    """A piece of infrastructure that has one state in each environment."""

    named_by = "component_ids"
    shared_beyond = ("environment_ids",)

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


def _states_inside(binding: Binding) -> Any:
    return apps.get_model("states", "State")._default_manager.visible().inside(binding)


class Environment(CatalogueEntry):
    """Where a component is deployed: production, staging and the like."""

    named_by = "environment_ids"
    shared_beyond = ("component_ids",)
