"""GitLab as its documents and its source describe it, as far as states go, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.states.moving.replay import Replay, Reply, Request

TOKEN = "glpat-secret"
GROUP = "acme"
NOT_FOUND = Reply(404, {"message": "404 Project Not Found"})


@dataclass
class Kept:
    """A state, with its versions by serial."""

    name: str
    versions: dict[int, bytes]
    number: int = 1
    locked_by: str | None = None
    author: str | None = "ada"


@dataclass
class GitLabService:
    """Projects by their paths, all in the group ``acme`` and its subgroups."""

    projects: dict[str, list[Kept]]
    page_size: int = 2
    #: Projects in which the token's owner lacks the Developer role.
    hidden: set[str] = field(default_factory=set)
    #: Projects without the Infrastructure feature.
    disabled: set[str] = field(default_factory=set)
    documents: list[str] = field(default_factory=list)

    def answer(self, request: Request) -> Reply:
        if request.token != TOKEN:
            return Reply(401, {"message": "401 Unauthorized"})
        if request.path == "/api/graphql":
            return self._graphql(**request.json()["variables"])
        parts = request.path.removeprefix("/api/v4/").split("/")
        match parts:
            case ["projects", project]:
                path = unquote(project)
                level = "disabled" if path in self.disabled else "enabled"
                shown = {"path_with_namespace": path, "infrastructure_access_level": level}
                return Reply(200, shown) if path in self.projects else NOT_FOUND
            case ["groups", group, "projects"]:
                return self._group(unquote(group), request)
            case ["projects", project, "terraform", "state", name, "versions", serial]:
                return self._version(unquote(project), unquote(name), int(serial), request.method)
        return Reply(404, {"error": "404 Not Found"})

    def _group(self, group: str, request: Request) -> Reply:
        """Paginate by a Link header; include subgroups only on request."""
        if group != GROUP:
            return Reply(404, {"message": "404 Group Not Found"})
        assert request.query["with_shared"] == "false"
        assert request.query["include_subgroups"] == "true"
        page = int(request.query.get("page", 1))
        first = (page - 1) * self.page_size
        paths = list(self.projects)
        headers = {}
        if paths[first + self.page_size :]:
            host = request.headers["Host"]
            headers["Link"] = (
                f"<http://{host}{request.path}?include_subgroups=true&with_shared=false"
                f'&page={page + 1}>; rel="next", <http://{host}{request.path}?page=1>; rel="first"'
            )
        shown = [{"path_with_namespace": path} for path in paths[first:][: self.page_size]]
        return Reply(200, shown, headers)

    def _graphql(self, project: str, after: str | None = None, name: str | None = None) -> Reply:
        if project not in self.projects:
            return Reply(200, {"data": {"project": None}})
        refused = project in self.hidden | self.disabled
        kept = [] if refused else self.projects[project]
        if name is not None:
            one = next((_shown(state) for state in kept if state.name == name), None)
            return Reply(200, {"data": {"project": {"terraformState": one}}})
        first = int(after or 0)
        states = {
            "nodes": [_shown(state) for state in kept[first:][: self.page_size]],
            "pageInfo": {
                "hasNextPage": bool(kept[first + self.page_size :]),
                "endCursor": str(first + self.page_size),
            },
        }
        return Reply(200, {"data": {"project": {"terraformStates": states}}})

    def _version(self, project: str, name: str, serial: int, method: str) -> Reply:
        if project in self.hidden | self.disabled:
            return Reply(403, {"message": "403 Forbidden"})
        for state in self.projects.get(project, ()):
            if state.name == name and serial in state.versions:
                if method == "GET":
                    self.documents.append(f"{project}/{name}/{serial}")
                return Reply(200, state.versions[serial].decode())
        return Reply(404, {"message": "404 Not found"})


def _shown(state: Kept) -> dict[str, Any]:
    """Return a state as GraphQL does, with its newest version only."""
    newest = max(state.versions, default=None)
    user = state.author and {"username": state.author}
    return {
        "id": f"gid://gitlab/Terraform::State/{state.number}",
        "name": state.name,
        "lockedAt": state.locked_by and "2026-11-01T10:00:00Z",
        "lockedByUser": state.locked_by and {"username": state.locked_by},
        "latestVersion": None
        if newest is None
        else {
            "serial": newest,
            "createdAt": "2026-11-01T10:00:00Z",
            "createdByUser": user,
        },
    }


@contextmanager
def serving(service: GitLabService) -> Iterator[Replay]:
    with Replay(service.answer) as replay:
        yield replay
