"""Everyday use of Terraform, with the real binary."""

from __future__ import annotations

import json

import pytest

from tests.e2e.backend import Backend
from tests.e2e.conftest import MakeTerraform
from tests.e2e.database import problems, versions_of

pytestmark = pytest.mark.terraform

TWO = """
resource "terraform_data" "a" { input = "first" }
resource "terraform_data" "b" { input = "second" }
output "a" { value = terraform_data.a.output }
"""


def numbers(backend: Backend) -> list[int]:
    """Return the serials of the stored versions, oldest first."""
    return [version["serial"] for version in versions_of(backend)]


def test_apply_is_stored_and_the_next_plan_is_clean(
    terraform: MakeTerraform, backend: Backend
) -> None:
    tf = terraform(TWO)
    assert backend.get().status == 404  # init stores nothing

    assert "Resources: 2 added, 0 changed, 0 destroyed" in tf.apply().out

    stored = backend.get()
    assert stored.status == 200
    assert stored.body == tf.pulled()
    assert tf.resources() == ["terraform_data.a", "terraform_data.b"]
    tf.run("plan", "-detailed-exitcode", code=0)
    assert backend.holder() is None
    assert numbers(backend) == [stored.json()["serial"]]  # the plan pushed nothing


def test_another_directory_sees_the_same_state(terraform: MakeTerraform) -> None:
    terraform(TWO).apply()
    terraform(TWO).run("plan", "-detailed-exitcode", code=0)


