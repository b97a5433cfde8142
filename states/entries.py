"""The catalogue: what states belong to."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from django.apps import apps
from django.db import models
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from apikeys.grants import EVERYWHERE
from infra_service.database.pages import NamedBy
from states import slugs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.db.models import QuerySet

    from apikeys.grants import Binding

Rows = TypeVar("Rows", bound="QuerySet[Any, Any]")

#: The parent of what has none.
NO_PARENT: Final = uuid.UUID(int=0)
_HAS_SLUG: Final = Q(slug__isnull=False)
#: So many ids are written into a condition; a slug may be that of more components.
_MOST_IDS: Final = 1_000


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
    def of_slug(cls, slug: Any, parent_id: Any) -> models.QuerySet[Any]:
        """Return the entry of this slug, as a queryset; each may be a parameter."""
        del parent_id  # only components have parents
        return cls._default_manager.filter(slug=slug)

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
        """Whether a token may create an entry; one that is bound to others may not."""
        return binding.cluster_id is None and all(
            getattr(binding, name) is None for name in cls.named_by
        )

    @classmethod
    def allows(cls, binding: Binding, fields: Mapping[str, Any]) -> bool:
        """Whether an entry with these fields, or so changed, is inside of the binding."""
        del binding, fields  # only components belong to something
        return True


class Application(CatalogueEntry):
    """A group of components."""

    named_by = ("component_ids", "application_ids")
    shared_beyond = ("component_ids", "environment_ids")

    class Meta(CatalogueEntry.Meta):
        constraints = [
            *CatalogueEntry.Meta.constraints,
            models.UniqueConstraint(name="application_slug", fields=["slug"], condition=_HAS_SLUG),
        ]

    @classmethod
    def seen_by(cls, binding: Binding) -> Q:
        """Return the condition for its applications, or those of its components or states."""
        seen = Q() if binding.application_ids is None else Q(pk__in=binding.application_ids)
        if binding.component_ids is not None:
            own = Component.objects.filter(pk__in=binding.component_ids)
            seen &= Q(NamedBy(own, "application_id"))
        if binding.environment_ids is not None and binding.application_ids is None:
            seen &= Q(NamedBy(_states_inside(binding), "application_id"))
        return seen


class Component(CatalogueEntry):
    """A piece of infrastructure that has one state in each environment."""

    named_by = ("component_ids",)
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
            # Of one slug there may be one in each application.
            models.Index(fields=["slug", "id"], name="component_by_slug"),
        ]
        constraints = [
            *CatalogueEntry.Meta.constraints,
            models.UniqueConstraint(
                name="component_slug_in_application",
                fields=["application", "slug"],
                condition=_HAS_SLUG,
            ),
            models.UniqueConstraint(
                name="component_slug_without_application",
                fields=["slug"],
                condition=_HAS_SLUG & Q(application=None),
            ),
        ]

    @property
    def parent_id(self) -> uuid.UUID:
        return self.application_id or NO_PARENT

    @classmethod
    def seen_by(cls, binding: Binding) -> Q:
        """Return the condition for its components, those of its applications, or of its states."""
        if binding.component_ids is None and binding.application_ids is None:
            return Q(NamedBy(_states_inside(binding), "component_id"))
        seen = Q()
        if binding.component_ids is not None:
            seen &= Q(pk__in=binding.component_ids)
        if binding.application_ids is not None:
            seen &= Q(application_id__in=binding.application_ids)
        return seen

    @classmethod
    def allows(cls, binding: Binding, fields: Mapping[str, Any]) -> bool:
        """Whether the component stays in, or comes to, an application of the binding."""
        return (
            binding.application_ids is None
            or "application_id" not in fields
            or fields["application_id"] in binding.application_ids
        )

    @classmethod
    def of_slug(cls, slug: Any, parent_id: Any) -> models.QuerySet[Any]:
        parent: Any = None if parent_id is NO_PARENT else parent_id
        return cls._default_manager.filter(slug=slug, application_id=parent)

    @classmethod
    def in_parents(cls, parent_ids: Collection[uuid.UUID]) -> models.QuerySet[Any]:
        inside = Q(application_id=None) | Q(application_id__in=parent_ids)
        return cls._default_manager.filter(inside)


def _states_inside(binding: Binding) -> Any:
    return apps.get_model("states", "State")._default_manager.visible().inside(binding)


class Environment(CatalogueEntry):
    """Where a component is deployed: production, staging and the like."""

    named_by = ("environment_ids",)
    shared_beyond = ("component_ids", "application_ids")

    # Whether a push needs the lock's ID. A client without an address for locks sends none, and
    # says nothing of it.
    require_lock = models.BooleanField(default=False, db_default=False)

    class Meta(CatalogueEntry.Meta):
        constraints = [
            models.CheckConstraint(
                name="environment_slug_form",
                condition=slugs.of_the_form(reserved=slugs.RESERVED["environment"]),
            ),
            models.UniqueConstraint(name="environment_slug", fields=["slug"], condition=_HAS_SLUG),
        ]

    @classmethod
    def seen_by(cls, binding: Binding) -> Q:
        """Return the condition for its environments, or those of its states."""
        if binding.environment_ids is not None:
            return Q(pk__in=binding.environment_ids)
        return Q(NamedBy(_states_inside(binding), "environment_id"))


def inside_catalogue(rows: Rows, binding: Binding) -> Rows:
    """Return the rows of components and environments that a token with this binding sees.

    What it is bound to of applications is left to the caller, whose rows may tell it or not.
    """
    if binding.cluster_id is not None:
        return rows.none()
    inside = rows.all()
    if binding.component_ids is not None:
        inside = inside.filter(component_id__in=binding.component_ids)
    if binding.environment_ids is not None:
        inside = inside.filter(environment_id__in=binding.environment_ids)
    return inside


def ids_or_query(entries: QuerySet[Any, Any]) -> list[uuid.UUID] | QuerySet[Any, Any]:
    """Return the ids of the entries, by which an index finds what belongs to them.

    One query; where they are too many to be written into a condition, they stay one.
    """
    ids = entries.values_list("pk", flat=True)
    found = list(ids[: _MOST_IDS + 1])
    return found if len(found) <= _MOST_IDS else ids


#: The models of the catalogue, by how addresses, filters and searches call them.
KINDS: Final[dict[str, type[CatalogueEntry]]] = {
    "application": Application,
    "component": Component,
    "environment": Environment,
}


class FormerSlug(models.Model):
    """A slug that an entry had before: an address with it goes on, until another entry has it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=20)
    parent_id = models.UUIDField()
    slug = models.CharField(max_length=slugs.MOST)
    entry_id = models.UUIDField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="formerslug", fields=["kind", "parent_id", "slug"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.slug}"
