"""The API's description and its browsable form, open to everybody: they hold no data."""

from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView


class SchemaView(SpectacularAPIView):
    """The OpenAPI 3.1 description of this API."""

    public = True
    authentication_classes = ()


class SwaggerView(SpectacularSwaggerView):
    """Swagger UI over that description, from local files."""

    public = True
    authentication_classes = ()
