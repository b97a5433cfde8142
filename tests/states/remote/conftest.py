"""A client of the remote backend, as go-tfe sends and reads requests."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from tests.conftest import ApiClient, ClientWith
from tests.e2e.backend import document

ORGANIZATION = "default"
MEDIA_TYPE = "application/vnd.api+json"
#: The address of the workspace `network-prod` in the http backend.
BACKEND = "/api/v1/state/at/network/prod"


class RemoteClient:
    """A client with a token; a workspace is named by its id."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client

    def send(self, method: str, path: str, data: Any = None) -> Any:
        content = b"" if data is None else json.dumps({"data": data}).encode()
        return self.client.generic(method, f"/api/v2/{path}", content, MEDIA_TYPE)

    def created(self, name: str, organization: str = ORGANIZATION, **tags: str) -> str:
        """Create a workspace and return its id."""
        answer = self.create(name, organization, **tags)
        assert answer.status_code == 201, answer.content
        id_: str = answer.json()["data"]["id"]
        return id_

    def create(self, name: str, organization: str = ORGANIZATION, **tags: str) -> Any:
        bindings = [
            {"type": "tag-bindings", "attributes": {"key": key, "value": value}}
            for key, value in tags.items()
        ]
        data = {
            "type": "workspaces",
            "attributes": {"name": name},
            "relationships": {"tag-bindings": {"data": bindings}},
        }
        return self.send("POST", f"organizations/{organization}/workspaces", data)

    def act(self, workspace_id: str, action: str) -> Any:
        return self.send("POST", f"workspaces/{workspace_id}/actions/{action}")

    def announce(self, workspace_id: str, body: bytes, *, whole: bool = False, **more: Any) -> Any:
        """Create a state version; with ``whole``, with its document."""
        head = json.loads(body)
        attributes = {
            "serial": head.get("serial"),
            "lineage": head.get("lineage"),
            "md5": hashlib.md5(body, usedforsecurity=False).hexdigest(),
            **({"state": base64.b64encode(body).decode()} if whole else {}),
            **more,
        }
        data = {"type": "state-versions", "attributes": attributes}
        return self.send("POST", f"workspaces/{workspace_id}/state-versions", data)

    def upload(self, announced: Any, body: bytes, kind: str = "hosted-state-upload-url") -> Any:
        """Send the document like go-tfe, without a token."""
        url = urlsplit(announced.json()["data"]["attributes"][kind])
        return Client().generic("PUT", f"{url.path}?{url.query}", body, "application/octet-stream")

    def push(self, workspace_id: str, body: bytes, **more: Any) -> str:
        """Upload a state version and return its id as read again."""
        announced = self.announce(workspace_id, body, **more)
        assert announced.status_code == 201, announced.content
        uploaded = self.upload(announced, body)
        assert uploaded.status_code == 200, uploaded.content
        read = self.send("GET", f"state-versions/{announced.json()['data']['id']}")
        assert read.status_code == 200, read.content
        id_: str = read.json()["data"]["id"]
        return id_

    def pulled(self, workspace_id: str) -> bytes:
        """Return the current document, as Terraform downloads it."""
        current = self.send("GET", f"workspaces/{workspace_id}/current-state-version")
        url = urlsplit(current.json()["data"]["attributes"]["hosted-state-download-url"])
        content: bytes = self.client.get(url.path).content
        return content


def error_of(answer: Any) -> str:
    """Return the code of a JSON:API error, after checking its form."""
    (error,) = answer.json()["errors"]
    assert error["status"] == str(answer.status_code)
    assert error["title"]
    assert error["detail"]
    assert answer["Content-Type"] == MEDIA_TYPE
    code: str = error["code"]
    return code


@pytest.fixture
def remote(client_with: ClientWith) -> RemoteClient:
    return RemoteClient(client_with("state:read", "state:write", "state:admin"))


@pytest.fixture
def workspace_id(remote: RemoteClient) -> str:
    return remote.created("network-prod")


@pytest.fixture
def locked(remote: RemoteClient, workspace_id: str) -> str:
    """The id of a workspace that the client has locked."""
    assert remote.act(workspace_id, "lock").status_code == 200
    return workspace_id


FIRST, SECOND = document(1), document(2)
