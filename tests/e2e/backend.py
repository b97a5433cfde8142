"""A client of the state backend of a (component, environment) on the live server."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import uuid
from typing import Any

from tests.support.server import Answer, LiveServer


def document(serial: int = 1, lineage: str = "lineage", **more: Any) -> bytes:
    """Return a state document in Terraform's form."""
    head = {"version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": lineage}
    body = {**head, "outputs": {}, "resources": [], "check_results": None, **more}
    return json.dumps(body, indent=2).encode() + b"\n"


def incompressible(size: int, serial: int = 1) -> bytes:
    """Return a document of exactly this size, which gzip reduces by only a quarter."""
    missing = size - len(document(serial, filler=""))
    random_text = base64.b64encode(random.randbytes(missing * 3 // 4 + 3)).decode()
    return document(serial, filler=random_text[:missing])


def lock_info(lock_id: uuid.UUID | str, **changes: str) -> dict[str, str]:
    """Return LockInfo in Terraform's form."""
    return {
        "ID": str(lock_id),
        "Operation": "OperationTypeApply",
        "Info": "",
        "Who": "ada@laptop",
        "Version": "1.11.4",
        "Created": "2026-11-21T06:50:11.123456789Z",
        "Path": "",
        **changes,
    }


def content_md5(body: bytes) -> str:
    """Return the value of the header Content-MD5."""
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


class Backend:
    """A state, with a client's token."""

    def __init__(self, server: LiveServer, token: str) -> None:
        self.server, self.token = server, token
        self.component_id, self.environment_id = uuid.uuid4(), uuid.uuid4()

    @property
    def path(self) -> str:
        return f"/api/v1/state/{self.component_id}/env/{self.environment_id}"

    @property
    def address(self) -> str:
        return self.server.url + self.path

    def with_token(self, token: str) -> Backend:
        """Return the same state with another client's token."""
        other = Backend(self.server, token)
        other.component_id, other.environment_id = self.component_id, self.environment_id
        return other

    def send(
        self, method: str, body: bytes | None = None, suffix: str = "", **headers: str
    ) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        path = self.path + suffix
        return self.server.request(method, path, body, token=self.token, headers=named)

    def get(self) -> Answer:
        return self.send("GET")

    def push(self, body: bytes, lock_id: str = "", **headers: str) -> Answer:
        """Push like Terraform."""
        suffix = f"?ID={lock_id}" if lock_id else ""
        given = {"Content_MD5": content_md5(body), "Content_Type": "application/json", **headers}
        return self.send("POST", body, suffix, **given)

    def lock(self, lock_id: str, **changes: str) -> Answer:
        return self.send("LOCK", json.dumps(lock_info(lock_id, **changes)).encode())

    def unlock(self, lock_id: str) -> Answer:
        return self.send("UNLOCK", json.dumps(lock_info(lock_id)).encode())

    def holder(self) -> dict[str, Any] | None:
        """Return the LockInfo of the current lock, from a refused LOCK."""
        probe = str(uuid.uuid4())
        answer = self.lock(probe)
        if answer.status == 200:
            assert self.unlock(probe).status == 200
            return None
        assert answer.status == 423
        info = answer.json()
        del info["error"]
        found: dict[str, Any] = info
        return found
