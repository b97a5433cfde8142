"""Dependencies between states, in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from rest_framework.decorators import action
from rest_framework.response import Response

from apikeys.authentication import caller_of
from apikeys.scopes import Scope
from infra_service.lib.api.pagination import PageRequest
from states.api.answers import DependencyPage, OtherState, StateRead, StateReader
from states.api.dependencies_openapi import dependencies_schema
from states.api.versions import OfStateViewSet
from states.dependencies import dependencies_of

if TYPE_CHECKING:
    from rest_framework.request import Request

    from states.models import State


@dependencies_schema
class DependenciesViewSet(OfStateViewSet):
    """Dependencies in both directions, limited to the states within the caller's binding."""

    required_scopes = {"dependencies": Scope.STATE_READ}

    @action(detail=True)
    def dependencies(self, request: Request, **_path: str) -> Response:
        """List the states that the state reads, then the states that read it."""
        page_request = PageRequest.read(request, self, {2})
        found = dependencies_of(
            self.state(),
            caller_of(request).binding,
            size=page_request.size,
            position=page_request.position,
        )
        return Response(
            DependencyPage(
                reads=[
                    StateRead(
                        address=each.found.address,
                        backend=each.found.backend,
                        location=each.found.location,
                        state=each.state and _shown(each.state),
                    )
                    for each in found.reads
                ],
                read_by=[
                    StateReader(address=each.found.address, state=_shown(each.state))
                    for each in found.read_by
                ],
                next_page_token=page_request.token(*found.position) if found.position else "",
            )
        )


def _shown(state: State) -> OtherState:
    return msgspec.convert(state, OtherState, from_attributes=True)
