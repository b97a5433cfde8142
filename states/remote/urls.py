"""Routes of the remote backend; the project includes them if ``REMOTE_BACKEND`` is set."""

from typing import Any

from django.urls import re_path

from states.remote import organizations, outputs, state_versions, workspaces
from states.remote.views import MissingView

_ORGANIZATION = r"organizations/(?P<organization>[^/]+)"
_BY_NAME = _ORGANIZATION + r"/workspaces/(?P<name>[^/]+)"
_BY_ID = r"workspaces/(?P<workspace_id>[^/]+)"
_VERSION = r"state-versions/(?P<version_id>[^/]+)"
_WORKSPACE = {"get": "retrieve", "patch": "update", "delete": "destroy"}

_PUBLIC, _ORGANIZATIONS = organizations.PublicViewSet, organizations.OrganizationViewSet
_WORKSPACES, _VERSIONS = workspaces.WorkspaceViewSet, state_versions.VersionViewSet
_NEW, _UPLOADS = state_versions.NewVersionViewSet, state_versions.UploadViewSet
_JSON, _OUTPUTS = state_versions.JsonUploadViewSet, outputs.OutputViewSet
_PROJECTS = {"get": "projects", "post": "create_project"}
_TAGS = {"get": "tag_bindings", "patch": "bind_tags"}

#: The routes under /api/v2/: path, name, view, and the action of each method.
ROUTES: tuple[tuple[str, str, Any, dict[str, str]], ...] = (
    (r"ping", "ping", _PUBLIC, {"get": "ping"}),
    (r"account/details", "account", _ORGANIZATIONS, {"get": "account"}),
    (r"organizations", "organizations", _ORGANIZATIONS, {"get": "list"}),
    (_ORGANIZATION, "organization", _ORGANIZATIONS, {"get": "retrieve"}),
    (_ORGANIZATION + "/entitlement-set", "entitlements", _ORGANIZATIONS, {"get": "entitlements"}),
    (_ORGANIZATION + "/projects", "projects", _ORGANIZATIONS, _PROJECTS),
    (_ORGANIZATION + "/workspaces", "workspaces", _WORKSPACES, {"get": "list", "post": "create"}),
    (_BY_NAME, "workspace-by-name", _WORKSPACES, _WORKSPACE),
    (_BY_NAME + "/actions/safe-delete", "safe-delete-by-name", _WORKSPACES, {"post": "destroy"}),
    (_BY_ID, "workspace", _WORKSPACES, _WORKSPACE),
    (_BY_ID + "/actions/safe-delete", "safe-delete", _WORKSPACES, {"post": "destroy"}),
    (_BY_ID + "/actions/lock", "lock", _WORKSPACES, {"post": "lock"}),
    (_BY_ID + "/actions/unlock", "unlock", _WORKSPACES, {"post": "unlock"}),
    (_BY_ID + "/actions/force-unlock", "force-unlock", _WORKSPACES, {"post": "force_unlock"}),
    (_BY_ID + "/tag-bindings", "tag-bindings", _WORKSPACES, _TAGS),
    (_BY_ID + "/relationships/tags", "tags", _WORKSPACES, {"post": "add_tags"}),
    (_BY_ID + "/state-versions", "new-version", _NEW, {"post": "create"}),
    (_BY_ID + "/current-state-version", "current-version", _NEW, {"get": "current"}),
    (_BY_ID + "/current-state-version-outputs", "outputs", _OUTPUTS, {"get": "current"}),
    (r"state-versions", "versions", _VERSIONS, {"get": "list"}),
    (r"state-versions/upload", "upload", _UPLOADS, {"put": "document"}),
    (r"state-versions/json-upload", "json-upload", _JSON, {"put": "drop"}),
    (_VERSION, "version", _VERSIONS, {"get": "retrieve"}),
    (_VERSION + "/download", "download", _VERSIONS, {"get": "download"}),
    (_VERSION + "/outputs", "version-outputs", _OUTPUTS, {"get": "list"}),
    (r"state-version-outputs/(?P<output_id>[^/]+)", "output", _OUTPUTS, {"get": "retrieve"}),
)

urlpatterns = [
    re_path(
        r"^\.well-known/terraform\.json$",
        _PUBLIC.as_view({"get": "discover"}),
        name="remote-discovery",
    ),
    re_path(
        r"^app/settings/tokens/?$", _PUBLIC.as_view({"get": "tokens_page"}), name="remote-tokens"
    ),
    *(
        # Each route accepts a trailing slash, because a redirect would lose a pushed document.
        re_path(rf"^api/v2/{path}/?$", view.as_view(actions), name=f"remote-{name}")
        for path, name, view, actions in ROUTES
    ),
    re_path(
        r"^api/v2(?:/.*)?$",
        MissingView.as_view(dict.fromkeys(("get", "post", "patch", "put", "delete"), "refuse")),
        name="remote-missing",
    ),
]
