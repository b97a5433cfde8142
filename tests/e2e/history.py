"""Operations on a state's history, over HTTP."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.e2e.backend import Backend
from tests.support.server import Answer


class History:
    """The record of a state, for the owner of a token."""

    def __init__(self, backend: Backend) -> None:
        self.server, self.token = backend.server, backend.token
        expression = quote(f"field['component_id'] = '{backend.component_id}'")
        path = f"/api/v1/states?filter={expression}"
        (record,) = self.server.request("GET", path, token=self.token).json()["states"]
        self.root = f"/api/v1/states/{record['id']}"

    def get(self, suffix: str = "") -> Answer:
        return self.server.request("GET", self.root + suffix, token=self.token)

    def call(self, suffix: str, **body: Any) -> Answer:
        headers = {"Content-Type": "application/json"}
        text = json.dumps(body).encode()
        return self.server.request(
            "POST", self.root + suffix, text, token=self.token, headers=headers
        )

    def versions(self) -> list[dict[str, Any]]:
        """Return all versions, the newest first; an empty list for a missing state."""
        found: list[dict[str, Any]] = []
        token = "begin"
        while token:
            suffix = "" if token == "begin" else f"&page_token={token}"
            answer = self.get(f"/versions?page_size=100{suffix}")
            if answer.status == 404:
                break
            found += answer.json()["versions"]
            token = answer.json()["next_page_token"]
        return found

    def document(self, number: int) -> Answer:
        return self.get(f"/versions/{number}/document")
