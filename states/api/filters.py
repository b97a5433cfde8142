"""Filters of lists. The index of each filtered column ends with the columns of the page order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django_filters import BooleanFilter, CharFilter, FilterSet, IsoDateTimeFilter, UUIDFilter

from filterlang.filters import EnumFilter, IdentifierFilter, IntegerFilter, VersionsFilter
from filterlang.lookups import Piece, TextMatches
from filterlang.rewriting import rewritten
from filterlang.versions import VersionComparison
from infra_service.lib.database.bounded_pages.selecting import ColumnOf
from states.models import Application, Component, Environment, ResourceEntry, State
from states.models.catalogue import KINDS
from states.models.engines import Engine
from states.models.of_state import ids_or_query, with_part_of_name
from states.models.version_facts import UsedByState

if TYPE_CHECKING:
    from states.models.catalogue_entry import CatalogueEntry


_APPLICATION_ID: Final = "the application of the state's component"
_COMPONENT: Final = "the complete slug of the component, in any application"
_ENVIRONMENT: Final = "the complete slug of the environment"
_APPLICATION: Final = "the complete slug of the component's application"


class StateFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    component_id = UUIDFilter()
    environment_id = UUIDFilter()
    # From the state's own copy.
    application_id = UUIDFilter(help_text=_APPLICATION_ID)
    # ``with_ids`` replaces the slugs by ids before the query.
    component = IdentifierFilter(field_name="component__slug", help_text=_COMPONENT)
    environment = IdentifierFilter(field_name="environment__slug", help_text=_ENVIRONMENT)
    application = IdentifierFilter(field_name="application__slug", help_text=_APPLICATION)
    # ``with_ids`` also replaces names and parts of names.
    component_name = CharFilter(field_name="component__name")
    environment_name = CharFilter(field_name="environment__name")
    application_name = CharFilter(
        field_name="application__name",
        help_text="the current name of the component's application",
    )
    id = UUIDFilter()
    serial = IntegerFilter()
    lineage = IdentifierFilter()
    size_bytes = IntegerFilter()
    created_at = IsoDateTimeFilter()
    updated_at = IsoDateTimeFilter()
    locked = BooleanFilter(
        field_name="lock_id",
        lookup_expr="isnull",
        exclude=True,
        help_text="whether a client has locked the state",
    )
    vars()["lock.acquired_at"] = IsoDateTimeFilter(field_name="lock_acquired_at")
    frozen = BooleanFilter(
        field_name="frozen_at",
        lookup_expr="isnull",
        exclude=True,
        help_text="whether an operator has frozen the state",
    )
    # From the resource index.
    engine = EnumFilter(choices=Engine.choices)
    client_encrypted = BooleanFilter(
        field_name="is_client_encrypted",
        lookup_expr="isnull",
        exclude=True,
        help_text="whether OpenTofu encrypted the document on the client",
    )
    failing_checks = BooleanFilter(
        lookup_expr="isnull",
        exclude=True,
        help_text="whether a `check` block fails",
    )
    # Provider and module versions that a pipeline reported for the current version
    # (``UsedByState``).
    provider = VersionsFilter(help_text="a version in the facts of the current version")
    module = VersionsFilter(help_text="a version in the facts of the current version")

    class Meta:
        model = State
        fields = ()


class OfStateFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of rows that belong to a state."""

    state_id = UUIDFilter()
    component_id = UUIDFilter()
    environment_id = UUIDFilter()
    # ``with_ids`` replaces the following by the ids of components and environments.
    application_id = UUIDFilter(field_name="component__application_id", help_text=_APPLICATION_ID)
    component = IdentifierFilter(field_name="component__slug", help_text=_COMPONENT)
    environment = IdentifierFilter(field_name="environment__slug", help_text=_ENVIRONMENT)
    application = IdentifierFilter(
        field_name="component__application__slug", help_text=_APPLICATION
    )


class ResourceFilters(OfStateFilters):
    type = CharFilter()
    name = CharFilter()
    address = CharFilter()
    module = CharFilter()
    provider = CharFilter()
    mode = EnumFilter(choices=[("managed", "managed"), ("data", "data")])

    class Meta:
        model = ResourceEntry
        fields = ()


class CatalogueFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of applications, and of all catalogue entries."""

    id = UUIDFilter()
    name = CharFilter()
    slug = IdentifierFilter()

    class Meta:
        model = Application
        fields = ()


class ComponentFilters(CatalogueFilters):
    application_id = UUIDFilter()

    class Meta:
        model = Component
        fields = ()


class EnvironmentFilters(CatalogueFilters):
    require_lock = BooleanFilter()

    class Meta:
        model = Environment
        fields = ()


def with_ids(condition: Q) -> Q:
    """Return a condition with the ids of catalogue entries in place of their names and slugs.

    An index finds the rows by ids. Each comparison of a name or slug costs a query. Comparisons of
    provider and module versions become conditions on the states that use them.
    """
    return rewritten(condition, _with_ids)


def _with_ids(path: str, value: Any) -> Any:
    kind, _, lookup = path.partition("__")
    if isinstance(value, VersionComparison):
        return UsedByState(kind, value)
    if kind not in KINDS:
        return path, value
    model = KINDS[kind]
    found: Any
    if isinstance(value, Piece):
        found = with_part_of_name(model, value)
        if found is None:
            return _of_entry_named(kind, model, value)
    else:
        found = ids_or_query(model.objects.filter((lookup, value)))
    if isinstance(found, list) and len(found) == 1:
        return f"{kind}_id", found[0]
    return f"{kind}_id__in", found


def _of_entry_named(kind: str, model: type[CatalogueEntry], piece: Piece) -> Q:
    """Return a condition that checks the entry's name for each state that a page reads."""
    # A scalar subquery: for a join, PostgreSQL might read all names first.
    is_named = TextMatches(ColumnOf(model, f"{kind}_id", "name"), piece)
    return Q((f"{kind}_id__isnull", False)) & Q(is_named)
