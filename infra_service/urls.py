"""The URLs of the service. Each matches with and without a trailing slash, without redirects."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path

from infra_service.console.home import AdminRedirectView, HomeView
from infra_service.mcp.views import McpView
from infra_service.openapi.pages import SchemaView, SwaggerView
from infra_service.operations.health import HealthView, ReadyView
from infra_service.operations.metrics import MetricsView

handler400 = "infra_service.lib.api.handlers.bad_request"
handler403 = "infra_service.lib.api.handlers.permission_denied"
handler404 = "infra_service.lib.api.handlers.not_found"
handler500 = "infra_service.lib.api.handlers.server_error"

admin.autodiscover()

_REMOTE = [path("", include("states.remote.urls"))] if settings.REMOTE_BACKEND else []

urlpatterns = [
    # Ordered by frequency of use, because Django tries the patterns in this order.
    path("api/v1/", include("states.urls")),
    path("api/v1/", include("workloads.urls")),
    path("api/v1/", include("infra_service.change_history.urls")),
    path("api/v1/", include("infra_service.webhooks.urls")),
    path("", include("apikeys.urls")),
    re_path(r"^mcp/?$", McpView.as_view(), name="mcp"),
    *_REMOTE,
    re_path(r"^healthz/?$", HealthView.as_view(), name="healthz"),
    re_path(r"^readyz/?$", ReadyView.as_view(), name="readyz"),
    re_path(r"^metrics/?$", MetricsView.as_view(), name="metrics"),
    re_path(r"^api/schema/?$", SchemaView.as_view(), name="schema"),
    re_path(r"^api/docs/?$", SwaggerView.as_view(), name="docs"),
    path("admin/", admin.site.urls),
    # Only the pages of the admin need the slash.
    path("admin", AdminRedirectView.as_view(), name="admin-redirect"),
    path("", HomeView.as_view(), name="home"),
]
