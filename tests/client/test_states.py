"""Commands for states, in a bare interpreter against the real service."""

from __future__ import annotations

import hashlib
import json
import socket
import stat
import uuid
from pathlib import Path

import pytest

from tests.client.conftest import SomeState
from tests.client.front import Front, passed
from tests.client.running import Client
from tests.e2e.backend import document
from tests.states.samples import AFTER, BEFORE, instance, resource
from tests.states.samples import state as sample
from tests.support.server import LiveServer

PRECISE = "0.1234567890123456789012345"


@pytest.mark.both
def test_a_state_from_its_import_to_its_export(client: Client, state: SomeState) -> None:
    file = client.home / "terraform.tfstate"
    file.write_bytes(BEFORE)
    assert "is the document" in client.run("import", file.name, state.name).stdout
    file.write_bytes(AFTER)
    client.run("import", file.name, state.name)

    shown = client.json("show", state.name)
    assert [version["number"] for version in shown["versions"]] == [2, 1]
    assert state.name in client.run("states", "--limit", "5").stdout
    assert "size" in client.run("outputs", state.name).stdout
    changed = client.run("diff", state.name).stdout
    assert "~ terraform_data.plain\n    ~ input.size: 1 → 2\n" in changed
    assert client.json("diff", state.name)["summary"]["resources"]["changed"] == 7
    assert "frozen" in client.run("freeze", state.name, "--reason", "upgrade, ask ada").stdout
    assert client.json("states", "--frozen", "--component", state.name.split("/")[0])
    client.run("import", file.name, state.name, code=5)
    client.run("unfreeze", state.name)

    client.run("export", state.name, "--to", "exported")
    exported = client.home / "exported" / f"{state.name}.tfstate"
    assert exported.read_bytes() == AFTER
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    assert not state.is_locked()


def test_a_lock_is_listed_and_released_with_a_reason(client: Client, state: SomeState) -> None:
    state.push(BEFORE)
    lock_id = state.lock()

    assert lock_id in client.run("locks").stdout
    assert "ada@laptop since" in client.run("show", state.name).stdout
    # A program that has not seen the lock cannot release it.
    assert "--lock-id" in client.run("unlock", state.name, "--reason", "gone", code=2).stderr
    other = str(uuid.uuid4())
    client.run("unlock", state.name, "--reason", "gone", "--lock-id", other, code=5)
    assert state.is_locked()
    client.run("unlock", state.name, "--reason", "gone", "--lock-id", lock_id)

    assert not state.is_locked()
    assert "is not locked" in client.run("unlock", state.name, "--reason", "gone", code=5).stderr


@pytest.mark.parametrize(("typed", "code", "locked"), [("y\n", 0, False), ("\n", 1, True)])
def test_a_person_confirms_the_release(
    client: Client, state: SomeState, typed: str, code: int, locked: bool
) -> None:
    state.push(BEFORE)
    state.lock()

    shown = client.on_terminal("unlock", state.name, "--reason", "x", typed=typed, code=code)

    assert "Release the lock of ada@laptop since " in shown
    assert state.is_locked() is locked


def test_names_that_fit_two_applications_are_refused(
    client: Client, live: LiveServer, state: SomeState
) -> None:
    full = [SomeState(live, state.token, f"{word}-shop/{state.name}") for word in "ab"]
    for one in full:
        one.push(BEFORE)

    refused = client.run("show", state.name, code=2).stderr

    assert "is ambiguous: " in refused
    assert full[0].name in refused
    assert full[1].name in refused
    shown = client.json("show", full[0].name)["state"]
    assert shown["application_slug"] == "a-shop"
    assert client.json("show", shown["id"])["state"] == shown


def test_a_unique_name_needs_no_application(
    client: Client, live: LiveServer, state: SomeState
) -> None:
    full = SomeState(live, state.token, f"shop/{state.name}")
    full.push(BEFORE)

    assert full.name in client.run("show", state.name).stdout
    assert full.path in client.run("backend", state.name).stdout


def test_unknown_and_malformed_names(client: Client) -> None:
    assert "There is no state no/such" in client.run("show", "no/such", code=4).stderr
    client.run("show", str(uuid.uuid4()), code=4)
    for name in ("one", "a/b/c/d", "Net/prod", "net/../prod", "net/'prod"):
        assert "is not a state" in client.run("show", name, code=2).stderr


