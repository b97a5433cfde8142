"""The API's description (OpenAPI 3.1) and its browsable form; both hold no data and are open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

if TYPE_CHECKING:
    from collections.abc import Callable

_OPENAPI_METHODS: Final = {"GET", "POST", "PUT", "PATCH", "DELETE"}

Endpoint = tuple[str, str, str, "Callable[..., Any]"]


def describable(endpoints: list[Endpoint]) -> list[Endpoint]:
    """Return what OpenAPI can describe, each path without its optional final slash.

    LOCK and UNLOCK have no place in OpenAPI; ``…/lock`` describes what they do.
    """
    return [
        (path.rstrip("/"), regex, method, view)
        for path, regex, method, view in endpoints
        if method in _OPENAPI_METHODS
    ]


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call,misc,unused-ignore]
    """How the bearer token is described."""

    target_class = "apikeys.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:  # noqa: ARG002 - the extension's signature
        """Return the OpenAPI security scheme."""
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key (`isk_`), a personal (`isp_`) or a service (`iss_`) access "
            "token. On the state backend it may also be the password of HTTP Basic.",
        }


class SchemaView(SpectacularAPIView):
    """The OpenAPI 3.1 description of this API."""

    public = True
    authentication_classes = ()


class SwaggerView(SpectacularSwaggerView):
    """Swagger UI over that description, from local files."""

    public = True
    authentication_classes = ()
