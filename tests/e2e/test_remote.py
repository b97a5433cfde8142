"""The remote backend, with the real Terraform: each test is a walk, because a process is slow."""

from __future__ import annotations

import json
import os
import re
import signal
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.backend import lock_info
from tests.e2e.remote import ORGANIZATION, RemoteTerraform
from tests.e2e.terraform import BINARY, ended
from tests.support.server import LiveServer, live_server
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.terraform, pytest.mark.long]

TWO = """
resource "terraform_data" "a" { input = "first" }
resource "terraform_data" "b" { input = "second" }
output "a" { value = terraform_data.a.output }
output "secret" {
  value     = "correct-horse-battery"
  sensitive = true
}
"""
SLOW = """
resource "terraform_data" "slow" {
  provisioner "local-exec" { command = "touch started; sleep 60" }
}
"""
READS = """
data "terraform_remote_state" "network" {
  backend = "remote"
  config = {
    hostname     = "infra.example"
    organization = "acme"
    workspaces   = { name = "network-prod" }
  }
}
output "a" { value = data.terraform_remote_state.network.outputs.a }
"""
SCOPES = "state:read,state:write,state:admin"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(REMOTE_BACKEND="true", REMOTE_ORGANIZATION=ORGANIZATION) as server:
        yield server


@pytest.fixture(scope="module")
def tokens(server: LiveServer) -> list[str]:
    return server.tokens(SCOPES, "state:read,state:write")


Make = Callable[..., RemoteTerraform]


@pytest.fixture
def make(server: LiveServer, tokens: list[str], tmp_path: Path) -> Make:
    """``make(configuration, 'name = "network-prod"')``: an initialized working directory."""
    if BINARY is None:
        pytest.skip("neither terraform nor tofu is on the PATH")
    made: list[RemoteTerraform] = []

    def make(configuration: str, workspaces: str, token: int = 0) -> RemoteTerraform:
        directory = tmp_path / f"tf{len(made)}"
        one = RemoteTerraform(directory, server, tokens[token])
        made.append(one)
        one.use_remote(workspaces)
        one.write(configuration)
        return one

    return make


def stored(server: LiveServer, token: str, path: str) -> bytes:
    answer = server.request("GET", f"/api/v1/state/at/{path}", token=token)
    assert answer.status == 200, answer.body
    return answer.body


def test_apply_and_both_backends(make: Make, server: LiveServer, tokens: list[str]) -> None:
    tf = make(TWO, 'name = "network-prod"')
    tf.run("init")
    assert "Resources: 2 added" in tf.apply().out
    tf.run("plan", "-detailed-exitcode", code=0)
    assert tf.pulled() == stored(server, tokens[0], "network/prod")

    tf.run("state", "mv", "terraform_data.a", "terraform_data.moved")
    tf.run("state", "rm", "terraform_data.b")
    assert tf.resources() == ["terraform_data.moved"]
    older = {**tf.pull(), "serial": 1, "resources": []}
    (tf.directory / "older.json").write_text(json.dumps(older))
    assert "cannot import state" in tf.run("state", "push", "older.json", code=1).out
    tf.run("state", "push", "-force", "older.json")
    assert tf.resources() == []

    # A lock of the http backend stops the remote backend; the reverse is a unit test.
    lock, path = json.dumps(lock_info(uuid.uuid4())).encode(), "/api/v1/state/at/network/prod"
    assert server.request("LOCK", path, lock, token=tokens[0]).status == 200
    refused = tf.apply(code=1).out
    assert "workspace already locked" in refused
    tf.run("force-unlock", "-force", f"{ORGANIZATION}/network-prod")

    reader = make(READS, 'name = "reader-prod"', token=1)
    reader.run("init")
    reader.apply()
    assert reader.pull()["outputs"]["a"]["value"] == "first"


def test_workspaces_by_prefix(make: Make, server: LiveServer, tokens: list[str]) -> None:
    tf = make(TWO, 'prefix = "app-"')
    assert "No existing workspaces" in tf.run("init", code=1).out
    tf.run("workspace", "new", "dev")
    tf.run("init")
    tf.run("workspace", "new", "staging")
    assert tf.run("workspace", "list").out.replace("* ", "").split() == ["dev", "staging"]
    tf.apply()
    assert json.loads(stored(server, tokens[0], "app/staging"))["outputs"]["a"]["value"] == "first"
    tf.run("workspace", "select", "dev")
    assert "not empty" in tf.run("workspace", "delete", "staging", code=1).out
    tf.run("workspace", "select", "staging")
    tf.run("destroy", "-auto-approve")
    tf.run("workspace", "select", "dev")
    tf.run("workspace", "delete", "staging")
    assert "staging" not in tf.run("workspace", "list").out


def test_the_cloud_block_with_tags(make: Make, server: LiveServer, tokens: list[str]) -> None:
    named = make(TWO, "")
    named.use_cloud('name = "shop-dev"')
    named.run("init")
    named.apply()
    assert named.run("output", "-raw", "a").out == "first"

    # The client asks for a name unless a workspace with the tags exists.
    tags = [{"type": "tag-bindings", "attributes": {"key": "team", "value": "shop"}}]
    data = {"attributes": {"name": "shop-qa"}, "relationships": {"tag-bindings": {"data": tags}}}
    path, body = f"/api/v2/organizations/{ORGANIZATION}/workspaces", json.dumps({"data": data})
    assert server.request("POST", path, body.encode(), token=tokens[0]).status == 201
    tf = make(TWO, "")
    tf.use_cloud('tags = { team = "shop" }')
    tf.run("init")
    tf.run("workspace", "new", "shop-prod")
    tf.apply()
    assert tf.run("workspace", "list").out.replace("* ", "").split() == ["shop-prod", "shop-qa"]


