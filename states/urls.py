from typing import Any

from django.urls import URLPattern, include, path, re_path

from infra_service.lib.api.viewsets import ResourceRouter
from states.api.backend import OutputsBackendView, StateBackendView, StateLockView
from states.api.catalogue import ApplicationViewSet, ComponentViewSet, EnvironmentViewSet
from states.api.counts import (
    EnginesViewSet,
    ProvidersViewSet,
    ResourceTypesViewSet,
    TerraformVersionsViewSet,
)
from states.api.dependencies import DependenciesViewSet
from states.api.facts import FactsViewSet
from states.api.named import (
    NoAddressView,
    OutputsAtView,
    OutputsInApplicationView,
    StateAtView,
    StateInApplicationView,
    StateLockAtView,
    StateLockInApplicationView,
)
from states.api.resource_index import ResourceIndexViewSet
from states.api.resources import FindResourcesViewSet, ResourcesViewSet
from states.api.states import StateViewSet
from states.api.versions import ContentsViewSet, OutputsDocumentViewSet, VersionViewSet

_KEY = r"state/(?P<component_id>[^/]+)/env/(?P<environment_id>[^/]+)"
_AT = r"state/at/(?P<component>[^/]+)/(?P<environment>[^/]+)"
_IN = r"state/at/(?P<application>[^/]+)/(?P<component>[^/]+)/(?P<environment>[^/]+)"
_OUTPUTS = r"/outputs\.tfstate"

_OF_STATE = r"states/(?P<state_id>[^/:]+)"
_VERSION = _OF_STATE + r"/versions/(?P<number>[^/:]+)"

router = ResourceRouter()
router.register("states", StateViewSet, basename="state")
router.register("applications", ApplicationViewSet, basename="application")
router.register("components", ComponentViewSet, basename="component")
router.register("environments", EnvironmentViewSet, basename="environment")


def _route(address: str, view: Any, name: str, **actions: str) -> URLPattern:
    """Return a route of a view, or of the actions of a viewset by method.

    The route accepts a trailing slash, because a redirect would lose a pushed document.
    """
    handler = view.as_view(actions) if actions else view.as_view()
    route: URLPattern = re_path(rf"^{address}/?$", handler, name=name)
    return route


urlpatterns = [
    # These routes precede the routes that would match `outputs.tfstate` as an environment. A slug
    # cannot contain a dot.
    _route(_AT + _OUTPUTS, OutputsAtView, "state-outputs-at"),
    _route(_IN + _OUTPUTS, OutputsInApplicationView, "state-outputs-in-application"),
    # An environment cannot have the slug "lock".
    _route(_AT, StateAtView, "state-at"),
    _route(_AT + "/lock", StateLockAtView, "state-lock-at"),
    _route(_IN, StateInApplicationView, "state-in-application"),
    _route(_IN + "/lock", StateLockInApplicationView, "state-lock-in-application"),
    re_path(r"^state/at(?P<path>(?s:/.*)?)$", NoAddressView.as_view(), name="state-no-address"),
    _route(_KEY, StateBackendView, "state-backend"),
    _route(_KEY + "/lock", StateLockView, "state-lock"),
    _route(_KEY + _OUTPUTS, OutputsBackendView, "state-outputs-backend"),
    path("", include(router.urls)),
    _route("resources", ResourcesViewSet, "resource-list", get="list"),
    _route("resources:find", FindResourcesViewSet, "resource-find", post="find"),
    _route("providers", ProvidersViewSet, "provider-counts", get="count"),
    _route("resource-types", ResourceTypesViewSet, "resource-type-counts", get="count"),
    _route("terraform-versions", TerraformVersionsViewSet, "terraform-version-counts", get="count"),
    _route("engines", EnginesViewSet, "engine-counts", get="count"),
    _route("resource-index", ResourceIndexViewSet, "resource-index", get="show"),
    _route(_OF_STATE + "/versions", VersionViewSet, "version-list", get="list"),
    _route(_VERSION, VersionViewSet, "version", get="retrieve"),
    _route(_VERSION + "/document", VersionViewSet, "version-document", get="document"),
    _route(_VERSION + "/diff", VersionViewSet, "version-diff", get="diff"),
    _route(_VERSION + "/facts", FactsViewSet, "version-facts", get="retrieve", put="update"),
    _route(_VERSION + ":restore", VersionViewSet, "version-restore", post="restore"),
    _route(_OF_STATE + "/outputs", ContentsViewSet, "state-outputs", get="outputs"),
    _route(_OF_STATE + "/resources", ContentsViewSet, "state-resources", get="resources"),
    _route(
        _OF_STATE + "/dependencies", DependenciesViewSet, "state-dependencies", get="dependencies"
    ),
    _route(
        _OF_STATE + _OUTPUTS,
        OutputsDocumentViewSet,
        "state-outputs-document",
        get="outputs_document",
    ),
]
