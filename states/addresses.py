"""Addresses of states by names: resolve current and former slugs, and compose addresses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import CharField, Subquery, UUIDField
from django.db.models.functions import Coalesce

from apikeys.bindings import EVERYWHERE
from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.api.parameters import InvalidParameter
from infra_service.lib.database.compiled import CompiledQuery, Parameter, Prefetch
from states import slugs
from states.models import Application, Component, Environment, SlugClaim, State
from states.models.catalogue import KINDS
from states.models.catalogue_entry import NO_PARENT

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection

    from django.db.models import QuerySet

    from apikeys.bindings import Binding
    from states.models import StateQuerySet
    from states.models.catalogue_entry import CatalogueEntry

#: The lock address is the same as the address for pushes.
_BLOCK: Final = """\
terraform {{
  backend "http" {{
    address        = "{address}"
    lock_address   = "{address}"
    unlock_address = "{address}"
  }}
}}
"""
#: Forms of an address, for messages.
FORMS: Final = "{component}/{environment} or {application}/{component}/{environment}"


class Names(NamedTuple):
    """The slugs in an address. ``application`` is None for a component without an application.

    In a compiled query, each slug is a parameter.
    """

    component: Any
    environment: Any
    application: Any = None

    @property
    def is_valid(self) -> bool:
        """Return whether each name is a slug."""
        return all(slugs.is_slug(slug, kind) for kind, slug in self.given.items())

    @property
    def given(self) -> dict[str, Any]:
        """Return the given slugs by kind."""
        of_component = {"component": self.component, "environment": self.environment}
        if self.application is None:
            return of_component
        return {**of_component, "application": self.application}

    @property
    def path(self) -> str:
        """Return the end of the address, such as ``shop/network/production``."""
        return "/".join(filter(None, (self.application, self.component, self.environment)))

    def refuse(self, binding: Binding) -> None:
        """Reject an invalid name, and suggest a similar name that the caller can access.

        Raises:
            InvalidParameter: a name is invalid.
        """
        for kind, text in self.given.items():
            if not slugs.is_slug(text, kind):
                description = f"The name must be {slugs.DESCRIPTION}{_near(kind, text, binding)}"
                raise InvalidParameter(kind, description)


def _near(kind: str, text: str, binding: Binding) -> str:
    near = slugs.slug_of(text[:200], kind)
    seen = KINDS[kind].objects.inside(binding).filter(slug=near)
    return f"; did you mean {near!r}?" if seen.exists() else "."


class StateQuery:
    """Compiled queries for a state, by ids and by names. ``rows`` selects the columns."""

    def __init__(self, rows: Callable[[StateQuerySet], QuerySet[State, Any]]) -> None:
        ids = (Parameter("component_id", UUIDField()), Parameter("environment_id", UUIDField()))
        names = Names(*(Parameter(name, CharField()) for name in Names._fields))
        self._of_ids = CompiledQuery(lambda: rows(State.objects.of(*ids)))
        self._within = CompiledQuery(lambda: rows(states_at(names)))
        self._without = CompiledQuery(lambda: rows(states_at(names._replace(application=None))))

    def by_ids(self, **ids: uuid.UUID | None) -> Prefetch[State]:
        """Return the query for the state with this ``component_id`` and ``environment_id``."""
        return Prefetch(self._of_ids, **ids)

    def by_names(self, names: Names) -> Prefetch[State]:
        """Return the query for the state at these names."""
        query = self._without if names.application is None else self._within
        return Prefetch(query, **names.given)


def states_at(names: Names) -> StateQuerySet:
    """Return a queryset with the state at these names, deleted or not."""
    parent = NO_PARENT
    if names.application is not None:
        parent = _id_at(Application, names.application)
    return State.objects.of(
        _id_at(Component, names.component, parent), _id_at(Environment, names.environment)
    )


def _id_at(model: type[CatalogueEntry], slug: Any, parent_id: Any = NO_PARENT) -> Any:
    """Return an expression for the id of the slug's current owner, or of its last owner."""
    former = SlugClaim.objects.filter(kind=model._meta.model_name, parent_id=parent_id, slug=slug)
    return Coalesce(
        Subquery(model.of_slug(slug, parent_id).values("pk")),
        Subquery(former.values("entry_id")),
    )


def _at(kind: str, *, in_parent: bool) -> QuerySet[CatalogueEntry, Any]:
    model, slug = KINDS[kind], Parameter("slug", CharField())
    parent = Parameter("parent_id", UUIDField()) if in_parent else NO_PARENT
    return model._default_manager.filter(pk=_id_at(model, slug, parent)).values_list("pk")