def test_login_opens_the_form_of_a_new_token(
    make: Make, server: LiveServer, tokens: list[str]
) -> None:
    tf = make(TWO, 'name = "login-prod"')
    assert "/app/settings/tokens?source=terraform-login" in tf.log_in(tokens[0])
    redirect = server.request("GET", "/app/settings/tokens?source=terraform-login")
    assert (redirect.status, redirect.headers["Location"]) == (
        302,
        "/admin/apikeys/accesstoken/add/",
    )
    tf.run("init")


OPENING = [
    "GET ping",
    "GET organizations/acme/entitlement-set",
    "GET organizations/acme/workspaces/counted-prod",
    "GET organizations/acme/workspaces/counted-prod",
    "POST workspaces/ID/actions/lock",
    "GET workspaces/ID/current-state-version",
    "GET state-versions/ID/download",
    "POST workspaces/ID/state-versions",
]
CLOSING = ["GET state-versions/ID", "POST workspaces/ID/actions/unlock"]


def test_requests_of_an_apply(make: Make, server: LiveServer) -> None:
    """The requests and round trips are the same as in docs/explanation/performance.md."""
    for block, uploads in (
        ("remote", ["PUT state-versions/upload"]),
        ("cloud", ["PUT state-versions/json-upload", "PUT state-versions/upload"]),
    ):
        tf = make(TWO, 'name = "counted-prod"')
        if block == "cloud":
            tf.use_cloud('name = "counted-prod"')
        tf.run("init")
        tf.apply()
        tf.write(TWO.replace("first", block))
        before = server.log.stat().st_size
        tf.apply()

        with server.log.open() as log:
            log.seek(before)
            events = [json.loads(line) for line in log if '"event":"request"' in line]
        sent = [
            f"{event['method']} {re.sub('(ws|sv)-[0-9a-f-]+', 'ID', event['path'][8:])}"
            for event in events
        ]
        opening, closing = sent[: len(OPENING)], sent[-len(CLOSING) :]
        assert (opening, closing) == (OPENING, CLOSING)
        assert sorted(sent[len(OPENING) : -len(CLOSING)]) == uploads
        if os.environ.get("DATABASE_URL"):  # SQLite has more statements, and no network
            assert sum(event["queries"] for event in events) == 14


def test_an_apply_without_the_lock_is_refused(make: Make) -> None:
    tf = make(TWO, 'name = "unlocked-prod"')
    tf.run("init")
    refused = tf.apply("-lock=false", code=1).out
    assert "Conflict The token has not locked the workspace. Run Terraform without" in refused
    assert tf.pull()["resources"] == []

    tf.run("state", "push", "errored.tfstate")
    tf.run("plan", "-lock=false", "-detailed-exitcode", code=0)
    assert len(tf.resources()) == 2


def test_a_killed_apply_and_force_unlock(make: Make) -> None:
    tf = make(SLOW, 'name = "killed-prod"')
    tf.run("init")
    process = tf.start("apply", "-auto-approve")
    wait_until((tf.directory / "started").exists, seconds=60)
    os.killpg(process.pid, signal.SIGKILL)
    ended(process)

    other = make(TWO, 'name = "killed-prod"', token=1)
    other.run("init")
    assert f'lock ID: "{ORGANIZATION}/killed-prod"' in other.apply(code=1).out
    tf.run("force-unlock", "-force", f"{ORGANIZATION}/killed-prod")
    other.apply()


def test_twenty_simultaneous_locks(server: LiveServer, tokens: list[str]) -> None:
    data = {"type": "workspaces", "attributes": {"name": "crowd-prod"}}
    body = json.dumps({"data": data}).encode()
    path = f"/api/v2/organizations/{ORGANIZATION}/workspaces"

    def post(path: str, body: bytes | None = None) -> int:
        return server.request("POST", path, body, token=tokens[0]).status

    with ThreadPoolExecutor(20) as crowd:
        created = list(crowd.map(lambda _: post(path, body), range(20)))
        assert sorted(created) == [201] + [422] * 19
        found = server.request("GET", f"{path}/crowd-prod", token=tokens[0]).json()["data"]
        lock = f"/api/v2/workspaces/{found['id']}/actions/lock"
        granted = list(crowd.map(lambda _: post(lock), range(20)))
    assert sorted(granted) == [200] + [409] * 19


def test_migration_from_http_and_back(make: Make, server: LiveServer, tokens: list[str]) -> None:
    tf = make(TWO, "")
    tf.use_backend(f"{server.url}/api/v1/state/at/old/prod")
    tf.run("init")
    tf.apply()
    tf.use_remote('name = "moved-prod"')
    tf.run("init", "-migrate-state", "-force-copy")
    tf.run("plan", "-detailed-exitcode", code=0)
    assert json.loads(stored(server, tokens[0], "moved/prod"))["lineage"] == tf.pull()["lineage"]

    tf.use_backend(f"{server.url}/api/v1/state/at/back/prod")
    tf.run("init", "-migrate-state", "-force-copy")
    tf.run("plan", "-detailed-exitcode", code=0)
    assert len(json.loads(stored(server, tokens[0], "back/prod"))["resources"]) == 2
