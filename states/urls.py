from django.urls import include, path, re_path

from apikeys.resources import ResourceRouter
from states.resources import (
    ApplicationViewSet,
    ComponentViewSet,
    EnvironmentViewSet,
    StateViewSet,
)
from states.views import StateBackendView, StateLockView

_KEY = r"^state/(?P<component_id>[^/]+)/env/(?P<environment_id>[^/]+)"

router = ResourceRouter()
router.register("applications", ApplicationViewSet, basename="application")
router.register("components", ComponentViewSet, basename="component")
router.register("environments", EnvironmentViewSet, basename="environment")

urlpatterns = [
    # With and without a final slash: a redirect would lose the state.
    re_path(_KEY + r"/?$", StateBackendView.as_view(), name="state-backend"),
    re_path(_KEY + r"/lock/?$", StateLockView.as_view(), name="state-lock"),
    re_path(r"^states/?$", StateViewSet.as_view({"get": "list"}), name="state-list"),
    path("", include(router.urls)),
]
