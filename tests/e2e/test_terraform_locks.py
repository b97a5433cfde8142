"""Locks in practice: a concurrent user, a killed command, four simultaneous applies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from pathlib import Path

import pytest

from tests.e2e.backend import Backend
from tests.e2e.conftest import MakeTerraform
from tests.e2e.database import problems, snapshot, versions_of
from tests.e2e.named import Named
from tests.e2e.terraform import Terraform, ended
from tests.support.server import LiveServer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.terraform

ONE = 'resource "terraform_data" "a" { input = "first" }'
# The first resource exists before the second is awaited.
SLOW = """
resource "terraform_data" "first" { input = "made" }
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "touch running; exec sleep %s" }
}
"""
FOUR = """
resource "terraform_data" "it" {
  for_each = toset(["0", "1", "2", "3"])
  input    = each.key
}
"""


def start_slow_apply(tf: Terraform, seconds: int = 60) -> subprocess.Popen[str]:
    """Start an apply, and return while it is in progress."""
    tf.write(SLOW % seconds)
    process = tf.start("apply", "-auto-approve")
    wait_until((tf.directory / "running").exists)
    return process


def test_refused_while_another_holds_the_lock(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(ONE)
    lock_id = str(uuid.uuid4())
    assert backend.lock(lock_id, Who="ada@laptop", Operation="OperationTypePlan").status == 200

    refused = tf.apply(code=1).out

    # Terraform prints only the ID of the owner's lock; the "Lock Info" below it is its own.
    assert f"HTTP remote state already locked: ID={lock_id}" in refused
    assert backend.get().status == 404
    assert backend.unlock(lock_id).status == 200
    tf.apply()


def test_the_message_names_terraform_itself(terraform: MakeTerraform, backend: Backend) -> None:
    worker, other = terraform(), terraform(ONE)
    process = start_slow_apply(worker)
    holder = backend.holder()
    assert holder is not None
    refused = other.apply(code=1).out
    os.killpg(process.pid, signal.SIGINT)
    ended(process)
    assert f"HTTP remote state already locked: ID={holder['ID']}" in refused
    assert holder["Operation"] == "OperationTypeApply"


def refused_locks(log: Path, path: str) -> int:
    lines = [line for line in log.read_text().splitlines() if path in line]
    events = [json.loads(line) for line in lines]
    return sum(event["method"] == "LOCK" and event["status"] == 423 for event in events)


def test_lock_timeout_waits_for_the_lock(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(ONE)
    lock_id = str(uuid.uuid4())
    assert backend.lock(lock_id).status == 200
    process = tf.start("apply", "-auto-approve", "-lock-timeout=30s")
    wait_until(lambda: refused_locks(backend.server.log, backend.path) > 0)
    assert process.poll() is None
    assert backend.unlock(lock_id).status == 200
    done = ended(process)
    assert (done.code, backend.get().status) == (0, 200)


def test_lock_timeout_ends(terraform: MakeTerraform, backend: Backend) -> None:
    lock_id = str(uuid.uuid4())
    assert backend.lock(lock_id).status == 200
    refused = terraform(ONE).apply("-lock-timeout=1s", code=1).out
    assert f"HTTP remote state already locked: ID={lock_id}" in refused


def test_force_unlock(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(ONE)
    lock_id = str(uuid.uuid4())
    assert backend.lock(lock_id).status == 200
    (state,) = snapshot(backend.server, backend).states
    tf.run("force-unlock", "-force", lock_id)
    found = snapshot(backend.server)
    assert found.state(backend.component_id, backend.environment_id) is None  # never pushed
    assert found.events["state.force_unlock", str(state["id"])] == 1


def test_force_unlock_needs_the_right_to(
    terraform: MakeTerraform, backend: Backend, writer_token: str
) -> None:
    tf = terraform(ONE, password=writer_token)
    lock_id = str(uuid.uuid4())
    assert backend.lock(lock_id).status == 200
    assert "403" in tf.run("force-unlock", "-force", lock_id, code=1).out
    assert backend.holder() is not None


def test_a_block_without_lock_address(
    terraform: MakeTerraform, live: LiveServer, token: str
) -> None:
    """An environment that requires a lock refuses its push, and accepts it if the block has one."""
    named = Named(live, token)
    environment = {"name": named.names[-1], "require_lock": True}
    body = json.dumps({"environment": environment}).encode()
    headers = {"Content-Type": "application/json"}
    created = live.request("POST", "/api/v1/environments", body, token=token, headers=headers)
    assert created.status == 201
    tf = terraform(ONE, init=False)
    block = f'terraform {{\n  backend "http" {{ address = "{named.address}" }}\n}}\n'
    (tf.directory / "backend.tf").write_text(block)
    tf.run("init")

    output = tf.apply(code=1).out
    assert "Failed to save state" in output
    assert "HTTP error: 409" in output
    assert named.get().status == 404

    tf.use_backend(named.address)
    tf.run("init", "-reconfigure")
    tf.run("state", "push", "errored.tfstate")
    tf.run("plan", "-detailed-exitcode", code=0)
    tf.write(ONE.replace("first", "second"))
    assert "HTTP error: 409" in tf.apply("-lock=false", code=1).out
    (tf.directory / "errored.tfstate").unlink()
    tf.apply()
    assert named.holder() is None
    refusals = [line for line in live.log.read_text().splitlines() if named.path in line]
    assert sum('"reason":"LOCK_REQUIRED"' in line for line in refusals) == 2


def run_four(terraform: MakeTerraform, *arguments: str) -> list[int]:
    """Apply an instance each, in four directories at the same moment; return the exit codes."""
    directories = [terraform(FOUR) for _ in range(4)]
    processes = [
        tf.start("apply", "-auto-approve", *arguments, f'-target=terraform_data.it["{i}"]')
        for i, tf in enumerate(directories)
    ]
    done = [ended(process) for process in processes]
    assert all(d.code == 0 or "Error acquiring the state lock" in d.out for d in done)
    return [d.code for d in done]


def check_four(backend: Backend, codes: list[int]) -> None:
    """Each successful apply is in the state, no other is, and no serial was used twice."""
    stored = backend.get().json()
    (resource,) = stored["resources"]
    found = sorted(instance["index_key"] for instance in resource["instances"])
    assert found == [str(i) for i, code in enumerate(codes) if code == 0]
    versions = versions_of(backend)
    serials = [version["serial"] for version in versions]
    assert serials == sorted(set(serials))
    assert stored["serial"] == serials[-1]
    assert len({version["lineage"] for version in versions}) == 1
    assert backend.holder() is None
    assert problems(backend) == []


def test_four_applies_at_once_queue(terraform: MakeTerraform, backend: Backend) -> None:
    codes = run_four(terraform, "-lock-timeout=110s")
    assert codes == [0, 0, 0, 0]
    check_four(backend, codes)


def test_four_applies_at_once_without_patience(terraform: MakeTerraform, backend: Backend) -> None:
    codes = run_four(terraform)
    assert set(codes) <= {0, 1}
    assert 0 in codes
    check_four(backend, codes)


def test_killed_in_the_middle_of_an_apply(terraform: MakeTerraform, backend: Backend) -> None:
    tf, other = terraform(), terraform(ONE)
    process = start_slow_apply(tf)
    holder = backend.holder()
    assert holder is not None
    os.killpg(process.pid, signal.SIGKILL)
    assert ended(process).code == -signal.SIGKILL

    assert backend.holder() == holder  # it stays: the end of the work is unknown
    assert f"already locked: ID={holder['ID']}" in other.apply(code=1).out
    other.run("force-unlock", "-force", holder["ID"])
    other.apply()
    assert "terraform_data.a" in other.resources()
    assert backend.holder() is None
    assert problems(backend) == []


def test_ctrl_c_in_an_apply(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform()
    process = start_slow_apply(tf)
    os.killpg(process.pid, signal.SIGINT)
    done = ended(process)

    assert done.code == 1
    assert "Interrupt received" in done.out
    assert backend.holder() is None
    assert "terraform_data.first" in tf.resources()  # finished work is kept
    tf.write(SLOW % 0)
    tf.apply()
    tf.run("plan", "-detailed-exitcode", code=0)
    assert problems(backend) == []


def test_broken_lock_must_not_write(terraform: MakeTerraform, backend: Backend) -> None:
    tf, other = terraform(), terraform(ONE)
    process = start_slow_apply(tf, seconds=1)
    holder = backend.holder()
    assert holder is not None
    other.run("force-unlock", "-force", holder["ID"])
    other.apply()
    stored = backend.get().body

    done = ended(process)

    assert done.code == 1
    assert "409" in done.out
    assert backend.get().body == stored
    # Nothing is lost: Terraform saved its state to a file, and a person decides.
    left = json.loads((tf.directory / "errored.tfstate").read_text())
    assert {resource["name"] for resource in left["resources"]} == {"first", "slow"}
    tf.run("state", "push", "-force", "errored.tfstate")
    assert tf.resources() == ["terraform_data.first", "terraform_data.slow"]
