"""The service on a Citus cluster, whose workers store the largest tables."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from infra_service.lib.database import citus
from infra_service.operations import distribution
from infra_service.operations.checks import tables_are_distributed
from states.keeping.attempts import OUTAGE
from tests.e2e.backend import Backend, document, lock_info
from tests.e2e.together import Call, at_once
from tests.infra_service.webhooks.receiver import receiving
from tests.states.samples import instance, resource, state
from tests.states.test_cluster_objects import deployment
from tests.support.citus import CitusServer, needs_citus
from tests.support.server import Answer, running
from tests.workloads.records import healthy

_SCOPES = (
    "state:read", "state:write", "state:admin", "state:outputs", "state:secrets",
    "cluster:read", "cluster:write", "audit:read", "webhook:write",
)  # fmt: skip
_IMAGE = "registry.example/web:1"


@pytest.fixture(scope="module")
def server() -> Iterator[CitusServer]:
    with tempfile.TemporaryDirectory(prefix="infra-citus-") as directory:
        environment = {"WEBHOOK_NETWORKS": "127.0.0.0/8", "WEBHOOK_HEALTH_CHANGED_MINUTES": "0"}
        cluster = CitusServer(Path(directory), **environment)
        with running(cluster):
            yield cluster


@pytest.fixture(scope="module")
def token(server: CitusServer) -> str:
    return server.token(*_SCOPES)


@pytest.fixture
def backend(server: CitusServer, token: str) -> Backend:
    return Backend(server, token)


def ok(answer: Answer) -> Answer:
    assert answer.status == 200, answer.body
    return answer


def test_only_a_coordinator_distributes(db: None) -> None:
    with pytest.raises(CommandError, match="extension citus"):
        call_command("distribute")
    assert tables_are_distributed(["default"]) == []


def test_citus_is_not_used_without_the_extension(db: None) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert not citus.is_used()
        assert citus.joins_laterally() == (connection.vendor == "postgresql")
    assert len(captured) == 0


@needs_citus
def test_rows_of_a_state_or_cluster_are_on_one_worker(server: CitusServer) -> None:
    with server.connect() as coordinator:
        found = coordinator.execute(
            "SELECT table_name::text, distribution_column, colocation_id FROM citus_tables"
        ).fetchall()
    assert {name: column.replace("<none>", "") for name, column, _ in found} == distribution.TABLES
    by_column = {(column, colocation) for _, column, colocation in found if column.endswith("_id")}
    assert len({colocation for _, colocation in by_column}) == 1


@needs_citus
def test_an_interrupted_run_is_reported_and_continued(server: CitusServer) -> None:
    with server.connect() as coordinator:
        coordinator.execute("SELECT undistribute_table('workloads_transition')")
    with pytest.raises(Exception, match="exit status 1"):
        server.manage("check", "--database", "default")
    assert json.loads(server.manage("distribute", "--json")) == {
        "distributed": ["workloads_transition"]
    }
    server.manage("check", "--database", "default")


@needs_citus
def test_a_state_from_its_lock_to_its_history(server: CitusServer, backend: Backend) -> None:
    lock_id = str(uuid.uuid4())
    first = state(resource("web", instance({"id": "i-0123456789"})), serial=1)
    second = state(resource("other", instance({"id": "i-0123456789"})), serial=2)
    ok(backend.lock(lock_id))
    for body in (first, second):
        ok(backend.push(body, lock_id))
        assert ok(backend.get()).body == body
    ok(backend.unlock(lock_id))
    server.manage("index_states")

    listed = ok(_get(server, backend, "/api/v1/states")).json()["states"]
    (own,) = [one for one in listed if one["component_id"] == str(backend.component_id)]
    assert own["serial"] == 2
    of_state = f"/api/v1/states/{own['id']}"
    versions = ok(_get(server, backend, f"{of_state}/versions")).json()["versions"]
    assert [one["number"] for one in versions] == [2, 1]
    found = ok(_post(server, backend, "/api/v1/resources:find", {"value": "i-0123456789"})).json()
    assert [one["address"] for one in found["resources"]] == ["thing.other"]
    difference = ok(_get(server, backend, f"{of_state}/versions/2/diff")).json()["diff"]
    assert {one["address"] for one in difference["resources"]} == {"thing.web", "thing.other"}
    changes = ok(_get(server, backend, "/api/v1/changes")).json()["changes"]
    assert {one["address"] for one in changes} >= {"thing.web", "thing.other"}
    ok(_post(server, backend, f"{of_state}/versions/1:restore", {}))
    assert ok(backend.get()).json()["resources"][0]["name"] == "web"


@needs_citus
def test_20_locks_at_once(backend: Backend) -> None:
    for _ in range(5):
        ids = [str(uuid.uuid4()) for _ in range(20)]
        answers = at_once(
            backend, [Call("LOCK", json.dumps(lock_info(one)).encode()) for one in ids]
        )
        assert Counter(one.status for one in answers) == {200: 1, 423: 19}
        (winner,) = (i for i, one in zip(ids, answers, strict=True) if one.status == 200)
        ok(backend.unlock(winner))


@needs_citus
def test_a_version_that_is_not_visible_yet_returns_503(
    server: CitusServer, backend: Backend
) -> None:
    """A worker that crashed between the two phases of a commit shows the version after recovery."""
    ok(backend.push(document()))
    with server.connect() as coordinator:
        of_state = "(SELECT id FROM states_state WHERE component_id = %s)"
        key = coordinator.execute(f"SELECT {of_state}", [backend.component_id]).fetchone()
        coordinator.execute("DELETE FROM states_stateversion WHERE state_id = %s", key)

    answer = backend.get()

    assert (answer.status, answer.reason) == (503, "DATABASE_UNAVAILABLE")


@needs_citus
def test_a_push_needs_only_the_worker_of_its_state(server: CitusServer, backend: Backend) -> None:
    ok(backend.push(document(1)))
    with server.connect() as coordinator:
        of_state = "SELECT id FROM states_state WHERE component_id = %s"
        key = coordinator.execute(of_state, [backend.component_id]).fetchone()
    assert key is not None
    with other_workers_unreachable(server, "states_stateversion", key[0]):
        pushed = backend.push(document(2))
    ok(pushed)
    assert ok(backend.get()).body == document(2)


@needs_citus
def test_a_report_needs_only_the_worker_of_its_cluster(
    server: CitusServer, backend: Backend
) -> None:
    made = _post(server, backend, "/api/v1/clusters", {"name": f"c{uuid.uuid4().hex[:8]}"})
    cluster = made.json()["cluster"]["id"]
    path = f"/api/v1/clusters/{cluster}/workloads"

    def report(*items: dict[str, Any]) -> Answer:
        body = {"reported_at": dt.datetime.now(dt.UTC).isoformat(), "workloads": items}
        return _post(server, backend, path, body, method="PUT")

    container = {"name": "app", "restart_count": 0, "state": "running", "ready": True}
    old, new = ({**container, "image": f"registry.example/{name}:1"} for name in ("old", "new"))
    before = [healthy(name, containers=[old]) for name in ("health", "image", "labels", "removed")]
    ok(report(*before))
    health, image, labels, _ = before
    changed = [
        health | {"health_status": "ERROR"},
        image | {"containers": [new]},
        labels | {"labels": {"team": "a"}},
        healthy("added"),
    ]
    with other_workers_unreachable(server, "workloads_workload", cluster):
        counts = ok(report(*changed)).json()["report"]
    assert (counts["created"], counts["updated"], counts["deleted"]) == (1, 3, 1)
    query = "field['image.repository'] = 'registry.example/new'"
    found = ok(_get(server, backend, path, query)).json()["workloads"]
    assert [one["name"] for one in found] == ["image"]
    path = f"/api/v1/clusters/{cluster}"
    assert server.request("DELETE", path, token=backend.token).status == 204


@needs_citus
def test_commands_continue_without_a_worker(server: CitusServer, token: str) -> None:
    group_of = (
        "SELECT groupid FROM pg_dist_placement, states_state WHERE component_id = %s AND shardid ="
        " get_shard_id_for_distribution_column('states_stateversion', states_state.id)"
    )
    server.manage("index_states")
    # The states of the lost worker are the first, and more than the failures that stop a run.
    last, lost = None, 0
    with server.connect() as coordinator, receiving() as receiver:
        while last is None:
            backend = Backend(server, token)
            ok(backend.push(document()))
            (group,) = coordinator.execute(group_of, [backend.component_id]).fetchone() or (0,)
            lost += group == 1
            last = backend.component_id if group != 1 and lost > OUTAGE else None
        state = "SELECT id, indexed_number FROM states_state WHERE component_id = %s"
        key, _ = coordinator.execute(state, [last]).fetchone() or (None, 0)
        types = ["workload.health_changed", "cluster.create"]
        fields = {"name": "lost", "url": receiver.url, "event_types": types}
        assert _post(server, backend, "/api/v1/webhooks", {"webhook": fields}).status == 201
        clusters: list[str] = []
        while len(clusters) < 8:
            made = _post(server, backend, "/api/v1/clusters", {"name": uuid.uuid4().hex})
            clusters.append(f"/api/v1/clusters/{made.json()['cluster']['id']}")
            now = dt.datetime.now(dt.UTC).isoformat()
            report = {"reported_at": now, "workloads": [healthy()]}
            ok(_post(server, backend, f"{clusters[-1]}/workloads", report, method="PUT"))
        with other_workers_unreachable(server, "states_stateversion", key):
            for command in ("index_states", "deliver_events"):
                with pytest.raises(Exception, match="exit status 1"):
                    server.manage(command)
        assert coordinator.execute(state, [last]).fetchone() == (key, 1)
    assert receiver.types().count("cluster.create") == 8
    for path in clusters:
        assert server.request("DELETE", path, token=token).status == 204


@contextlib.contextmanager
def other_workers_unreachable(server: CitusServer, table: str, key: object) -> Iterator[None]:
    """Let the coordinator reach only the worker of the row with this distribution key."""
    set_port = "UPDATE pg_dist_node SET nodeport = %s WHERE nodeid = %s"
    with server.connect() as coordinator:
        others = coordinator.execute(
            "SELECT nodeport, nodeid FROM pg_dist_node WHERE groupid > 0 AND groupid <>"
            " (SELECT groupid FROM pg_dist_placement WHERE shardid ="
            "   get_shard_id_for_distribution_column(%s, %s::uuid))",
            [table, key],
        ).fetchall()
        assert others
        for _, node in others:
            coordinator.execute(set_port, [1, node])
        try:
            yield
        finally:
            for port, node in others:
                coordinator.execute(set_port, [port, node])


@needs_citus
def test_a_cluster_from_its_report_to_the_summary(server: CitusServer, backend: Backend) -> None:
    made = _post(server, backend, "/api/v1/clusters", {"name": f"c{uuid.uuid4().hex[:8]}"})
    assert made.status == 201
    path = f"/api/v1/clusters/{made.json()['cluster']['id']}/workloads"
    uid = str(uuid.uuid4())
    container = {"name": "app", "image": _IMAGE, "restart_count": 0, "state": "running"}
    items = [healthy("web", uid=uid, containers=[{**container, "ready": True}]), healthy("worker")]
    report = {"reported_at": dt.datetime.now(dt.UTC).isoformat(), "workloads": items}
    ok(_post(server, backend, path, report, method="PUT"))
    thing = resource("web", instance(deployment(uid)), type="kubernetes_deployment_v1")
    ok(backend.push(state(thing)))
    server.manage("index_states")

    total = ok(_get(server, backend, f"{path}:summary")).json()["summary"]["total"]
    assert (total["workloads"], total["workloads_managed"]) == (2, 1)
    fleet = ok(_get(server, backend, "/api/v1/workloads:summary")).json()["summary"]["total"]
    assert fleet["workloads_managed"] == 1
    for query, names in (
        ("", ["web", "worker"]),
        ("field['image.repository'] = 'registry.example/web'", ["web"]),
        ("field['image.repository'] STARTS_WITH 'registry.'", ["web"]),
        ("NOT field['image.digest'] = 'sha256:none'", ["web", "worker"]),
        ("field['image.digest'] IN ('sha256:none', 'sha256:no')", []),
        ("field['managed'] = true", ["web"]),
        ("field['managed'] = false", ["worker"]),
    ):
        found = ok(_get(server, backend, "/api/v1/workloads", query)).json()["workloads"]
        assert sorted(one["name"] for one in found) == names, query


@needs_citus
def test_health_changes_reach_a_webhook_and_the_overview(
    server: CitusServer, backend: Backend
) -> None:
    made = _post(server, backend, "/api/v1/clusters", {"name": f"c{uuid.uuid4().hex[:8]}"})
    cluster = f"/api/v1/clusters/{made.json()['cluster']['id']}"
    overview = "from infra_service.console.overview.clusters import clusters_in_error as found"
    with receiving() as receiver:
        fields = {"name": "health", "url": receiver.url, "event_types": ["workload.health_changed"]}
        assert _post(server, backend, "/api/v1/webhooks", {"webhook": fields}).status == 201
        for health in ("HEALTHY", "ERROR"):
            items = [healthy() | {"health_status": health}]
            report = {"reported_at": dt.datetime.now(dt.UTC).isoformat(), "workloads": items}
            ok(_post(server, backend, f"{cluster}/workloads", report, method="PUT"))
        server.manage_all(
            ("deliver_events",),
            ("shell", "-c", f"{overview}; assert found(5)[0]['example'].name == 'web'"),
        )
    (event,) = [one.payload for one in receiver.received]
    assert [one["name"] for one in event["data"]["workloads"]] == ["web"]
    assert server.request("DELETE", cluster, token=backend.token).status == 204


def _get(server: CitusServer, backend: Backend, path: str, query: str = "") -> Answer:
    suffix = f"?filter={quote(query)}" if query else ""
    return server.request("GET", path + suffix, token=backend.token)


def _post(
    server: CitusServer, backend: Backend, path: str, body: Any, *, method: str = "POST"
) -> Answer:
    headers = {"Content-Type": "application/json"}
    return server.request(
        method, path, json.dumps(body).encode(), token=backend.token, headers=headers
    )
