"""The catalogue of applications, components and environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rest_framework.response import Response

from apikeys.actors import Actor
from apikeys.authentication import caller_of
from apikeys.errors import BindingInsufficient
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from infra_service.lib.api.idempotency import idempotent
from infra_service.lib.api.viewsets import ResourceViewSet
from states.actions import catalogue, removal
from states.api.catalogue_openapi import (
    applications_schema,
    components_schema,
    environments_schema,
)
from states.api.catalogue_serializers import (
    ApplicationSerializer,
    ComponentSerializer,
    EnvironmentSerializer,
)
from states.api.filters import CatalogueFilters, ComponentFilters, EnvironmentFilters
from states.errors import (
    ApplicationNotFound,
    ComponentNotFound,
    EnvironmentNotFound,
)
from states.models import Application, Component, Environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

    from states.models.catalogue_entry import CatalogueEntry, CatalogueQuerySet


class CatalogueViewSet(ResourceViewSet[Any]):
    """Catalogue entries of a kind.

    A first push registers missing entries, so the creation of an entry requires only the scope for
    pushes. Changes and deletions affect all users, so they require ``state:admin``.
    """

    model: ClassVar[type[CatalogueEntry]]
    names_missing = True
    other_keys = (("name", "id"),)
    moving_orders = ("name",)
    token_kinds = ACCESS_TOKENS
    required_scopes = {
        "list": Scope.STATE_READ,
        "retrieve": Scope.STATE_READ,
        "create": Scope.STATE_WRITE,
        "partial_update": Scope.STATE_ADMIN,
        "destroy": Scope.STATE_ADMIN,
    }

    def get_queryset(self) -> CatalogueQuerySet:
        return self.model.objects.inside(caller_of(self.request).binding)

    @idempotent
    def create(self, request: Request) -> Response:
        """Create an entry."""
        if not self.model.is_created_by(caller_of(request).binding):
            raise BindingInsufficient
        fields = self.read_new()
        slug_suffix = fields.pop("slug_suffix")
        self._demand_inside({"application_id": None, **fields})
        entry = catalogue.create(
            model=self.model, fields=fields, actor=Actor.of(request), slug_suffix=slug_suffix
        )
        return self.answer(entry, status=201)

    def partial_update(self, request: Request, **_path: str) -> Response:
        """Change an entry."""
        entry = self.get_object()
        if not self.model.is_changed_by(caller_of(request).binding):
            raise BindingInsufficient
        changes = self.read_changes()
        changes.pop("slug_suffix", None)  # only for new entries
        self._demand_inside(changes)
        catalogue.change(
            model=self.model, entry_id=entry.pk, changes=changes, actor=Actor.of(request)
        )
        return self.answer(self.get_object())

    def destroy(self, request: Request, **_path: str) -> Response:
        """Delete an unused entry."""
        entry = self.get_object()
        if not self.model.is_changed_by(caller_of(request).binding):
            raise BindingInsufficient
        removal.delete_entry(model=self.model, entry_id=entry.pk, actor=Actor.of(request))
        return Response(status=204)

    def _demand_inside(self, fields: Mapping[str, Any]) -> None:
        """Reject fields that would move the entry outside the caller's binding.

        Raises:
            BindingInsufficient: the changed entry would be outside the binding.
        """
        if not self.model.allows(caller_of(self.request).binding, fields):
            raise BindingInsufficient


@applications_schema
class ApplicationViewSet(CatalogueViewSet):
    """Applications: groups of components."""

    model = Application
    queryset = Application.objects.all()
    serializer_class = ApplicationSerializer
    filterset_class = CatalogueFilters
    resource, resource_plural = "application", "applications"
    not_found = ApplicationNotFound


@components_schema
class ComponentViewSet(CatalogueViewSet):
    """Components: deployable units of infrastructure, each with a state in each environment."""

    model = Component
    queryset = Component.objects.all()
    serializer_class = ComponentSerializer
    filterset_class = ComponentFilters
    resource, resource_plural = "component", "components"
    not_found = ComponentNotFound


@environments_schema
class EnvironmentViewSet(CatalogueViewSet):
    """Environments: deployment targets of components."""

    model = Environment
    queryset = Environment.objects.all()
    serializer_class = EnvironmentSerializer
    filterset_class = EnvironmentFilters
    searched_fields = ("require_lock",)  # without an index, because there are few environments
    resource, resource_plural = "environment", "environments"
    not_found = EnvironmentNotFound
