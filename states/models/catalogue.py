"""The catalogue: applications, components and environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.db import models
from django.db.models import Q

from infra_service.lib.database.bounded_pages import NamedBy
from infra_service.lib.uuids import uuid7
from states import slugs
from states.models.catalogue_entry import NO_PARENT, CatalogueEntry

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Mapping

    from apikeys.bindings import Binding

_HAS_SLUG: Final = Q(slug__isnull=False)


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
        """Return the condition for the applications that a caller with the binding can see.

        These are the applications in the binding, and the applications of components and states
        within the binding.
        """
        seen = Q() if binding.application_ids is None else Q(pk__in=binding.application_ids)
        if binding.component_ids is not None:
            own = Component.objects.filter(pk__in=binding.component_ids)
            seen &= Q(NamedBy(own, "application_id"))
        if binding.environment_ids is not None and binding.application_ids is None:
            seen &= Q(NamedBy(_states_inside(binding), "application_id"))
        return seen


class Component(CatalogueEntry):
    """A deployable unit of infrastructure, with a state in each environment."""

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
            # Each application may have a component with the same slug.
            models.Index(fields=["slug", "id"], name="component_by_slug"),
            # For the search for workspaces by the beginning of their names, in any collation.
            models.Index(
                fields=["slug"], opclasses=["varchar_pattern_ops"], name="component_by_slug_prefix"
            ),
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
        """Return the condition for the components that a caller with the binding can see.

        These are the components in the binding, and the components of applications and states
        within the binding.
        """
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
        """Return whether the component stays in its application or moves to one in the binding."""
        return (
            binding.application_ids is None
            or "application_id" not in fields
            or fields["application_id"] in binding.application_ids
        )

    @classmethod
    def of_parent(cls, parent_id: Any) -> models.QuerySet[Any]:
        parent: Any = None if parent_id is NO_PARENT else parent_id
        return cls._default_manager.filter(application_id=parent)

    @classmethod
    def in_parents(cls, parent_ids: Collection[uuid.UUID]) -> models.QuerySet[Any]:
        inside = Q(application_id=None) | Q(application_id__in=parent_ids)
        return cls._default_manager.filter(inside)


def _states_inside(binding: Binding) -> Any:
    return apps.get_model("states", "State")._default_manager.visible().inside(binding)


class Environment(CatalogueEntry):
    """A deployment target of components, such as production or staging."""

    named_by = ("environment_ids",)
    shared_beyond = ("component_ids", "application_ids")

    # Whether a push requires a lock ID. A client without a lock address sends no lock ID, and shows
    # no error.
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
        """Return the condition for the environments that a caller with the binding can see.

        These are the environments in the binding, and the environments of states within the
        binding.
        """
        if binding.environment_ids is not None:
            return Q(pk__in=binding.environment_ids)
        return Q(NamedBy(_states_inside(binding), "environment_id"))


#: The models of the catalogue by kind, as in addresses, filters and searches.
KINDS: Final[dict[str, type[CatalogueEntry]]] = {
    "application": Application,
    "component": Component,
    "environment": Environment,
}


class SlugClaim(models.Model):
    """A current or former slug of an entry, unique within the parent.

    A former slug resolves to its entry until another entry takes over the slug.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=20)
    parent_id = models.UUIDField()
    slug = models.CharField(max_length=slugs.MOST)
    entry_id = models.UUIDField()

    class Meta:
        # The table's name is from a release that stored only former slugs.
        db_table = "states_formerslug"
        constraints = [
            models.UniqueConstraint(name="formerslug", fields=["kind", "parent_id", "slug"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.slug}"
