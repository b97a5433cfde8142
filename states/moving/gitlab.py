"""The states that GitLab stores for a project, or for all projects of a group."""

from __future__ import annotations

import os
import re
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from states.moving.sources import (
    MOST_VERSIONS,
    SourceError,
    SourceState,
    SourceVersion,
    moment_of,
    text_of,
)
from states.moving.web import RefusedError, WebClient

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEME: Final = "gitlab:"
_TOKEN: Final = "GITLAB_TOKEN"  # noqa: S105 - a name
_API: Final = "api/v4"
_NEXT: Final = re.compile(r'<([^<>]+)>;\s*rel="next"')
#: GitLab lists only the newest version, so older versions are requested by serial. "state push" and
#: deletions leave gaps in the serials. A gap of this length counts as the end.
_LONGEST_GAP: Final = 100

_REFUSED: Final = (
    f"The token in {_TOKEN} cannot read the states of {{}}. The owner of the token needs the "
    "Developer role in the project."
)
_STATES: Final = """
query($project: ID!, $after: String) {
  project(fullPath: $project) {
    terraformStates(first: 50, after: $after) {
      nodes { name lockedAt lockedByUser { username } latestVersion { serial } }
      pageInfo { hasNextPage endCursor }
    }
  }
}"""
_NEWEST: Final = """
query($project: ID!, $name: String!) {
  project(fullPath: $project) {
    terraformState(name: $name) {
      id
      latestVersion { serial createdAt createdByUser { username } }
    }
  }
}"""