def test_numbers_keep_their_digits(client: Client, state: SomeState) -> None:
    value = {"value": [0.5], "type": ["list", "number"]}
    state.push(sample(outputs={"precise": value}).replace(b"0.5", PRECISE.encode()))

    assert PRECISE in client.run("outputs", state.name, "--json").stdout
    assert client.run("outputs", state.name, "precise").stdout == f"[{PRECISE}]\n"


def test_sensitive_outputs_need_a_name_and_the_scope(
    client: Client, live: LiveServer, state: SomeState, tokens: dict[str, str]
) -> None:
    secret = "correct-horse-battery-staple"
    output = {"value": secret, "type": "string", "sensitive": True}
    state.push(sample(outputs={"password": output}))
    permitted = Client(client.home, live.url, tokens["secrets"])

    assert "state:secrets" in client.run("outputs", state.name, "password", code=3).stderr
    assert secret not in permitted.run("outputs", state.name).stdout
    assert permitted.run("outputs", state.name, "password").stdout == f"{secret}\n"
    client.run("outputs", state.name, "unknown", code=4)


def test_a_resource_is_found(client: Client, live: LiveServer, state: SomeState) -> None:
    identifier = f"sg-{uuid.uuid4().hex}"
    state.push(sample(resource("web", instance({"id": identifier}))))
    live.run_commands(("index_states",))

    assert f"{state.name}  thing.web" in client.run("find", identifier).stdout
    assert client.json("find", identifier)[0]["address"] == "thing.web"
    assert client.json("find", "unknown") == []


@pytest.mark.both
def test_changes_of_all_states_and_of_one(
    client: Client, live: LiveServer, state: SomeState
) -> None:
    for serial, content in enumerate(("1", "2"), 1):
        state.push(sample(resource("web", instance({"id": content})), serial=serial))
    live.run_commands(("index_states",))
    component = state.name.split("/")[0]

    everywhere = client.json("changes", "--component", component, "--since", "1h")
    assert [change["action"] for change in everywhere] == ["REPLACED", "ADDED"]
    assert client.json("changes", state.name) == everywhere
    assert client.json("changes", state.name, "--action", "ADDED") == everywhere[1:]
    assert client.json("changes", state.name, "--since", "0s") == []
    row = client.run("changes", state.name, "--limit", "1").stdout.splitlines()[1]
    assert f"{state.name}  2        REPLACED  thing.web  id" in row


def test_a_filter_is_joined_with_options(client: Client, state: SomeState) -> None:
    state.push(document(1))
    component = state.name.split("/")[0]
    deepest = "(" * 16 + f"field['component'] = '{component}'" + ")" * 16
    assert len(client.json("states", "--filter", deepest)) == 1

    either = f"field['component'] = '{component}' OR field['component'] = 'unknown'"
    assert client.json("states", "--filter", either, "--locked") == []


def test_a_list_of_several_pages_is_complete(client: Client, state: SomeState) -> None:
    prefix = state.name.split("/")[0]
    for number in range(103):
        SomeState(state.live, state.token, f"{prefix}/e-{number}").push(document(1))

    listed = client.json("states", "--component", prefix)

    assert len({item["id"] for item in listed}) == 103
    table = client.run("states", "--component", prefix)
    assert len(table.stdout.splitlines()) == 101
    assert "more than 100" in table.stderr


class TestBackend:
    def test_the_block_is_written_without_the_token(
        self, client: Client, live: LiveServer, state: SomeState
    ) -> None:
        client.run("backend", state.name)

        block = (client.home / "backend.tf").read_text()
        assert block.count(f'"{live.url}/api/v1/state/at/{state.name}"') == 3
        assert client.environment["INFRA_TOKEN"] not in block
        client.run("backend", state.name)  # the same again

    def test_another_block_is_kept(self, client: Client, state: SomeState) -> None:
        file = client.home / "backend.tf"
        file.write_text("other")

        assert "--force" in client.run("backend", state.name, code=5).stderr
        assert file.read_text() == "other"
        client.run("backend", state.name, "--force")
        assert state.name in file.read_text()


