"""Workspaces and state versions as resource objects of JSON:API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.urls import reverse

from apikeys.authentication import caller_of
from apikeys.scopes import Scope
from infra_service.lib.api.jsonapi import linked, resource
from states import workspace_lookup as lookup
from states.lockinfo import HTTP

if TYPE_CHECKING:
    import datetime as dt

    from rest_framework.request import Request

    from states.workspace_lookup import Version, Workspace


def time_of(moment: dt.datetime) -> str:
    """Return a time in the only form that go-tfe reads."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def url_of(request: Request, name: str, **arguments: str) -> str:
    """Return the absolute URL of a route."""
    url: str = request.build_absolute_uri(reverse(f"remote-{name}", kwargs=arguments))
    return url


def holder_of(workspace: Workspace) -> tuple[str, str]:
    """Return the owner of the lock, and the backend through which the client acquired it."""
    taken_by = workspace.state.lock_taken_by or {}
    return taken_by.get("name") or "unknown", taken_by.get("door", HTTP)


def workspace_document(workspace: Workspace, request: Request) -> dict[str, Any]:
    """Return a workspace as a resource object, with the permissions of the caller."""
    state, scopes = workspace.state, caller_of(request).scopes
    reads, writes, administers = (
        scope in scopes for scope in (Scope.STATE_READ, Scope.STATE_WRITE, Scope.STATE_ADMIN)
    )
    is_locked, current_id = state.lock_id is not None, workspace.version_id
    attributes = {
        "name": workspace.name,
        "locked": is_locked,
        # The client runs operations locally, and can have any version.
        "execution-mode": "local",
        "operations": False,
        "terraform-version": "latest",
        "created-at": time_of(state.created_at),
        "updated-at": time_of(state.updated_at),
        "tag-names": sorted(workspace.tags),
        "permissions": {
            **dict.fromkeys(("can-lock", "can-unlock", "can-update"), writes),
            **dict.fromkeys(("can-destroy", "can-force-delete", "can-force-unlock"), administers),
            "can-create-state-versions": writes,
            "can-read-settings": True,
            "can-read-state-outputs": reads or Scope.STATE_OUTPUTS in scopes,
            "can-read-state-versions": reads,
        },
    }
    return resource(
        "workspaces",
        lookup.workspace_id(state.pk),
        attributes,
        organization=linked("organizations", workspace.organization),
        current_state_version=None
        if current_id is None
        else linked("state-versions", lookup.version_id(current_id)),
        locked_by=linked("users", holder_of(workspace)[0]) if is_locked else None,
    )


def version_document(version: Version, request: Request) -> dict[str, Any]:
    """Return a stored version as a resource object."""
    id_ = lookup.version_id(version.id)
    attributes = {
        "status": "finalized",
        "resources-processed": True,
        "created-at": time_of(version.created_at),
        "serial": version.serial,
        "lineage": version.lineage,
        "size": version.size_bytes,
        "hosted-state-download-url": url_of(request, "download", version_id=id_),
    }
    return resource(
        "state-versions",
        id_,
        attributes,
        workspace=linked("workspaces", lookup.workspace_id(version.state_id)),
        created_by=linked("users", version.created_by),
    )
