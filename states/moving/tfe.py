"""Workspaces in HCP Terraform, Terraform Enterprise or OTF, as a source of an import."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, urlencode

from states.moving.sources import (
    MOST_VERSIONS,
    SourceError,
    SourceState,
    SourceVersion,
    SourceWorkspace,
    moment_of,
    text_of,
)
from states.moving.web import RefusedError, WebClient

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEME: Final = "tfe:"
_TOKEN: Final = "TFE_TOKEN"  # noqa: S105 - a name
_API: Final = "api/v2"
_MOST_ON_A_PAGE: Final = 100
#: Prefixes of the status of a version without a document: not uploaded, or deleted.
_WITHOUT_DOCUMENT: Final = ("pending", "discarded", "backing_data_")


@dataclass(frozen=True, slots=True)
class _Stored(SourceVersion):
    """A version with the download URL of its document. The URL grants access for a day."""

    download: str = field(default="", repr=False)


class Organization:
    """The states of an organization. The key of a state is the name of its workspace."""

    #: The number of workspaces or versions per page.
    page_size = _MOST_ON_A_PAGE

    def __init__(self, client: WebClient, organization: str) -> None:
        self._client = client
        self._organization = organization
        self.name = f"{_SCHEME}{organization}"

    def states(self) -> Iterator[SourceState]:
        """Yield the workspaces, except those for which the source reports no state."""
        path = f"organizations/{quote(self._organization, safe='')}/workspaces"
        with self._client.understanding():
            for workspace, included in self._listed(path, self.page_size, include="locked_by"):
                if _is_empty(workspace):
                    continue
                attributes = workspace["attributes"]
                is_locked = attributes.get("locked", False)
                holder = _related(workspace, "locked-by", included) or "an unknown client"
                name = text_of(attributes["name"])
                tags = dict.fromkeys(map(text_of, attributes.get("tag-names") or ()), "")
                tags |= self._bindings(workspace["id"])
                yield SourceState(
                    name,
                    holder if is_locked else None,
                    workspace=SourceWorkspace(name, tags),
                )

    def _bindings(self, workspace_id: str) -> dict[str, str]:
        """Return the tags of a workspace with their values, which older services do not have."""
        path = f"{_API}/workspaces/{quote(workspace_id, safe='')}/tag-bindings"
        try:
            found = self._client.json(path)["data"]
        except RefusedError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            return {}
        pairs = (binding["attributes"] for binding in found)
        return {text_of(pair["key"]): text_of(pair.get("value") or "") for pair in pairs}

    def versions(self, state: SourceState, most: int | None) -> list[SourceVersion]:
        """Return the versions that have a document, oldest first."""
        with self._client.understanding():
            # The source lists the newest version first.
            return list(islice(self._with_document(state, most), most or MOST_VERSIONS))[::-1]

    def _with_document(self, state: SourceState, most: int | None) -> Iterator[SourceVersion]:
        listed = self._listed(
            "state-versions",
            min(self.page_size, most or self.page_size),
            **{
                "filter[workspace][name]": state.key,
                "filter[organization][name]": self._organization,
                "include": "created_by",
            },
        )
        for version, included in listed:
            attributes = version["attributes"]
            if (attributes.get("status") or "").startswith(_WITHOUT_DOCUMENT):
                continue
            created_at = moment_of(attributes["created-at"])
            author = _related(version, "created-by", included)
            yield _Stored(
                text_of(version["id"]),
                created_at,
                author,
                download=text_of(attributes.get("hosted-state-download-url") or ""),
            )

    def read(self, state: SourceState, version: SourceVersion, limit: int) -> bytes:
        del state  # the version contains its URL
        download = cast("_Stored", version).download
        if not download:
            raise SourceError(
                f"{self._client.base} does not return the document of {version.id}. It was "
                "deleted, or is encrypted with a key of the organization."
            )
        return self._client.request("GET", download, limit=limit).body

    def _listed(
        self, path: str, size: int, **parameters: str
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield the items of a list, each with the page's related resources by id."""
        number, following = 0, 1
        while following:
            if following <= number:
                raise ValueError(f"page {following} follows page {number}")
            number = following
            query = urlencode({**parameters, "page[number]": number, "page[size]": size})
            page = self._client.json(f"{_API}/{path}?{query}")
            included = {resource["id"]: resource for resource in page.get("included") or ()}
            for resource in page["data"]:
                yield resource, included
            following = page["meta"]["pagination"]["next-page"]


def open_organization(text: str) -> Organization:
    """Return the organization of ``tfe:ORGANIZATION``.

    Raises:
        SourceError: the name is invalid, or the token in the environment is missing.
    """
    organization = text.removeprefix(_SCHEME).removeprefix("//")
    if not organization or "/" in organization:
        raise SourceError(
            "The source must have the form tfe:ORGANIZATION. Set TFE_ADDRESS for a service other "
            "than https://app.terraform.io."
        )
    client = WebClient(
        os.environ.get("TFE_ADDRESS", "https://app.terraform.io"),
        os.environ.get(_TOKEN, ""),
        named_by="TFE_ADDRESS",
        token_named_by=f"{_TOKEN} (of a user or team that can read state versions)",
    )
    return Organization(client, organization)


def _is_empty(workspace: dict[str, Any]) -> bool:
    """Return whether the source reports that a workspace has no state."""
    newest = (workspace.get("relationships") or {}).get("current-state-version")
    return newest is not None and newest.get("data") is None and not newest.get("links")


def _related(resource: dict[str, Any], relation: str, included: dict[str, Any]) -> str:
    """Return a referenced user's name, or the id if the name is missing, or "" if both are."""
    found = (resource.get("relationships") or {}).get(relation) or {}
    one = found.get("data") or {}
    name = str(one.get("id") or "")
    attributes = included.get(name, {}).get("attributes") or {}
    return str(attributes.get("username") or attributes.get("name") or name)