_AT: Final = {
    (kind, flag): CompiledQuery(partial(_at, kind, in_parent=flag))
    for kind in KINDS
    for flag in (False, True)
}


def find_id(
    model: type[CatalogueEntry], slug: str, parent_id: uuid.UUID = NO_PARENT
) -> uuid.UUID | None:
    """Return the id of the slug's current owner, or of its last owner, or None."""
    query = _AT[str(model._meta.model_name), parent_id != NO_PARENT]
    row = query.row(slug=slug, parent_id=parent_id)
    return None if row is None else row[0]


class Place(NamedTuple):
    """The ids of a state's catalogue entries. A missing entry or application is None."""

    component_id: uuid.UUID | None
    environment_id: uuid.UUID | None
    application_id: uuid.UUID | None


def find_place(names: Names) -> Place:
    """Return the ids of the entries with these names.

    A former address also finds a component that moved to another application. The result contains
    the current application of an existing component.
    """
    component_id: uuid.UUID | None = None
    application_id: uuid.UUID | None = None
    if names.application is None:
        component_id = find_id(Component, names.component)
    elif (application_id := find_id(Application, names.application)) is not None:
        component_id = find_id(Component, names.component, application_id)
    if component_id is not None:
        application_id = application_of(component_id)
    return Place(component_id, find_id(Environment, names.environment), application_id)


def application_of(component_id: uuid.UUID) -> uuid.UUID | None:
    """Return the id of a component's application, or None if either is missing."""
    components = Component.objects.filter(pk=component_id)
    application_id: uuid.UUID | None = components.values_list("application_id", flat=True).first()
    return application_id


def find_inside(kind: str, texts: Collection[str], binding: Binding) -> dict[str, uuid.UUID]:
    """Resolve ids and slugs to the ids of existing entries within the binding.

    The slug of a component follows the slug of its application, as in addresses: ``shop/network``.
    """
    model = KINDS[kind]
    applications: dict[str, uuid.UUID] = {}
    if model is Component:
        named = {application for text in texts if (application := text.rpartition("/")[0])}
        applications = find_inside("application", named, EVERYWHERE) if named else {}
    ids: dict[str, uuid.UUID] = {}
    places: dict[tuple[uuid.UUID, str], str] = {}
    for text in texts:
        parent, _, slug = text.rpartition("/")
        if (entry_id := parse_uuid(text)) is not None:
            ids[text] = entry_id
        elif not parent or parent in applications:
            places[applications.get(parent, NO_PARENT), slug] = text
    found = _ids_at(model, [slug for _, slug in places], applications.values())
    ids |= {text: found[place] for place, text in places.items() if place in found}
    seen = set(
        model.objects.inside(binding).filter(pk__in=ids.values()).values_list("pk", flat=True)
    )
    return {text: entry_id for text, entry_id in ids.items() if entry_id in seen}


def _ids_at(
    model: type[CatalogueEntry], with_slugs: Collection[str], parent_ids: Collection[uuid.UUID]
) -> dict[tuple[uuid.UUID, str], uuid.UUID]:
    """Return the ids of the slugs' current or last owners, by parent and slug."""
    if not with_slugs:
        return {}
    formers = SlugClaim.objects.filter(
        kind=model._meta.model_name, parent_id__in=[NO_PARENT, *parent_ids], slug__in=with_slugs
    )
    ids = {(former.parent_id, former.slug): former.entry_id for former in formers}
    entries = model.in_parents(parent_ids).filter(slug__in=with_slugs)
    return ids | {(entry.parent_id, entry.slug): entry.pk for entry in entries}


def names_of(state: State) -> Names | None:
    """Return the slugs in a state's address, or None if any of its entries has no slug."""
    component, environment = state.component, state.environment
    application = component.application
    if None in (component.slug, environment.slug) or (application and application.slug is None):
        return None
    return Names(component.slug, environment.slug, application and application.slug)


def path_at(component_id: uuid.UUID, environment_id: uuid.UUID, names: Names | None) -> str:
    """Return the path of a backend: by names if available, otherwise by ids."""
    if names is not None:
        return f"/api/v1/state/at/{names.path}"
    return f"/api/v1/state/{component_id}/env/{environment_id}"


def path_of(state: State) -> str:
    """Return the path of a state's backend."""
    return path_at(state.component_id, state.environment_id, names_of(state))


def backend_block(address: str) -> str:
    """Return the backend block of a Terraform configuration for this address."""
    return _BLOCK.format(address=address)
