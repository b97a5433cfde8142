"""Service discovery, the ping, organizations with their entitlements, and the account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from rest_framework.response import Response

from apikeys import terraform_login
from apikeys.authentication import caller_of
from apikeys.scopes import Scope
from infra_service.lib.api.jsonapi import MOST_LISTED, Page, page_of, read_data, resource
from states.models import Application
from states.remote.views import READERS, RemoteViewSet, demand_any

if TYPE_CHECKING:
    from rest_framework.request import Request

#: The names of the API's services, each with the prefix of the API.
_SERVICES: Final = dict.fromkeys(("state.v2", "tfe.v2", "tfe.v2.1", "tfe.v2.2"), "/api/v2/")
#: The `cloud` block requires at least 2.5.
_API_VERSION: Final = "2.6"


class _ProjectAttributes(msgspec.Struct):
    name: str


class _Project(msgspec.Struct):
    attributes: _ProjectAttributes


class PublicViewSet(RemoteViewSet):
    """Requests that a client sends before it has a token."""

    public = True
    authentication_classes = ()

    def discover(self, _request: Request) -> JsonResponse:
        """Return the services of the host, for Terraform's service discovery."""
        return JsonResponse({**_SERVICES, **terraform_login.services()})

    def ping(self, _request: Request) -> HttpResponse:
        """Return the API version in a header; go-tfe reads only the headers."""
        return HttpResponse(status=204, headers={"TFP-API-Version": _API_VERSION})

    def tokens_page(self, _request: Request) -> HttpResponse:
        """Redirect the browser that ``terraform login`` opens to the form for a new token."""
        return HttpResponseRedirect(reverse("admin:apikeys_accesstoken_add"))


class OrganizationViewSet(RemoteViewSet):
    """Organizations: one for each application, and one for components without an application."""

    required_scopes = {
        **dict.fromkeys(("list", "retrieve", "entitlements", "projects", "account")),
        "create_project": Scope.STATE_WRITE,
    }

    def list(self, request: Request) -> Response:
        """Return the configured organization and the applications.

        Raises:
            ScopeInsufficient: the token can neither read nor write states.
        """
        demand_any(request, *READERS)
        page, binding = Page(request), caller_of(request).binding
        slugs = Application.objects.inside(binding).filter(slug__isnull=False)
        others = slugs.exclude(slug=settings.REMOTE_ORGANIZATION).order_by("slug")
        names = [settings.REMOTE_ORGANIZATION, *others.values_list("slug", flat=True)[:MOST_LISTED]]
        start = (page.number - 1) * page.size
        items = [self._describe(name) for name in names[start : start + page.size]]
        return Response(page_of(items, number=page.number, size=page.size, total=len(names)))

    def retrieve(self, _request: Request, **_path: str) -> Response:
        """Return an organization."""
        return Response({"data": self._describe(self.organization())})

    def _describe(self, name: str) -> dict[str, Any]:
        writes = Scope.STATE_WRITE in caller_of(self.request).scopes
        permissions = {"can-create-workspace": writes, "can-traverse": True}
        attributes = {"name": name, "default-execution-mode": "local", "permissions": permissions}
        return resource("organizations", name, attributes)

    def entitlements(self, _request: Request, **_path: str) -> Response:
        """Return the entitlements. Without ``operations``, clients run operations locally."""
        attributes = {"operations": False, "state-storage": True}
        return Response({"data": resource("entitlement-sets", self.organization(), attributes)})

    def projects(self, _request: Request, **_path: str) -> Response:
        """Return an empty list of projects. ``project`` in a `cloud` block has no effect."""
        self.organization()
        return Response(page_of([], number=1, size=1, total=0))

    def create_project(self, request: Request, **_path: str) -> Response:
        """Return the project without storing it. Clients create it before a workspace."""
        self.organization()
        name = read_data(request, _Project).attributes.name
        return Response({"data": resource("projects", "prj-unused", {"name": name})}, 201)

    def account(self, request: Request) -> Response:
        """Return the owner of the token."""
        caller = caller_of(request)
        is_service = caller.kind.name == "SERVICE"
        attributes = {"username": caller.username, "is-service-account": is_service}
        return Response({"data": resource("users", str(caller.user_id), attributes)})
