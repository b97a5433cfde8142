"""Restoring versions, with the real Terraform."""

from __future__ import annotations

import uuid

import pytest

from tests.e2e.backend import Backend
from tests.e2e.conftest import MakeTerraform
from tests.e2e.history import History
from tests.support.server import LiveServer

pytestmark = pytest.mark.terraform

ONE = """
variable "secret" {
  default   = "correct-horse-battery"
  sensitive = true
}
resource "terraform_data" "exact" {
  input = { n = 0.1234567890123456789012345, size = %d, secret = var.secret }
}
resource "terraform_data" "many" {
  for_each = toset(["a b", "c"])
  input    = each.key
}
output "secret" {
  value     = var.secret
  sensitive = true
}
"""
TWO = """
resource "terraform_data" "other" { input = "other" }
"""


@pytest.fixture
def all_token(live: LiveServer) -> str:
    return live.token("state:read", "state:write", "state:admin", "state:secrets")


@pytest.fixture
def backend(live: LiveServer, all_token: str) -> Backend:
    return Backend(live, all_token)


def test_a_restored_state_is_taken_at_once(terraform: MakeTerraform, backend: Backend) -> None:
    """The plan is empty for the configuration of the old version."""
    tf = terraform(ONE % 1)
    tf.apply()
    first = backend.get()
    tf.write(TWO)
    tf.apply()
    history = History(backend)
    numbers = [version["number"] for version in history.versions()]
    old = next(n for n in numbers if history.document(n).body == first.body)

    answer = history.call(f"/versions/{old}:restore", reason="the wrong configuration")

    assert answer.status == 200
    version = answer.json()["version"]
    assert version["number"] == numbers[0] + 1
    before, after = first.body.splitlines(), backend.get().body.splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert changed == [
        (b'  "serial": %d,' % first.json()["serial"], b'  "serial": %d,' % version["serial"])
    ]
    assert b"0.1234567890123456789012345" in backend.get().body
    tf.write(ONE % 1)
    tf.run("plan", "-detailed-exitcode", code=0)

    # Work continues from it: the next apply is stored above it.
    tf.write(ONE % 2)
    assert "Resources: 0 added, 1 changed, 0 destroyed" in tf.apply().out
    assert backend.get().json()["serial"] > version["serial"]


def test_restored_state_of_another_lineage_is_accepted(
    terraform: MakeTerraform, backend: Backend
) -> None:
    """A state that was replaced by force: the old content returns with the current lineage."""
    tf = terraform(TWO)
    tf.apply()
    first = backend.get().json()
    other = backend.get().body.replace(first["lineage"].encode(), str(uuid.uuid4()).encode())
    lock = str(uuid.uuid4())
    backend.lock(lock)
    assert backend.push(other, lock).status == 200
    backend.unlock(lock)
    history = History(backend)
    assert len({version["lineage"] for version in history.versions()}) == 2

    oldest = history.versions()[-1]["number"]
    assert history.call(f"/versions/{oldest}:restore").status == 200

    assert backend.get().json()["lineage"] != first["lineage"]
    tf.apply()


def test_not_under_somebody_elses_lock(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(TWO)
    tf.apply()
    lock = str(uuid.uuid4())
    backend.lock(lock)
    history = History(backend)

    answer = history.call("/versions/1:restore")

    assert (answer.status, answer.reason, answer.json()["ID"]) == (423, "STATE_LOCKED", lock)
    assert history.call("/versions/1:restore", lock_id=lock).status == 200


def test_force_unlock_frees_a_state_that_terraform_could_not_lock(
    terraform: MakeTerraform, backend: Backend
) -> None:
    tf = terraform(TWO)
    tf.apply()
    lock = str(uuid.uuid4())
    backend.lock(lock)
    assert "Error acquiring the state lock" in tf.apply(code=1).out

    assert History(backend).call(":force-unlock", reason="a dead runner").status == 200

    tf.apply()


def test_deleted_state_is_restored(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(TWO)
    tf.apply()
    history = History(backend)

    assert backend.server.request("DELETE", history.root, token=backend.token).status == 204
    assert "No state file was found" in tf.run("state", "list", code=1).out

    assert history.call(":undelete").status == 200
    tf.run("plan", "-detailed-exitcode", code=0)


def test_diff_shows_changes_and_masks_secrets(
    terraform: MakeTerraform, backend: Backend, writer_token: str
) -> None:
    tf = terraform(ONE % 1)
    tf.apply()
    tf.write((ONE % 1).replace("correct-horse-battery", "tr0ub4dor-and-three"))
    tf.apply()
    reader = History(backend.with_token(writer_token))
    newest, *_, oldest = reader.versions()

    diff = reader.get(f"/versions/{newest['number']}/diff?against={oldest['number']}")
    outputs = reader.get("/outputs")

    for answer in (diff, outputs, reader.get("/resources")):
        assert answer.status == 200
        assert b"tr0ub4dor" not in answer.body
        assert b"correct-horse" not in answer.body
    assert reader.document(newest["number"]).status == 403
    assert outputs.json()["outputs"][0]["value"] == "(sensitive value)"
    assert b"tr0ub4dor-and-three" in History(backend).get("/outputs").body
