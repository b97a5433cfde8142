"""Fixtures of the client's tests: a person who is signed in, and a server in front."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.client.front import Front, running_front
from tests.client.running import Client
from tests.e2e.backend import lock_info
from tests.support.server import LiveServer

_NUMBERS = itertools.count(1)
ALL = ("state:read", "state:write", "state:admin")


@pytest.fixture(scope="session")
def tokens(live: LiveServer) -> dict[str, str]:
    """Tokens of the service by their use."""
    scopes = {"admin": ",".join(ALL), "reader": "state:read", "clusters": "cluster:read"}
    scopes["secrets"] = "state:read,state:secrets"
    made = dict(zip(scopes, live.tokens(*scopes.values()), strict=True))
    return {**made, "key": live.api_key("apikey:read", "apikey:write", "state:read")}


@pytest.fixture
def client(tmp_path: Path, live: LiveServer, tokens: dict[str, str]) -> Client:
    """A client with all permissions on states, through the environment."""
    return Client(tmp_path, live.url, tokens["admin"])


@pytest.fixture
def front(live: LiveServer) -> Iterator[Front]:
    with running_front(live) as one:
        yield one


@pytest.fixture
def through_front(tmp_path: Path, front: Front, tokens: dict[str, str]) -> Client:
    """The same client, with the server in front of the service."""
    return Client(tmp_path, front.url, tokens["admin"])


class SomeState:
    """A state at a new name."""

    def __init__(self, live: LiveServer, token: str, name: str) -> None:
        self.live, self.token, self.name = live, token, name
        self.path = f"/api/v1/state/at/{name}"

    def push(self, document: bytes) -> None:
        assert self.live.request("POST", self.path, document, token=self.token).status == 200

    def lock(self) -> str:
        """Lock it as another client; return the lock's ID."""
        lock_id = str(uuid.uuid4())
        body = json.dumps(lock_info(uuid.UUID(lock_id))).encode()
        assert self.live.request("LOCK", self.path, body, token=self.token).status == 200
        return lock_id

    def is_locked(self) -> bool:
        terms = f"field['component'] = '{self.name.split('/')[-2]}' AND field['locked'] = true"
        path = f"/api/v1/states?filter={quote(terms)}"
        return bool(self.live.request("GET", path, token=self.token).json()["states"])


@pytest.fixture
def state(live: LiveServer, tokens: dict[str, str]) -> SomeState:
    return SomeState(live, tokens["admin"], f"net-{next(_NUMBERS)}-{uuid.uuid4().hex[:6]}/prod")
