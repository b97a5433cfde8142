"""The lag of the resource index, and the states that cannot be indexed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.decorators import action
from rest_framework.response import Response

from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from infra_service.lib.api.pagination import PageRequest
from infra_service.lib.api.viewsets import ResourceViewSet
from states import index_lag
from states.api.answers import ResourceIndex, ResourceIndexAnswer, UnreadableState
from states.api.resources_openapi import index_schema
from states.models import State

if TYPE_CHECKING:
    from rest_framework.request import Request


@index_schema
class ResourceIndexViewSet(ResourceViewSet[State]):
    """The resource index, limited to the states within the caller's binding."""

    queryset = State.objects.with_names()
    filter_backends = ()
    token_kinds = ACCESS_TOKENS
    required_scopes = {"show": Scope.STATE_READ}

    @action(detail=False)
    def show(self, request: Request, **_path: str) -> Response:
        """Return the number of waiting states, their lag, and a page of the unreadable states."""
        page_request = PageRequest.read(request, self, {1})
        states = State.objects.inside(caller_of(request).binding)
        page, token = page_request.page_by("pk", states.unreadable().with_names())
        behind = index_lag.lag_of(states)
        index = ResourceIndex(
            waiting=behind.waiting,
            waiting_is_exact=behind.is_exact,
            oldest_waiting_seconds=round(behind.oldest_seconds, 3),
            unreadable=[_unreadable(state) for state in page],
        )
        return Response(ResourceIndexAnswer(resource_index=index, next_page_token=token))


def _unreadable(state: Any) -> UnreadableState:
    return UnreadableState(
        state_id=state.pk,
        component_id=state.component_id,
        component_slug=state.component_slug,
        environment_id=state.environment_id,
        environment_slug=state.environment_slug,
        version_number=state.indexed_number,
        problem=state.index_problem,
    )
