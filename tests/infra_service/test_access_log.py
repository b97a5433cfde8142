"""The access event: the caller, the resource and the cost of a request."""

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from states.models import State
from tests.conftest import ApiClient, ClientWith
from tests.states.conftest import document
from workloads.models import Cluster, Workload

LOGS = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "logs.md").read_text()


@pytest.fixture
def events(capfd: pytest.CaptureFixture[str]) -> Any:
    """``events()``: the access events since the last call."""

    def since() -> list[dict[str, Any]]:
        lines = capfd.readouterr().err.splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in found if event["event"] == "request"]

    return since


@pytest.fixture
def client(client_with: ClientWith) -> ApiClient:
    return client_with("state:read", "state:write", "state:admin", "cluster:read")


def path_of(state: State) -> str:
    return f"/api/v1/state/{state.component_id}/env/{state.environment_id}"


@pytest.fixture
def state(client: ApiClient) -> State:
    client.post(f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}", document(1), "application/json")
    return State.objects.get()


def test_a_push(client: ApiClient, state: State, events: Any) -> None:
    body = document(2)
    events()

    with CaptureQueriesContext(connection) as queries:
        client.post(path_of(state), body, "application/json")

    (event,) = events()
    assert event.pop("duration_ms") >= event.pop("database_ms") > 0
    assert {name: event[name] for name in event.keys() - {"time", "request_id"}} == {
        "event": "request",
        "level": "info",
        "method": "POST",
        "path": path_of(state),
        "view": "state-backend",
        "status": 200,
        # The test's outer transaction avoids the BEGIN that SQLite counts as a query.
        "queries": len(queries),
        "address": "127.0.0.1",
        "bytes_in": len(body),
        "bytes_out": 0,
        "component_id": str(state.component_id),
        "environment_id": str(state.environment_id),
        "state_id": str(state.pk),
        "token_id": client.token.pk,
        "user": "operator",
    }


def test_each_event_counts_its_own_queries(client: ApiClient, state: State, events: Any) -> None:
    events()
    counts = []
    versions = f"/api/v1/states/{state.pk}/versions"
    for path in ("/healthz", versions, "/api/v1/states", "/healthz"):
        with CaptureQueriesContext(connection) as queries:
            client.get(path)
        counts.append(len(queries))

    assert [event["queries"] for event in events()] == counts
    assert counts[0] == counts[3] == 0 < counts[2] < counts[1]


@pytest.mark.parametrize("method", ["GET", "LOCK", "DELETE"])
def test_log_has_the_id_of_the_state(
    client: ApiClient, state: State, events: Any, method: str
) -> None:
    lock = json.dumps({"ID": str(uuid.uuid4())})
    events()

    client.generic(method, path_of(state), lock if method == "LOCK" else "", "application/json")

    (event,) = events()
    assert event["status"] == 200
    assert event["state_id"] == str(state.pk)


def test_id_of_a_new_state_is_logged(client: ApiClient, events: Any) -> None:
    new = State(component_id=uuid.uuid4(), environment_id=uuid.uuid4())
    events()

    client.post(path_of(new), document(), "application/json")

    made = State.objects.get(component_id=new.component_id)
    assert events()[0]["state_id"] == str(made.pk)


def test_no_id_stays_for_the_next_request(client: ApiClient, state: State, events: Any) -> None:
    client.get(path_of(state))
    Client(raise_request_exception=False).get("/v1/whoami")
    client.get("/healthz")

    *_, unauthenticated, last = events()
    assert unauthenticated["authentication"] == "missing"
    assert "state_id" not in unauthenticated
    assert {"state_id", "authentication", "token_id", "user"}.isdisjoint(last)


@pytest.mark.parametrize(
    "path", ["/api/v1/states/{}", "/api/v1/states/{}/versions", "/api/v1/states/{}/versions/1"]
)
def test_log_has_ids_from_a_state_path(
    client: ApiClient, state: State, events: Any, path: str
) -> None:
    events()
    assert client.get(path.format(state.pk)).status_code == 200

    assert events()[0]["state_id"] == str(state.pk)


def test_log_has_ids_from_a_cluster_path(
    client: ApiClient, cluster: Cluster, workload: Any, events: Any
) -> None:
    one: Workload = workload()
    root = f"/api/v1/clusters/{cluster.pk}"
    events()
    for path in (root, f"{root}/workloads", f"{root}/workloads/{one.pk}"):
        assert client.get(path).status_code == 200

    found = events()
    assert [event["cluster_id"] for event in found] == [str(cluster.pk)] * 3
    assert found[2]["workload_id"] == str(one.pk)


def test_a_chunked_body_has_no_length(client: ApiClient, events: Any) -> None:
    events()
    client.post("/v1/api-keys", b"{}", "application/json", HTTP_TRANSFER_ENCODING="chunked")

    assert "bytes_in" not in events()[0]


def test_the_reference_names_every_field(client: ApiClient, state: State, events: Any) -> None:
    client.get(path_of(state))
    Client(raise_request_exception=False).get("/v1/whoami")
    logged = {name for event in events() for name in event}

    examples = map(json.loads, re.findall(r"^```json\n(.+)\n```$", LOGS, re.MULTILINE))
    (example,) = [line for line in examples if line["event"] == "request"]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", LOGS, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    common = {"event", "level", "time", "request_id"}

    assert logged - common <= documented
    assert example.keys() - common <= documented
    # Those that this test has not provoked.
    assert documented - logged == {"cluster_id"}
