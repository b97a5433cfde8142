"""Workspaces: list, create, update, delete, tags, and locks.

The protocol has no lock ID. Only the token that acquired a lock can write and unlock.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.http import HttpResponse
from rest_framework.response import Response

from apikeys.actors import Actor
from apikeys.authentication import caller_of
from apikeys.scopes import Scope
from infra_service.lib.api import bodies
from infra_service.lib.api.jsonapi import (
    Identifier,
    InvalidAttribute,
    Page,
    Related,
    decoded_data,
    linked,
    read_data,
    resource,
)
from infra_service.lib.api.parameters import InvalidParameter
from infra_service.lib.uuids import uuid7
from states import addresses, lockinfo, workspaces
from states import workspace_lookup as lookup
from states import workspace_search as search
from states.actions import history, locks
from states.actions import workspaces as actions
from states.lockinfo import REMOTE, LockInfo
from states.remote import outputs
from states.remote.documents import holder_of, workspace_document
from states.remote.errors import LockedByOther, WorkspaceNotFound, WorkspaceNotLocked
from states.remote.views import RemoteViewSet
from states.targets import StateTarget
from states.workspace_lookup import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rest_framework.request import Request

_TAGGED: Final = re.compile(r"filter\[tagged\]\[(\d{1,3})\]\[(key|value)\]", re.ASCII)
_LONGEST_VALUE: Final = 256


class _Attributes(msgspec.Struct, rename="kebab"):
    """The attributes that the service supports. All other attributes concern runs."""

    name: str | None = None
    execution_mode: str | None = None
    operations: bool | None = None
    reason: str | None = None


class _Given(msgspec.Struct):
    attributes: _Attributes = msgspec.field(default_factory=_Attributes)
    relationships: dict[str, Related] = {}

    @property
    def tags(self) -> dict[str, str]:
        """Return the tags from both forms of the relationship."""
        related = (self.relationships.get(name) for name in ("tags", "tag-bindings"))
        return _tags(item for each in related if each is not None for item in each.many)


class WorkspaceViewSet(RemoteViewSet):
    """A workspace, by id or by organization and name, and the workspaces of an organization."""

    required_scopes = {
        "list": Scope.STATE_READ,
        "create": Scope.STATE_WRITE,
        "retrieve": None,
        "update": Scope.STATE_WRITE,
        "destroy": Scope.STATE_ADMIN,
        "tag_bindings": None,
        "bind_tags": Scope.STATE_WRITE,
        "add_tags": Scope.STATE_WRITE,
        "lock": Scope.STATE_WRITE,
        "unlock": Scope.STATE_WRITE,
        "force_unlock": Scope.STATE_ADMIN,
    }

    def list(self, request: Request, **_path: str) -> Response:
        """List the workspaces that match the search and tags, in the order of their slugs."""
        page = Page(request, "search[name]", "search[tags]", "filter[tagged]")
        states = search.in_organization(self.organization(), caller_of(request).binding)
        keys = [key for key in request.query_params.get("search[tags]", "").split(",") if key]
        states = search.tagged(states, keys, _pairs(request))
        if text := request.query_params.get("search[name]"):
            states = search.named(states, text)
        rows = lookup.rows_of(states).order_by(*search.ORDER)
        return page.answer(rows, lambda row: workspace_document(Workspace.of(row), request))

    def create(self, request: Request, **_path: str) -> Response:
        """Create a workspace, and register its component and environment if they are missing."""
        organization, binding = self.organization(), caller_of(request).binding
        given = _checked(read_data(request, _Given))
        name = given.attributes.name
        if name is None or not workspaces.is_name(name):
            raise InvalidAttribute(f"name: the name must be {workspaces.DESCRIPTION}.")
        names = lookup.names_at(organization, name)
        place = addresses.find_place(names)
        if not binding.allows_state(*place):
            raise WorkspaceNotFound
        target = StateTarget(
            component_id=place.component_id or uuid7(),
            environment_id=place.environment_id or uuid7(),
            names=names,
        )
        state = actions.create(target=target, name=name, tags=given.tags, actor=Actor.of(request))
        self.prefetched = lookup.by_state_id(state.pk)
        return self._answer(self.workspace(), 201)

    def retrieve(self, request: Request, **_path: str) -> Response:
        """Return the workspace, with its outputs if the request includes them (`tfe_outputs`)."""
        workspace = self.workspace()
        answer: dict[str, Any] = {"data": workspace_document(workspace, request)}
        if "outputs" in request.query_params.get("include", "").split(","):
            items = answer["included"] = outputs.included(workspace, request)
            related = [linked(item["type"], item["id"]) for item in items]
            answer["data"]["relationships"]["outputs"] = {"data": related}
        return Response(answer, headers=outputs.NO_STORE)

    def update(self, request: Request, **_path: str) -> Response:
        """Add tags. Other attributes concern runs and have no effect."""
        workspace, given = self.workspace(), _checked(read_data(request, _Given))
        if given.attributes.name not in (None, workspace.name):
            raise InvalidAttribute("name: rename the component or the environment instead.")
        return self._answer(self._tag(workspace, given.tags))

    def destroy(self, request: Request, **_path: str) -> HttpResponse:
        """Delete the workspace if its state has no resources."""
        target = self.workspace().target
        history.delete(target=target, actor=Actor.of(request), check=actions.check_empty)
        return HttpResponse(status=204)

    def tag_bindings(self, _request: Request, **_path: str) -> Response:
        """Return the tags."""
        return _bindings(self.workspace())

    def bind_tags(self, request: Request, **_path: str) -> Response:
        """Add tags, or change their values."""
        tags = _tags(read_data(request, list[Identifier]))
        return _bindings(self._tag(self.workspace(), tags))

    def add_tags(self, request: Request, **path: str) -> HttpResponse:
        """Add tags without values, for OpenTofu and older versions of Terraform."""
        self.bind_tags(request, **path)
        return HttpResponse(status=204)

    def lock(self, request: Request, **_path: str) -> Response:
        """Lock the workspace. Return 409 if it is already locked, even by the same token."""
        workspace, actor = self.workspace(), Actor.of(request)
        body = bodies.read_body(request._request, lockinfo.MAX_BYTES)
        reason = decoded_data(body, _Given).attributes.reason if body.strip() else None
        info = LockInfo.of_caller(
            actor.name,
            reason=reason or "",
            version=request.headers.get("Terraform-Version", ""),
            path=f"{workspace.organization}/{workspace.name}",
        )
        locks.lock(target=workspace.target, info=info, actor=actor, door=REMOTE)
        workspace.state.lock_id, workspace.state.lock_taken_by = info.uuid, {"name": actor.name}
        return self._answer(workspace)

    def unlock(self, request: Request, **_path: str) -> Response:
        """Release the lock that the same token acquired.

        Raises:
            WorkspaceNotLocked: the workspace is not locked.
            LockedByOther: another token or a client of the http backend acquired the lock.
        """
        workspace, actor = self._locked(), Actor.of(request)
        lock_id = locks.held_remotely_by(actor, workspace.state)
        if lock_id is None:
            raise LockedByOther(*holder_of(workspace))
        locks.unlock(target=workspace.target, lock_id=lock_id, actor=actor)
        workspace.state.lock_id = None
        return self._answer(workspace)

    def force_unlock(self, request: Request, **_path: str) -> Response:
        """Release the lock of any client.

        Raises:
            WorkspaceNotLocked: the workspace is not locked.
        """
        workspace, actor, reason = self._locked(), Actor.of(request), "terraform force-unlock"
        target, lock_id = workspace.target, workspace.state.lock_id
        locks.force_unlock(target=target, reason=reason, actor=actor, lock_id=lock_id)
        workspace.state.lock_id = None
        return self._answer(workspace)

    def _locked(self) -> Workspace:
        workspace = self.workspace()
        if workspace.state.lock_id is None:
            raise WorkspaceNotLocked
        return workspace

    def _answer(self, workspace: Workspace, status: int = 200) -> Response:
        return Response({"data": workspace_document(workspace, self.request)}, status)

    def _tag(self, workspace: Workspace, tags: dict[str, str]) -> Workspace:
        if tags:
            actor = Actor.of(self.request)
            state = actions.add_tags(target=workspace.target, tags=tags, actor=actor)
            workspace.state.workspace = state.workspace
        return workspace


def _checked(given: _Given) -> _Given:
    """Refuse a workspace whose operations would run on the server.

    Raises:
        InvalidAttribute: the execution mode is not ``local``.
    """
    if given.attributes.execution_mode not in (None, "local") or given.attributes.operations:
        raise InvalidAttribute("execution-mode: the service only supports local.")
    return given


def _bindings(workspace: Workspace) -> Response:
    items = [
        resource("tag-bindings", f"tb-{key}", {"key": key, "value": value})
        for key, value in sorted(workspace.tags.items())
    ]
    return Response({"data": items})


def _tags(items: Iterable[Identifier]) -> dict[str, str]:
    """Return the values of tags by key. A missing value becomes an empty string.

    Raises:
        InvalidAttribute: a tag has an invalid key, or a value that is too long.
    """
    tags = {}
    for item in items:
        key = item.attributes.get("key") or item.attributes.get("name")
        value = item.attributes.get("value") or ""
        if not isinstance(key, str) or not workspaces.is_tag_key(key):
            raise InvalidAttribute(f"The key of a tag must be {workspaces.TAG_KEY_DESCRIPTION}.")
        if not isinstance(value, str) or len(value) > _LONGEST_VALUE:
            raise InvalidAttribute(
                f"The value of a tag must have at most {_LONGEST_VALUE} characters."
            )
        tags[key] = value
    return tags


def _pairs(request: Request) -> list[tuple[str, str]]:
    """Return the keys and values of the tags that the list is filtered by.

    Raises:
        InvalidParameter: a parameter is malformed.
    """
    pairs: dict[str, dict[str, str]] = {}
    for name, part in request.query_params.items():
        if name.startswith("filter[tagged]"):
            if (found := _TAGGED.fullmatch(name)) is None:
                raise InvalidParameter(name[:64], "The list does not support this parameter.")
            pairs.setdefault(found[1], {})[found[2]] = str(part)
    return [(pair.get("key", ""), pair.get("value", "")) for pair in pairs.values()]