class GitLab:
    """A project or a group. In a group, a state's key begins with the project's relative path."""

    def __init__(self, client: WebClient, path: str) -> None:
        self._client = client
        self._path = path
        self.name = f"{_SCHEME}{path}"

    def states(self) -> Iterator[SourceState]:
        """Yield the states that have a version, and each project whose states are unreadable.

        Raises:
            SourceError: the states of the only project are unreadable.
        """
        with self._client.understanding():
            for project in self._projects():
                below = text_of(project).removeprefix(self._path).strip("/")
                is_empty = True
                for state in self._of_project(project):
                    is_empty = False
                    name, user = text_of(state["name"]), state["lockedByUser"]
                    holder = user["username"] if user else "an unknown client"
                    yield SourceState(
                        f"{below}/{name}" if below else name, holder if state["lockedAt"] else None
                    )
                if is_empty and self._is_refused(project):
                    problem = _REFUSED.format(project)
                    if not below:
                        raise SourceError(problem)
                    problem += f" Or skip the project with a map: ignore = ['{below}/**']"
                    yield SourceState(f"{below}/", problem=problem)

    def versions(self, state: SourceState, most: int | None) -> list[SourceVersion]:
        """Return the versions, oldest first. Only the newest version has a time and an author."""
        with self._client.understanding():
            project, name = self._place(state.key)
            found = self._project(_NEWEST, project=project, name=name)["terraformState"]
            newest = found and found["latestVersion"]
            if not newest:
                return []
            # The serials of a state that was deleted and created again start over.
            state_id = found["id"].rpartition("/")[2]
            user, serial = newest["createdByUser"], int(newest["serial"])
            versions = [
                SourceVersion(
                    text_of(f"{state_id}/{serial}"),
                    moment_of(newest["createdAt"]),
                    str(user["username"]) if user else "",
                )
            ]
            older = self._older(project, name, serial)
            versions += (
                SourceVersion(f"{state_id}/{number}")
                for number in islice(older, (most or MOST_VERSIONS) - 1)
            )
            return versions[::-1]

    def _older(self, project: str, name: str, newest: int) -> Iterator[int]:
        """Yield the existing serials below the newest serial, in descending order."""
        missing = 0
        for serial in range(newest - 1, -1, -1):
            if self._client.exists(_address(project, name, serial)):
                missing = 0
                yield serial
            else:
                missing += 1
                if missing == _LONGEST_GAP:
                    return

    def read(self, state: SourceState, version: SourceVersion, limit: int) -> bytes:
        project, name = self._place(state.key)
        serial = int(version.id.rpartition("/")[2])
        return self._client.request("GET", _address(project, name, serial), limit=limit).body

    def _place(self, key: str) -> tuple[str, str]:
        """Return the project's path and the state's name in a key."""
        below, _, name = key.rpartition("/")
        return (f"{self._path}/{below}" if below else self._path), name

    def _projects(self) -> Iterator[str]:
        """Yield the path of the project, or of all projects of the group and of its subgroups.

        Raises:
            SourceError: no project or group has this path.
        """
        own = quote(self._path, safe="")
        try:
            self._client.json(f"{_API}/projects/{own}")
        except RefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        else:
            yield self._path
            return
        query = {
            "include_subgroups": "true",
            "with_shared": "false",
            "simple": "true",
            "order_by": "id",
            "sort": "asc",
            "per_page": "100",
        }
        address = f"{_API}/groups/{own}/projects?{urlencode(query)}"
        known: set[str] = set()
        while address:
            _check_new(address, known)
            projects, headers = self._client.page(address)
            for project in projects:
                yield project["path_with_namespace"]
            following = _NEXT.search(headers.get("Link", ""))
            address = following[1] if following else ""

    def _of_project(self, project: str) -> Iterator[dict[str, Any]]:
        """Yield GitLab's records of a project's states."""
        after, known = None, set[str]()
        while True:
            page = self._project(_STATES, project=project, after=after)["terraformStates"]
            if page is None:
                return
            yield from (state for state in page["nodes"] if state["latestVersion"])
            if not page["pageInfo"]["hasNextPage"]:
                return
            after = page["pageInfo"]["endCursor"]
            _check_new(after, known)

    def _is_refused(self, project: str) -> bool:
        """Return whether the token may not read the states, for which GitLab lists no states.

        A project without GitLab's Infrastructure feature has no states.
        """
        try:
            self._client.exists(_address(project, "state", 0))
        except RefusedError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            found = self._client.json(f"{_API}/projects/{quote(project, safe='')}")
            return bool(found.get("infrastructure_access_level") != "disabled")
        return False

    def _project(self, query: str, **variables: str | None) -> dict[str, Any]:
        """Query a project through GraphQL.

        Raises:
            SourceError: the project does not exist, or GraphQL fails.
        """
        answer = self._client.json("api/graphql", {"query": query, "variables": variables})
        if problems := answer.get("errors"):
            raise SourceError(f"{self._client.base} responded: {problems[0].get('message')}")
        project: dict[str, Any] | None = answer["data"]["project"]
        if project is None:
            raise SourceError(
                f"{self._client.base} has no project {variables['project']}, or the token "
                f"in {_TOKEN} cannot access it."
            )
        return project


def _check_new(page: str, known: set[str]) -> None:
    """Refuse a page that was already read.

    Raises:
        ValueError: the pages form a loop.
    """
    if page in known:
        raise ValueError("a list does not end")
    known.add(page)


def open_gitlab(text: str) -> GitLab:
    """Return the project or group of ``gitlab:PATH``.

    Raises:
        SourceError: the path or the token in the environment is missing.
    """
    path = text.removeprefix(_SCHEME).strip("/")
    if not path or "://" in path:
        raise SourceError(
            "The source must have the form gitlab:group/project. GITLAB_URL is the address of "
            "GitLab itself."
        )
    base = os.environ.get("GITLAB_URL") or os.environ.get("CI_API_V4_URL", "https://gitlab.com")
    client = WebClient(
        base.rstrip("/").removesuffix(f"/{_API}"),
        os.environ.get(_TOKEN, ""),
        named_by="GITLAB_URL or CI_API_V4_URL",
        token_named_by=f"{_TOKEN} (with the scope api)",
    )
    return GitLab(client, path)


def _address(project: str, name: str, serial: int) -> str:
    own = quote(project, safe="")
    return f"{_API}/projects/{own}/terraform/state/{quote(name, safe='')}/versions/{serial}"
