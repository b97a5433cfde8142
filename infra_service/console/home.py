"""``/``: a page for people who come with a browser, and the same links for programs."""

from __future__ import annotations

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
    """Links to everything. The page makes no query, and tells nothing of what is stored."""

    public = True
    authentication_classes = ()
    http_method_names = ["get", "head"]
    renderer_classes = (JsonRenderer, TemplateHTMLRenderer)

    @extend_schema(exclude=True)  # it leads to the document, and is no part of the API
    def get(self, _request: object) -> Response:
        """Return where the admin and the API's description are; a browser gets a page."""
        return Response(_PLACES, template_name="home.html")