def test_change_and_destroy_succeed(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(TWO)
    tf.apply()
    tf.write(TWO.replace("first", "changed"))
    tf.run("plan", "-detailed-exitcode", code=2)
    assert "Resources: 0 added, 1 changed, 0 destroyed" in tf.apply().out
    assert tf.pull()["outputs"]["a"]["value"] == "changed"

    assert "Resources: 2 destroyed" in tf.run("destroy", "-auto-approve").out

    # Terraform keeps an empty state: the record and its history stay.
    assert backend.get().json()["resources"] == []
    serials = numbers(backend)
    assert serials == sorted(set(serials))
    assert problems(backend) == []


def test_state_mv_and_rm_work(terraform: MakeTerraform) -> None:
    tf = terraform(TWO)
    tf.apply()
    tf.run("state", "mv", "terraform_data.a", "terraform_data.moved")
    assert tf.resources() == ["terraform_data.b", "terraform_data.moved"]
    tf.run("state", "rm", "terraform_data.b")
    assert tf.resources() == ["terraform_data.moved"]


def test_import_works(terraform: MakeTerraform) -> None:
    tf = terraform('resource "terraform_data" "found" {}')
    tf.run("import", "terraform_data.found", "an-id-of-elsewhere")
    (resource,) = tf.pull()["resources"]
    assert resource["instances"][0]["attributes"]["id"] == "an-id-of-elsewhere"
    tf.run("plan", "-detailed-exitcode", code=0)


def test_state_push_takes_a_newer_state_and_refuses_an_older(
    terraform: MakeTerraform, backend: Backend
) -> None:
    tf = terraform(TWO)
    tf.apply()
    older = tf.pull()
    newer = {**older, "serial": older["serial"] + 7, "resources": []}
    (tf.directory / "newer.json").write_text(json.dumps(newer))
    (tf.directory / "older.json").write_text(json.dumps(older))

    tf.run("state", "push", "newer.json")
    assert tf.resources() == []
    refused = tf.run("state", "push", "older.json", code=1)
    assert "cannot import state with serial" in refused.out
    first, second = numbers(backend)
    assert (first, second) == (older["serial"], tf.pull()["serial"])
    assert second >= newer["serial"]  # Terraform itself may raise it


def test_state_push_force_of_an_older_file(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(TWO)
    tf.apply()
    older = tf.pull()
    (tf.directory / "older.json").write_text(json.dumps(older))
    tf.write(TWO.replace("first", "changed"))
    tf.apply()

    tf.run("state", "push", "-force", "older.json")

    assert tf.pull()["outputs"]["a"]["value"] == "first"
    # A serial repeats, with other content each time, and every content is kept.
    tf.apply()
    assert tf.pull()["outputs"]["a"]["value"] == "changed"
    serials = numbers(backend)
    assert len(serials) > len(set(serials))
    assert problems(backend) == []


def test_state_push_force_of_another_lineage(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(TWO)
    tf.apply()
    other = {**tf.pull(), "lineage": "another", "serial": 1, "resources": []}
    (tf.directory / "other.json").write_text(json.dumps(other))
    assert "unrelated state" in tf.run("state", "push", "other.json", code=1).out
    tf.run("state", "push", "-force", "other.json")
    assert tf.pull()["lineage"] == "another"


def test_local_state_is_migrated_to_the_service(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(TWO, init=False)
    (tf.directory / "backend.tf").unlink()
    tf.run("init")
    tf.apply()
    local = json.loads((tf.directory / "terraform.tfstate").read_text())

    tf.use_backend(backend.address)
    tf.run("init", "-migrate-state", "-force-copy")

    stored = backend.get().json()
    # Terraform gives the migrated state a new lineage.
    assert (stored["outputs"], stored["resources"]) == (local["outputs"], local["resources"])
    assert backend.holder() is None
    tf.run("plan", "-detailed-exitcode", code=0)


def test_state_is_migrated_back_to_a_local_file(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(TWO)
    tf.apply()
    (tf.directory / "backend.tf").unlink()
    tf.run("init", "-migrate-state", "-force-copy")
    local = json.loads((tf.directory / "terraform.tfstate").read_text())
    assert local["resources"] == backend.get().json()["resources"]


def test_remote_state_data_source_reads_outputs(
    terraform: MakeTerraform, backend: Backend, token: str, reader_token: str
) -> None:
    terraform(TWO).apply()
    consumer = Backend(backend.server, token)
    tf = terraform(
        f"""
        data "terraform_remote_state" "other" {{
          backend = "http"
          config  = {{ address = "{backend.address}", password = "{reader_token}" }}
        }}
        output "copied" {{ value = data.terraform_remote_state.other.outputs.a }}
        """,
        address=consumer.address,
    )
    tf.apply()
    assert tf.raw("output", "-raw", "copied") == b"first"
    # The service knows the consumers of each state.
    backend.server.run_commands(("index_states",))
    path = f"/api/v1/states?filter=field[%27component_id%27]=%27{backend.component_id}%27"
    (read,) = backend.server.request("GET", path, token=token).json()["states"]
    path = f"/api/v1/states/{read['id']}/dependencies"
    (reader,) = backend.server.request("GET", path, token=token).json()["read_by"]
    assert reader["state"]["component_id"] == str(consumer.component_id)
    assert reader["address"] == "data.terraform_remote_state.other"


@pytest.mark.parametrize("suffix", ["", "/"], ids=["plain", "final-slash"])
def test_final_slash_is_the_same_state(
    terraform: MakeTerraform, backend: Backend, suffix: str
) -> None:
    tf = terraform(TWO, address=backend.address + suffix)
    tf.apply()
    assert backend.get().body == backend.send("GET", suffix="/").body == tf.pulled()
    assert backend.holder() is None


@pytest.mark.parametrize("suffix", ["/lock", "/lock/"])
def test_lock_by_post_and_unlock_by_delete(
    terraform: MakeTerraform, backend: Backend, suffix: str
) -> None:
    tf = terraform(TWO, init=False)
    tf.use_backend(backend.address, backend.address + suffix)
    tf.environment |= {"TF_HTTP_LOCK_METHOD": "POST", "TF_HTTP_UNLOCK_METHOD": "DELETE"}
    tf.run("init")
    tf.apply()
    assert backend.get().status == 200
    assert backend.holder() is None

    lock_id = "0c4fd6a3-9f5b-4c43-ae9c-7d5b6b3f6d13"
    assert backend.lock(lock_id, Who="bob@desk").status == 200
    assert f"already locked: ID={lock_id}" in tf.apply(code=1).out
    tf.run("force-unlock", "-force", lock_id)
    assert backend.holder() is None
