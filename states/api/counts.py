"""Counts over all states: providers, resource types, Terraform versions and engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec
from rest_framework.decorators import action
from rest_framework.response import Response

from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from infra_service.lib.api.pagination import PageRequest
from infra_service.lib.api.viewsets import ResourceViewSet
from states.api.answers import (
    EngineCount,
    ProviderCount,
    ResourceTypeCount,
    TerraformVersionCount,
)
from states.api.counts_openapi import (
    engines_schema,
    providers_schema,
    resource_types_schema,
    versions_schema,
)
from states.models import StateCount
from states.models.resource_counts import Kind, counts_of

if TYPE_CHECKING:
    from rest_framework.request import Request

    from apikeys.bindings import Binding


class CountsViewSet(ResourceViewSet[StateCount]):
    """Base of the counts of states and resources, over the states within the caller's binding."""

    queryset = StateCount.objects.all()
    filter_backends = ()
    token_kinds = ACCESS_TOKENS
    required_scopes = {"count": Scope.STATE_READ}
    kind: ClassVar[Kind]
    answer_type: ClassVar[type[msgspec.Struct]]

    @action(detail=False)
    def count(self, request: Request, **_path: str) -> Response:
        """Return a page of the counts."""
        page_request = PageRequest.read(request, self, {1})
        counts = counts_of(self.kind, caller_of(request).binding)
        page, token = page_request.page_by("value", counts)
        more = self.further(caller_of(request).binding)
        items = [
            msgspec.convert(
                {**row, **more.get(row["value"], {}), self.kind.value: row["value"]},
                self.answer_type,
            )
            for row in page
        ]
        return Response({self.resource_plural: items, "next_page_token": token})

    def further(self, _binding: Binding) -> dict[str, dict[str, int]]:
        """Return additional counts by value."""
        return {}


@providers_schema
class ProvidersViewSet(CountsViewSet):
    kind, resource_plural, answer_type = Kind.PROVIDER, "providers", ProviderCount


@resource_types_schema
class ResourceTypesViewSet(CountsViewSet):
    kind, resource_plural = Kind.RESOURCE_TYPE, "resource_types"
    answer_type = ResourceTypeCount


@versions_schema
class TerraformVersionsViewSet(CountsViewSet):
    """Counts by the version of Terraform or OpenTofu that wrote the current version of a state."""

    kind, resource_plural = Kind.TERRAFORM_VERSION, "terraform_versions"
    answer_type = TerraformVersionCount


@engines_schema
class EnginesViewSet(CountsViewSet):
    """Counts by the engine that wrote the current version of a state."""

    kind, resource_plural, answer_type = Kind.ENGINE, "engines", EngineCount

    def further(self, binding: Binding) -> dict[str, dict[str, int]]:
        """Return the number of encrypted states for each engine."""
        encrypted = counts_of(Kind.CLIENT_ENCRYPTION, binding)
        return {row["value"]: {"client_encrypted_states": row["states"]} for row in encrypted}
