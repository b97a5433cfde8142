"""A bound token gets the same answers for entries outside its binding as for missing entries."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

import pytest

from apikeys.bindings import Binding
from apikeys.models import AuditEvent
from states.models import State
from tests.conftest import ClientWith
from tests.states.conftest import document
from workloads.models import Cluster

SCOPES = ("state:read", "state:write", "state:admin", "state:secrets", "state:outputs",
          "cluster:read", "cluster:write", "cluster:report")  # fmt: skip
LOCK: dict[str, Any] = {"ID": str(uuid4())}
BACKEND = [
    ("GET", "", None), ("HEAD", "", None), ("POST", "", {"version": 4}), ("POST", "?ID=x", {}),
    ("POST", "?force=true", {"version": 4}), ("DELETE", "", None), ("LOCK", "", LOCK),
    ("LOCK", "", {}), ("UNLOCK", "", LOCK), ("UNLOCK", "", None), ("OPTIONS", "", None),
    ("POST", "/lock", LOCK), ("DELETE", "/lock", None),
    ("GET", "/outputs.tfstate", None),
]  # fmt: skip
RECORD = [
    *(("GET", tail, None) for tail in (
        "", "/versions", "/versions?page_size=x", "/versions/1", "/versions/9",
        "/versions/1/document", "/versions/1/facts", "/versions/2/diff",
        "/versions/2/diff?against=x", "/outputs",
        "/outputs.tfstate",
        "/resources?page_token=x",
    )),
    ("DELETE", "", None), ("POST", ":undelete", {}), ("POST", ":force-unlock", {}),
    ("POST", ":force-unlock", {"reason": "x"}), ("POST", "/versions/1:restore", {}),
    ("POST", "/versions/1:restore", {"lock_id": "x"}),
    ("PUT", "/versions/1/facts", {"commit": "x"}), ("PUT", "/versions/1/facts", {"x": 1}),
]  # fmt: skip
CLUSTER = [
    ("GET", "", None), ("PATCH", "", {"name": "x"}), ("PATCH", "", {"x": 1}), ("DELETE", "", None),
    ("GET", "/workloads", None), ("GET", "/workloads?filter=x", None), ("PUT", "/workloads", {}),
    ("GET", "/workloads:summary", None), ("POST", "/workloads:report-failure", {}),
]  # fmt: skip
BINDINGS: dict[str, dict[str, Any]] = {
    "environment": {"bound_environment_ids": [str(UUID(int=7))]},
    "component": {"bound_component_ids": [str(UUID(int=7))]},
    "both": {
        "bound_component_ids": [str(UUID(int=7))],
        "bound_environment_ids": [str(UUID(int=8))],
    },
    "cluster": {"bound_cluster_id": UUID(int=7)},
    "application": Binding(application_ids=frozenset({UUID(int=7)})).columns(),
}


def seen(answer: Any, path: str) -> tuple[int, bytes, str | None]:
    """Return an answer without the id of the request, and the ids of the path that it repeats."""
    content = re.sub(rb'"request_id":"[^"]*"', b"", answer.content)
    for given in path.split("/")[4:]:
        content = content.replace(f'\\"{given}\\"'.encode(), b"")
    return answer.status_code, content, answer.get("ETag")


@pytest.mark.slow
@pytest.mark.both
@pytest.mark.parametrize("name", BINDINGS)
def test_outside_is_nowhere(client_with: ClientWith, name: str) -> None:
    writer = client_with(*SCOPES)
    component, environment, unknown = uuid4(), uuid4(), uuid4()
    for serial in (1, 2):
        path = f"/api/v1/state/{component}/env/{environment}"
        writer.generic("POST", path, document(serial), "application/json")
    state, cluster = State.objects.get(), Cluster.objects.create(name="outside")
    one, other = f"{component}/env/{environment}", f"{unknown}/env/{unknown}"
    places = [
        (f"/api/v1/state/{one}", f"/api/v1/state/{other}", BACKEND),
        (f"/api/v1/states/{state.pk}", f"/api/v1/states/{unknown}", RECORD),
        (f"/api/v1/clusters/{cluster.pk}", f"/api/v1/clusters/{unknown}", CLUSTER),
    ]
    client, events = client_with(*SCOPES, **BINDINGS[name]), AuditEvent.objects.count()

    for there, nowhere, requests in places:
        for method, tail, body in requests:
            first, second = (
                seen(client.send(method, where + tail, body), where) for where in (there, nowhere)
            )
            assert first == second, (method, tail)
            assert first[0] >= 400

    before = (state.revision, state.version_number)
    state.refresh_from_db()
    assert (state.revision, state.version_number) == before
    assert Cluster.objects.get().name == "outside"
    assert AuditEvent.objects.count() == events
