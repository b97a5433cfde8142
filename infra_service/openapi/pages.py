"""The OpenAPI 3.1 document of the API, and Swagger UI. Both are public and contain no data."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.views import APIView

from apikeys.tokens import TokenKind
from infra_service.lib.api.openapi_words import Named, answer_example
from infra_service.openapi.components import lift

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.renderers import BaseRenderer
    from rest_framework.request import Request
    from rest_framework.response import Response

_OPENAPI_METHODS: Final = {"GET", "POST", "PUT", "PATCH", "DELETE"}

_SCHEMES: Final = {
    "apiKey": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "isk_…",
        "description": "An API key.",
    },
    "accessToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "isp_… or iss_…",
        "description": "A personal or service access token, minted from an API key, or issued by "
        "an operator or a trust policy. Only minted tokens can manage keys and tokens.",
    },
    "accessTokenAsPassword": {
        "type": "http",
        "scheme": "basic",
        "description": "An access token as the password, with any user name, for Terraform's http "
        "backend, which supports only HTTP Basic.",
    },
}

_DOCUMENT: Final = Named(
    "OpenApiDocument",
    {
        "type": "object",
        "description": "This OpenAPI 3.1 document.",
        "additionalProperties": True,
    },
)

Endpoint = tuple[str, str, str, "Callable[..., Any]"]


def describable(endpoints: list[Endpoint]) -> list[Endpoint]:
    """Return the endpoints that OpenAPI can describe, without trailing slashes and escapes.

    OpenAPI cannot describe LOCK and UNLOCK. The endpoint ``…/lock`` documents them.
    """
    return [
        (path.rstrip("/").replace("\\.", "."), regex, method, view)
        for path, regex, method, view in endpoints
        if method in _OPENAPI_METHODS
    ]


class TokenSchemes(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call,misc,unused-ignore]
    """The security schemes, and the schemes and scopes of each operation."""

    target_class = "apikeys.authentication.TokenAuthentication"
    name = list(_SCHEMES)

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:  # noqa: ARG002 - the extension's signature
        return list(_SCHEMES.values())

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        """Return the alternative schemes, each with the scope that the view declares."""
        view = auto_schema.view
        door = getattr(view, "action", None) or view.request.method
        scope = view.required_scopes[door]
        schemes = []
        if TokenKind.API_KEY in view.token_kinds:
            schemes.append("apiKey")
        schemes.append("accessToken")
        if getattr(view, "accepts_basic", False):
            schemes.append("accessTokenAsPassword")
        return [{scheme: [] if scope is None else [scope.value]} for scheme in schemes]


class DescribedSeconds(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call,misc,unused-ignore]
    """The schema of a duration."""

    target_class = "infra_service.lib.api.fields.SecondsField"

    def map_serializer_field(self, auto_schema: Any, direction: str) -> dict[str, Any]:  # noqa: ARG002 - the extension's signature
        """Return the schema of a duration as a string or as a number."""
        least, most = (
            int(bound.total_seconds()) for bound in (self.target.minimum, self.target.maximum)
        )
        forms = [
            {"type": "string", "pattern": r"^\d{1,9}(\.\d{1,9})?s$"},
            {"type": "integer", "minimum": least, "maximum": most},
        ]
        name = self.target.field_name.title().replace("_", "")
        text = "Seconds, as a string with the unit, such as '3600s', or as a number."
        described = Named(name, {"oneOf": forms, "description": text})
        named: dict[str, Any] = lift(described, auto_schema.registry)
        return named


# The cache alone would let concurrent first requests each generate the document.
_one_at_a_time: Final = threading.Lock()


@functools.cache
def _written(renderer: type[BaseRenderer]) -> bytes:
    """Return the rendered document, cached because generation takes a second."""
    document = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
    written: Any = renderer().render(document, renderer.media_type, {})
    return bytes(written)


class SchemaView(APIView):
    """The OpenAPI 3.1 description of this API."""

    public = True
    authentication_classes = ()
    http_method_names = ["get", "head"]
    renderer_classes = (
        OpenApiYamlRenderer,
        OpenApiYamlRenderer2,
        OpenApiJsonRenderer,
        OpenApiJsonRenderer2,
    )

    @extend_schema(
        operation_id="read_openapi",
        summary="Read this document",
        responses={(200, renderer.media_type): _DOCUMENT for renderer in renderer_classes},
        examples=[answer_example({"openapi": "3.1.0", "info": {"title": "…"}, "paths": {}})],
    )
    def get(self, request: Request) -> HttpResponse:
        """Return this document in YAML or JSON, depending on `Accept`."""
        renderer = type(request.accepted_renderer)
        with _one_at_a_time:
            content = _written(renderer)  # type: ignore[arg-type]  # a class is hashable
        return HttpResponse(content, renderer.media_type)


class SwaggerView(SpectacularSwaggerSplitView):
    """Swagger UI for the document, from local files without inline scripts."""

    public = True
    authentication_classes = ()
    http_method_names = ["get", "head"]
    template_name = "docs/swagger.html"

    @extend_schema(
        operation_id="browse_openapi",
        summary="Browse this document",
        responses={(200, "text/html"): OpenApiTypes.STR},
        examples=[answer_example("<!DOCTYPE html>…")],
    )
    def get(self, *args: Any, **kwargs: Any) -> Response:
        """Return a page that shows this document and sends requests. It loads local files only."""
        answer: Response = super().get(*args, **kwargs)  # type: ignore[no-untyped-call]
        return answer
