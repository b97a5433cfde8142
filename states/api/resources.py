"""Resources of all states: lists by state, type and address, and a search by identifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.decorators import action

from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from infra_service.lib.api.viewsets import ResourceViewSet
from states.api.filters import ResourceFilters, with_ids
from states.api.resource_serializers import FindSerializer, ResourceEntrySerializer
from states.api.resources_openapi import find_schema, resources_schema
from states.models import ResourceEntry
from states.resources.digests import digests

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response

    from states.models.resources import ResourceEntryQuerySet


class OfAllStatesViewSet(ResourceViewSet[ResourceEntry]):
    """Resources of the current versions of all states within the caller's binding."""

    queryset = ResourceEntry.objects.with_names()
    serializer_class = ResourceEntrySerializer
    resource, resource_plural = "resource", "resources"
    moving_orders = ("id",)  # each indexed version has its own rows
    token_kinds = ACCESS_TOKENS

    def get_queryset(self) -> ResourceEntryQuerySet:
        resources: Any = super().get_queryset()
        inside: ResourceEntryQuerySet = resources.inside(caller_of(self.request).binding)
        return inside


@resources_schema
class ResourcesViewSet(OfAllStatesViewSet):
    filterset_class = ResourceFilters
    prepared = staticmethod(with_ids)
    searched_fields = ("mode",)
    required_scopes = {"list": Scope.STATE_READ}


@find_schema
class FindResourcesViewSet(OfAllStatesViewSet):
    """The search by identifier. It uses POST to keep the value out of logs."""

    filter_backends = ()
    required_scopes = {"find": Scope.STATE_READ}
    #: The digest of the search value. A page token is valid only for this value.
    page_scope = ""

    @action(detail=False, methods=["post"])
    def find(self, request: Request, **_path: str) -> Response:
        """Return the resources that the value identifies."""
        wanted = digests(self.read_options(FindSerializer)["value"])
        self.page_scope = wanted[0].hex
        found = self.get_queryset().identified_by(wanted)
        paginator: Any = self.paginator
        answer: Response = paginator.answer(found, request, self)
        return answer