class TestImport:
    def write(self, client: Client, content: bytes) -> None:
        (client.home / "s.tfstate").write_bytes(content)

    def test_only_a_successor_replaces_the_document(self, client: Client, state: SomeState) -> None:
        state.push(document(5))
        for content, problem in (
            (document(5, resources=[1]), "serial 5"),
            (document(4), "serial 4"),
            (document(9, lineage="other"), "lineage"),
        ):
            self.write(client, content)
            assert problem in client.run("import", "s.tfstate", state.name, code=5).stderr
            assert not state.is_locked()
        assert client.json("import", "s.tfstate", state.name, "--force")["stored"] is True
        assert client.json("import", "s.tfstate", state.name)["stored"] is False

    def test_the_lock_of_another_client_stays(self, client: Client, state: SomeState) -> None:
        state.push(document(1))
        lock_id = state.lock()
        self.write(client, document(2))

        assert "ada@laptop" in client.run("import", "s.tfstate", state.name, code=5).stderr
        assert client.json("show", state.name)["state"]["lock"]["lock_id"] == lock_id

    @pytest.mark.parametrize(
        "content",
        [
            b"", b"[1]", b"{}", b'{"resource": {}}', b'{"version": 4, "serial": "1"}', b"\xff",
            b'{"version": 3, "backend": {"type": "http"}}',
        ],
    )  # fmt: skip
    def test_other_files_are_refused(
        self, client: Client, state: SomeState, content: bytes
    ) -> None:
        self.write(client, content)
        client.run("import", "s.tfstate", state.name, code=2)
        client.run("import", "missing.tfstate", state.name, code=2)
        client.run("show", state.name, code=4)


class TestExport:
    def test_all_states(self, client: Client, state: SomeState) -> None:
        state.push(AFTER)

        written = client.json("export", "--to", "all")

        pushed = {s["id"] for s in client.json("states") if s["md5"]}
        assert {item["id"] for item in written} == pushed
        for item in written:
            content = (client.home / item["file"]).read_bytes()
            assert hashlib.md5(content, usedforsecurity=False).hexdigest() == item["md5"]

    def test_a_filter_beside_states_is_refused(self, client: Client, state: SomeState) -> None:
        words = ("export", state.name, "--filter", "field['locked'] = true", "--to", "all")
        assert "omit STATE" in client.run(*words, code=2).stderr

    def test_a_state_that_is_deleted_meanwhile_does_not_end_the_export(
        self, through_front: Client, front: Front, state: SomeState
    ) -> None:
        other = SomeState(state.live, state.token, f"{state.name.split('/')[0]}/dev")
        state.push(BEFORE)
        other.push(BEFORE)

        def delete(connection: socket.socket) -> None:
            assert state.live.request("DELETE", state.path, token=state.token).status == 200
            passed(front)(connection)

        front.script += [passed(front), passed(front), delete]
        words = ("export", state.name, other.name, "--to", "out", "--json")
        done = through_front.run(*words, code=4)

        assert [item["file"] for item in json.loads(done.stdout)] == [f"out/{other.name}.tfstate"]
        assert f"infra: {state.name}: The state" in done.stderr
        assert "not exported: 1." in done.stderr

    def test_a_directory_without_permission(self, client: Client, state: SomeState) -> None:
        state.push(AFTER)
        (client.home / "file").write_text("")

        assert "Cannot write" in client.run("export", state.name, "--to", "file", code=1).stderr


def test_facts_are_recorded_from_a_directory(client: Client, state: SomeState) -> None:
    state.push(BEFORE)
    client.run("facts", state.name, code=4)
    client.run("facts", state.name, "--record", code=2)
    assert "--record" in client.run("facts", state.name, "--commit", "8f2c1d7", code=2).stderr
    assert "--record" in client.run("facts", state.name, "--directory", "..", code=2).stderr
    lock = 'provider "registry.terraform.io/hashicorp/aws" {\n  version = "5.31.0"\n}\n'
    (client.home / ".terraform.lock.hcl").write_text(lock)
    modules = {"Key": "vpc", "Source": "acme/vpc/aws", "Version": "5.1.0", "Dir": "x"}
    listing = client.home / ".terraform" / "modules" / "modules.json"
    listing.parent.mkdir(parents=True)
    listing.write_text(json.dumps({"Modules": [modules]}))

    client.run("facts", state.name, "--record", "--commit", "8f2c1d7")

    shown = client.run("facts", state.name).stdout
    assert "8f2c1d7" in shown
    assert "hashicorp/aws" in shown
    assert "5.1.0" in shown


def test_a_state_without_names(client: Client, live: LiveServer, state: SomeState) -> None:
    state.path = f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"
    state.push(BEFORE)
    (record,) = [s for s in client.json("states") if s["component_id"] in state.path]

    client.run("export", record["id"], "--to", "exported")
    assert state.path in client.run("backend", record["id"]).stdout

    parts = Path("exported") / record["component_id"] / f"{record['environment_id']}.tfstate"
    assert (client.home / parts).read_bytes() == BEFORE
