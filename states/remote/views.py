"""Shared base of the remote backend's views: authentication, scopes, errors, pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rest_framework.viewsets import ViewSetMixin

from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS, demand_scope
from apikeys.scopes import Scope
from infra_service.lib.api import jsonapi
from states import workspace_lookup as lookup
from states.api.sending import DocumentAPIView
from states.remote.errors import OrganizationNotFound, RouteNotFound, WorkspaceNotFound
from states.workspace_lookup import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request
    from rest_framework.response import Response

    from infra_service.lib.database.compiled import Prefetch

#: A token requires one of these scopes to find an organization or a workspace.
READERS: Final = (Scope.STATE_READ, Scope.STATE_OUTPUTS, Scope.STATE_WRITE)


class RemoteViewSet(ViewSetMixin, DocumentAPIView):
    """A view whose requests and responses are JSON:API documents."""

    schema: Any = None  # the OpenAPI document describes the service's own API
    token_kinds = ACCESS_TOKENS
    http_method_names = ["get", "head", "post", "patch", "put", "delete"]
    # Errors about bodies are also JSON:API documents.
    reads_bodies_of = frozenset({"POST", "PATCH", "PUT", "DELETE"})
    #: The query for the workspace or version. It runs in the round trip that finds the caller.
    prefetched: Prefetch[Any] | None = None

    def get_exception_handler(self) -> Callable[..., Response | None]:
        return jsonapi.exception_handler

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002 - DRF's signature
        """Return the JSON:API renderer, even if the ``Accept`` header does not match."""
        return jsonapi.JsonApiRenderer(), jsonapi.MEDIA_TYPE

    def prefetch(self, request: Request) -> Prefetch[Any] | None:  # noqa: ARG002 - of all views
        """Return the query that ``TokenAuthentication`` adds to its own round trip."""
        if "workspace_id" in self.kwargs:
            self.prefetched = lookup.by_id(self.kwargs["workspace_id"])
        elif "name" in self.kwargs:
            self.prefetched = lookup.by_name(self.kwargs["organization"], self.kwargs["name"])
        return self.prefetched

    def workspace(self) -> Workspace:
        """Return the workspace of the path, which the token's binding must include.

        Raises:
            ScopeInsufficient: the token can neither read nor write states.
            WorkspaceNotFound: the workspace does not exist, has another name, or is outside the
                binding.
        """
        demand_any(self.request, *READERS)
        row = None if self.prefetched is None else self.prefetched.row()
        found = None if row is None else Workspace.of(row)
        if found is None or not found.is_inside(caller_of(self.request).binding):
            raise WorkspaceNotFound
        # Different names can yield the same slugs, so a stored name must match exactly.
        if found.stored_name and self.kwargs.get("name", found.name) != found.name:
            raise WorkspaceNotFound
        return found

    def organization(self) -> str:
        """Return the organization of the path, if the caller can see it.

        Raises:
            ScopeInsufficient: the token can neither read nor write states.
            OrganizationNotFound: the organization does not exist, or is outside the binding.
        """
        demand_any(self.request, *READERS)
        name: str = self.kwargs["organization"]
        if not lookup.organization_exists(name, caller_of(self.request).binding):
            raise OrganizationNotFound
        return name


class MissingView(RemoteViewSet):
    """The view of all unknown routes of the API."""

    public = True
    authentication_classes = ()
    reads_bodies_of = frozenset()

    def refuse(self, _request: Request, **_path: str) -> Response:
        """Refuse the request.

        Raises:
            RouteNotFound: always.
        """
        raise RouteNotFound


def demand_any(request: Request, *scopes: Scope) -> None:
    """Require one of the scopes.

    Raises:
        ScopeInsufficient: the token has none of the scopes; the error names the first scope.
    """
    if not caller_of(request).scopes.intersection(scopes):
        demand_scope(request, scopes[0])
