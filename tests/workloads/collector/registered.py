"""A cluster of a live service, from the view of its agent and of its readers."""

from __future__ import annotations

import json
import secrets
import uuid
from typing import Any

from tests.support.server import LiveServer

JSON = {"Content-Type": "application/json"}


class Registered:
    """A cluster of the live service, with a token of its own."""

    def __init__(self, live: LiveServer, reader: str) -> None:
        body = json.dumps({"cluster": {"name": f"c-{secrets.token_hex(4)}"}}).encode()
        answer = live.request("POST", "/api/v1/clusters", body, token=reader, headers=JSON)
        self.live, self.reader = live, reader
        self.id = uuid.UUID(answer.json()["cluster"]["id"])
        options = ("--user", "operator", "--name", "agent", "--kind", "service", "--json")
        scope = ("--scopes", "cluster:report", "--cluster", str(self.id))
        (printed,) = live.run_commands(("issue_token", *options, *scope))
        self.token: str = json.loads(printed)["secret"]

    def get(self, path: str = "") -> Any:
        answer = self.live.request("GET", f"/api/v1/clusters/{self.id}{path}", token=self.reader)
        return answer.json()

    def workloads(self) -> list[dict[str, Any]]:
        """Return the rows, without the values that differ between clusters or moments."""
        rows = self.get("/workloads?page_size=100")["workloads"]
        differing = {"id", "cluster_id", "cluster_name", "last_updated_at"}
        return [{k: v for k, v in row.items() if k not in differing} for row in rows]
