from django.urls import include, path, re_path

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

_KEY = r"^state/(?P<component_id>[^/]+)/env/(?P<environment_id>[^/]+)"
_AT = r"^state/at/(?P<component>[^/]+)/(?P<environment>[^/]+)"
_IN = r"^state/at/(?P<application>[^/]+)/(?P<component>[^/]+)/(?P<environment>[^/]+)"

_OF_STATE = r"^states/(?P<state_id>[^/:]+)"
_VERSION = _OF_STATE + r"/versions/(?P<number>[^/:]+)"

router = ResourceRouter()
router.register("states", StateViewSet, basename="state")
router.register("applications", ApplicationViewSet, basename="application")
router.register("components", ComponentViewSet, basename="component")
router.register("environments", EnvironmentViewSet, basename="environment")

urlpatterns = [
    # These routes precede the routes that would match `outputs.tfstate` as an environment. A slug
    # cannot contain a dot.
    re_path(
        _AT + r"/outputs\.tfstate/?$",
        OutputsAtView.as_view(),
        name="state-outputs-at",
    ),
    re_path(
        _IN + r"/outputs\.tfstate/?$",
        OutputsInApplicationView.as_view(),
        name="state-outputs-in-application",
    ),
    # Each route accepts a trailing slash, because a redirect would lose a pushed document. An
    # environment cannot have the slug "lock".
    re_path(_AT + r"/?$", StateAtView.as_view(), name="state-at"),
    re_path(_AT + r"/lock/?$", StateLockAtView.as_view(), name="state-lock-at"),
    re_path(_IN + r"/?$", StateInApplicationView.as_view(), name="state-in-application"),
    re_path(
        _IN + r"/lock/?$", StateLockInApplicationView.as_view(), name="state-lock-in-application"
    ),
    re_path(r"^state/at(?P<path>(?s:/.*)?)$", NoAddressView.as_view(), name="state-no-address"),
    re_path(_KEY + r"/?$", StateBackendView.as_view(), name="state-backend"),
    re_path(_KEY + r"/lock/?$", StateLockView.as_view(), name="state-lock"),
    re_path(
        _KEY + r"/outputs\.tfstate/?$",
        OutputsBackendView.as_view(),
        name="state-outputs-backend",
    ),
    path("", include(router.urls)),
    re_path(r"^resources/?$", ResourcesViewSet.as_view({"get": "list"}), name="resource-list"),
    re_path(
        r"^resources:find/?$",
        FindResourcesViewSet.as_view({"post": "find"}),
        name="resource-find",
    ),
    re_path(r"^providers/?$", ProvidersViewSet.as_view({"get": "count"}), name="provider-counts"),
    re_path(
        r"^resource-types/?$",
        ResourceTypesViewSet.as_view({"get": "count"}),
        name="resource-type-counts",
    ),
    re_path(
        r"^terraform-versions/?$",
        TerraformVersionsViewSet.as_view({"get": "count"}),
        name="terraform-version-counts",
    ),
    re_path(r"^engines/?$", EnginesViewSet.as_view({"get": "count"}), name="engine-counts"),
    re_path(
        r"^resource-index/?$",
        ResourceIndexViewSet.as_view({"get": "show"}),
        name="resource-index",
    ),
    re_path(
        _OF_STATE + r"/versions/?$", VersionViewSet.as_view({"get": "list"}), name="version-list"
    ),
    re_path(_VERSION + r"/?$", VersionViewSet.as_view({"get": "retrieve"}), name="version"),
    re_path(
        _VERSION + r"/document/?$",
        VersionViewSet.as_view({"get": "document"}),
        name="version-document",
    ),
    re_path(_VERSION + r"/diff/?$", VersionViewSet.as_view({"get": "diff"}), name="version-diff"),
    re_path(
        _VERSION + r"/facts/?$",
        FactsViewSet.as_view({"get": "retrieve", "put": "update"}),
        name="version-facts",
    ),
    re_path(
        _VERSION + r":restore/?$",
        VersionViewSet.as_view({"post": "restore"}),
        name="version-restore",
    ),
    re_path(
        _OF_STATE + r"/outputs/?$",
        ContentsViewSet.as_view({"get": "outputs"}),
        name="state-outputs",
    ),
    re_path(
        _OF_STATE + r"/resources/?$",
        ContentsViewSet.as_view({"get": "resources"}),
        name="state-resources",
    ),
    re_path(
        _OF_STATE + r"/dependencies/?$",
        DependenciesViewSet.as_view({"get": "dependencies"}),
        name="state-dependencies",
    ),
    re_path(
        _OF_STATE + r"/outputs\.tfstate/?$",
        OutputsDocumentViewSet.as_view({"get": "outputs_document"}),
        name="state-outputs-document",
    ),
]
