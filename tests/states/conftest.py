"""Fixtures of the state backend tests."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.core.files.storage import InMemoryStorage, storages

from apikeys.actors import Actor
from states.keeping import faults
from states.models import State
from states.targets import StateTarget
from tests.conftest import ApiClient, ClientWith
from tests.e2e.backend import lock_info

LINEAGE = "3b9b1c0e-0000-4000-8000-000000000001"


def document(serial: int | None = 1, lineage: str | None = LINEAGE, **more: Any) -> bytes:
    """Return a state document as Terraform writes it, indented."""
    body: dict[str, Any] = {"version": 4, "terraform_version": "1.11.4"}
    if serial is not None:
        body["serial"] = serial
    if lineage is not None:
        body["lineage"] = lineage
    return json.dumps({**body, "outputs": {}, "resources": [], **more}, indent=2).encode()


class Backend:
    """The state backend of a (component, environment), as seen by one client."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self.component_id, self.environment_id = uuid.uuid4(), uuid.uuid4()

    @property
    def path(self) -> str:
        return f"/api/v1/state/{self.component_id}/env/{self.environment_id}"

    def as_client(self, client: ApiClient) -> Backend:
        """Return the same state, seen by another client."""
        other = Backend(client)
        other.component_id, other.environment_id = self.component_id, self.environment_id
        return other

    def get(self, **options: Any) -> Any:
        return self.client.get(self.path, **options)

    def push(self, body: bytes, query: str = "", **options: Any) -> Any:
        return self.client.post(self.path + query, body, "application/json", **options)

    def delete(self) -> Any:
        return self.client.delete(self.path)

    def lock(self, lock_id: uuid.UUID | str, **changes: str) -> Any:
        return self.send("LOCK", json.dumps(lock_info(lock_id, **changes)))

    def unlock(self, lock_id: uuid.UUID | str | None) -> Any:
        body = "" if lock_id is None else json.dumps(lock_info(lock_id))
        return self.send("UNLOCK", body)

    def send(self, method: str, body: str | bytes = "", suffix: str = "") -> Any:
        return self.client.generic(method, self.path + suffix, body, "application/json")

    @property
    def root(self) -> str:
        """The path of the state's record."""
        return f"/api/v1/states/{self.record.pk}"

    def look(self, suffix: str = "", **options: Any) -> Any:
        return self.client.get(self.root + suffix, **options)

    def call(self, suffix: str, body: Any = None) -> Any:
        """Call a method of the state's record."""
        return self.client.post(self.root + suffix, json.dumps(body or {}), "application/json")

    @property
    def record(self) -> State:
        return State.objects.get(component=self.component_id, environment=self.environment_id)


Interrupt = Callable[[Callable[[], Any]], None]


@pytest.fixture
def after_the_first_look(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Run something right after the next action has read the state."""

    def arrange(event: Callable[[], Any]) -> None:
        real = StateTarget.find
        pending = [event]

        def find(target: StateTarget, actor: Actor) -> State | None:
            seen = real(target, actor)
            if pending:
                pending.pop()()
            return seen

        monkeypatch.setattr(StateTarget, "find", find)

    return arrange


@pytest.fixture
def reader(client_with: ClientWith) -> ApiClient:
    return client_with("state:read")


@pytest.fixture
def backend(client_with: Any) -> Backend:
    return Backend(client_with("state:read", "state:write"))


@pytest.fixture
def admin(backend: Backend, client_with: Any) -> Backend:
    """The same state, seen by a client that may also force."""
    return backend.as_client(client_with("state:read", "state:write", "state:admin"))


@pytest.fixture
def seeing(backend: Backend, client_with: Any) -> Backend:
    """The same state, seen by a client that may see its secrets."""
    return backend.as_client(client_with("state:read", "state:secrets"))


class UnsteadyStorage(InMemoryStorage):
    """An object store in memory with injectable failures."""

    failing: bool = False

    def _may_fail(self) -> None:
        if self.failing:
            raise ConnectionError("the store is away")

    def save(self, name: Any, content: Any, max_length: Any = None) -> str:
        self._may_fail()
        return super().save(name, content, max_length)

    def open(self, name: str, mode: str = "rb") -> Any:
        self._may_fail()
        return super().open(name, mode)

    def delete(self, name: str) -> None:
        self._may_fail()
        super().delete(name)

    def listdir(self, path: str) -> Any:
        self._may_fail()
        return super().listdir(path)

    def head_bucket(self, Bucket: str) -> None:  # noqa: ARG002, N803 - boto3's
        self._may_fail()

    @property
    def bucket(self) -> Any:
        """The bucket in boto3, to which the service only sends HEAD."""
        return SimpleNamespace(name="states", meta=SimpleNamespace(client=self))

    @property
    def names(self) -> set[str]:
        """All objects."""
        return {f"{d}/{f}" for d in self.listdir("")[0] for f in self.listdir(d)[1]}


@pytest.fixture
def store(settings: Any, monkeypatch: pytest.MonkeyPatch) -> UnsteadyStorage:
    """Store new documents in an object store and retry it without pauses."""
    monkeypatch.setattr(faults, "PAUSES", (0.0,) * len(faults.PAUSES))
    name = f"{__name__}.{UnsteadyStorage.__name__}"
    settings.STORAGES = {**settings.STORAGES, "states": {"BACKEND": name}}
    return cast("UnsteadyStorage", storages["states"])


def seen(moment: dt.datetime) -> str:
    """Return a time as answers have it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.fixture
def lock_id() -> uuid.UUID:
    return uuid.uuid4()


def named(state: State, component: str, environment: str) -> State:
    type(state.component).objects.filter(pk=state.component_id).update(name=component)
    type(state.environment).objects.filter(pk=state.environment_id).update(name=environment)
    return State.objects.get(pk=state.pk)


@pytest.fixture
def locked_state(backend: Backend, lock_id: uuid.UUID) -> State:
    """A state with two versions, locked, with names around it, for the admin."""
    assert backend.push(document(1)).status_code == 200
    assert (
        backend.push(document(2, outputs={"a": {"value": 1, "type": "number"}})).status_code == 200
    )
    assert backend.lock(lock_id).status_code == 200
    return named(backend.record, "network", "production")
