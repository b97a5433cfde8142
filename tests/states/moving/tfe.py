"""HCP Terraform's state API as documented, on loopback.

Downloads come from another service, whose address itself grants access. OTF, in the same place, has
no related resources and serves downloads itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.states.moving.replay import Replay, Reply, Request

TOKEN = "atlasv1-secret"
ORGANIZATION = "acme"
NOT_FOUND = Reply(404, {"errors": [{"status": "404", "title": "not found"}]})


@dataclass
class Workspace:
    """A workspace, with its documents from the oldest on."""

    name: str
    documents: list[bytes]
    locked_by: str | None = None
    statuses: list[str] | None = None
    tags: dict[str, str] = field(default_factory=dict)


@dataclass
class TfeService:
    workspaces: list[Workspace]
    is_otf: bool = False
    gives_documents: bool = True
    archivist: Replay | None = None

    def answer(self, request: Request) -> Reply:
        if request.token != TOKEN:
            return Reply(401, {"errors": [{"status": "401", "title": "unauthorized"}]})
        match request.path.removeprefix("/api/v2/").split("/"):
            case ["organizations", name, "workspaces"] if name == ORGANIZATION:
                shown = [self._workspace(one) for one in self.workspaces]
                users = [one.locked_by for one in self.workspaces if one.locked_by]
                return self._page(shown, users, request)
            case ["workspaces", id_, "tag-bindings"] if not self.is_otf:
                return self._bindings(id_)
            case ["state-versions"]:
                return self._versions(request)
            case ["state-versions", version_id, "download"]:
                return self._download(version_id)
        return NOT_FOUND

    def _bindings(self, workspace_id: str) -> Reply:
        (tags,) = (one.tags for one in self.workspaces if f"ws-{one.name}" == workspace_id)
        shown = [{"attributes": {"key": key, "value": value}} for key, value in tags.items()]
        return Reply(200, {"data": shown})

    def _versions(self, request: Request) -> Reply:
        assert request.query["filter[organization][name]"] == ORGANIZATION
        name = request.query["filter[workspace][name]"]
        for workspace in self.workspaces:
            if workspace.name == name:
                numbers = reversed(range(len(workspace.documents)))
                shown = [self._version(workspace, number) for number in numbers]
                return self._page(shown, ["ada"], request)
        return NOT_FOUND

    def _page(self, all_of_them: list[Any], users: list[str], request: Request) -> Reply:
        size, number = int(request.query["page[size]"]), int(request.query["page[number]"])
        assert 1 <= size <= 100
        first = (number - 1) * size
        more = bool(all_of_them[first + size :])
        answer = {
            "data": all_of_them[first:][:size],
            "meta": {"pagination": {"current-page": number, "next-page": more and number + 1}},
        }
        if not more:
            answer["meta"] = {"pagination": {"current-page": number, "next-page": None}}
        if "include" in request.query and not self.is_otf:
            answer["included"] = [_user(user) for user in users]
        return Reply(200, answer)

    def _workspace(self, workspace: Workspace) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": f"ws-{workspace.name}",
            "attributes": {
                "name": workspace.name,
                "locked": workspace.locked_by is not None,
                "tag-names": list(workspace.tags),
            },
        }
        if not self.is_otf:
            newest = {"id": f"sv-{workspace.name}-0"} if workspace.documents else None
            shown["relationships"] = {"current-state-version": {"data": newest}}
            if workspace.locked_by:
                holder = {"data": {"id": f"user-{workspace.locked_by}", "type": "users"}}
                shown["relationships"]["locked-by"] = holder
        return shown

    def _version(self, workspace: Workspace, number: int) -> dict[str, Any]:
        version_id = f"sv-{workspace.name}-{number}"
        address = f"/api/v2/state-versions/{version_id}/download"
        shown: dict[str, Any] = {
            "id": version_id,
            "attributes": {
                "created-at": f"2026-11-01T10:00:0{number}.000Z",
                "serial": number + 1,
                "hosted-state-download-url": address if self.gives_documents else None,
            },
        }
        if not self.is_otf:
            shown["relationships"] = {"created-by": {"data": {"id": "user-ada"}}}
        if workspace.statuses:
            shown["attributes"]["status"] = workspace.statuses[number]
        return shown

    def _download(self, version_id: str) -> Reply:
        workspace, number = self._found(version_id)
        if self.archivist is None:
            return Reply(200, workspace.documents[number].decode())
        return Reply(302, "", {"Location": f"{self.archivist.url}/v1/object/{version_id}"})

    def _found(self, version_id: str) -> tuple[Workspace, int]:
        name, _, number = version_id.removeprefix("sv-").rpartition("-")
        return next(one for one in self.workspaces if one.name == name), int(number)

    def stored(self, request: Request) -> Reply:
        """Return a document from the object store, which must not receive the token."""
        assert "Authorization" not in request.headers
        workspace, number = self._found(request.path.removeprefix("/v1/object/"))
        return Reply(200, workspace.documents[number].decode())


def _user(name: str) -> dict[str, Any]:
    return {"id": f"user-{name}", "type": "users", "attributes": {"username": name}}


@contextmanager
def serving(service: TfeService) -> Iterator[Replay]:
    with Replay(service.answer) as replay:
        if service.is_otf:
            yield replay
            return
        with Replay(service.stored) as service.archivist:
            yield replay
