"""The home page ``/``: links to the parts of the service, as HTML or JSON."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

from infra_service.lib.api.rendering import JsonRenderer

_PLACES = {
    "service": "infra-service",
    "admin": "/admin/",
    "api_docs": "/api/docs/",
    "openapi": "/api/schema",
    "ready": "/readyz",
}


class HomeView(APIView):
    """Links to all parts of the service, without queries or stored data."""

    public = True
    authentication_classes = ()
    http_method_names = ["get", "head"]
    renderer_classes = (JsonRenderer, TemplateHTMLRenderer)

    @extend_schema(exclude=True)  # not part of the API
    def get(self, _request: object) -> HttpResponse:
        """Return links to the admin and the API documentation."""
        documentation = {"docs": "/docs/"} if settings.WHITENOISE_ROOT else {}
        return Response(_PLACES | documentation, template_name="home.html")


class AdminRedirectView(HomeView):
    """A redirect from ``/admin``, which people type, to the admin."""

    @extend_schema(exclude=True)
    def get(self, _request: object) -> HttpResponseRedirect:
        """Redirect to the admin."""
        return HttpResponseRedirect(reverse("admin:index"))
