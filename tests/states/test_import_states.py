"""import_states: from a directory, with the rules that hold for every source."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from apikeys.models import AuditEvent
from states.models import MAX_SERIAL, ImportedVersion, State, StateVersion
from tests.states.conftest import UnsteadyStorage, document, seen

pytestmark = pytest.mark.django_db
FOUND = ("prod/network", "prod/shop", "staging/network")


def lineage(number: int) -> str:
    return f"3b9b1c0e-0000-4000-8000-{number:012d}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A Terragrunt directory with some additional files that are not states."""
    for number, name in enumerate(FOUND):
        write(tmp_path / name / "terraform.tfstate", document(number + 1, lineage(number)))
    write(tmp_path / "prod/network/terraform.tfstate.backup", document(1))
    write(tmp_path / "prod/network/.terraform/terraform.tfstate", b'{"version": 3}')
    return tmp_path


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class Run:
    """A run of the command and its output."""

    def __init__(self, *arguments: Any) -> None:
        out, err = StringIO(), StringIO()
        self.error = ""
        try:
            call_command("import_states", *map(str, arguments), stdout=out, stderr=err)
        except CommandError as error:
            self.error = str(error)
        self.out, self.err = out.getvalue(), err.getvalue()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def results(self) -> dict[str, str]:
        return {state["key"]: state["result"] for state in self.json["states"]}

    @property
    def reasons(self) -> dict[str, str]:
        return {s["key"]: s["reason"] for s in self.json["states"] if s["reason"]}


def run(source: Path | str, *arguments: Any) -> Run:
    return Run("--from", source, "--json", *arguments)


def stored(names: str) -> State:
    component, environment = names.split("/")
    return State.objects.get(component__slug=component, environment__slug=environment)


def test_each_document_is_imported_unchanged_at_the_address_of_its_folder(
    tree: Path, client_with: Any
) -> None:
    done = run(tree)

    assert done.error == ""
    assert done.json["imported"] == 3
    assert [state["address"] for state in done.json["states"]] == [
        "network/prod",
        "shop/prod",
        "network/staging",
    ]
    client = client_with("state:read")
    for name in FOUND:
        environment, component = name.split("/")
        answer = client.get(f"/api/v1/state/at/{component}/{environment}")
        assert answer.content == (tree / name / "terraform.tfstate").read_bytes()


@pytest.mark.parametrize("scheme", ["postgres", "gs", "https"])
def test_unknown_sources_are_refused_without_their_password(scheme: str) -> None:
    done = run(f"{scheme}://ada:very-secret@db.example/terraform")

    assert f"{scheme}:// is not a source. Sources are a directory" in done.error
    assert "very-secret" not in done.error


def test_dry_run_writes_nothing(tree: Path) -> None:
    done = Run("--from", tree, "--dry-run")

    assert done.error == ""
    assert done.out.splitlines() == [
        "KEY                                ADDRESS          VERSIONS       BYTES  ACTION",
        "prod/network/terraform.tfstate     network/prod            1         155  import",
        "prod/shop/terraform.tfstate        shop/prod               1         155  import",
        "staging/network/terraform.tfstate  network/staging         1         155  import",
        "3 import (dry run)",
    ]
    assert not State.objects.exists()
    assert not AuditEvent.objects.exists()


def test_repeated_import_is_a_no_op(tree: Path) -> None:
    run(tree)
    events = AuditEvent.objects.count()

    again = run(tree, "--history", "all")

    assert again.error == ""
    assert set(again.results.values()) == {"unchanged"}
    assert (StateVersion.objects.count(), AuditEvent.objects.count()) == (3, events)


def test_new_versions_of_the_source_are_appended(tree: Path) -> None:
    run(tree)
    newer = document(7, lineage(0), outputs={"a": {"value": 1, "type": "number"}})
    write(tree / "prod/network/terraform.tfstate", newer)

    again = run(tree)

    assert again.results["prod/network/terraform.tfstate"] == "imported"
    state = stored("network/prod")
    assert (state.version_number, state.serial) == (2, 7)
    assert state.md5 == hashlib.md5(newer).hexdigest()


def test_import_keeps_the_source_time_and_is_audited(tree: Path) -> None:
    run(tree)

    path = tree / "prod/shop/terraform.tfstate"
    version = StateVersion.objects.get(state=stored("shop/prod"))
    assert version.imported.created_at.timestamp() == pytest.approx(path.stat().st_mtime)
    assert version.created_by == "command import_states"
    event = AuditEvent.objects.get(action="state.import", resource_id=str(version.state_id))
    assert event.actor_name == "command import_states"
    assert event.details == {
        "version": 1,
        "serial": 2,
        "md5": hashlib.md5(path.read_bytes()).hexdigest(),
        "size_bytes": path.stat().st_size,
        "source": tree.as_uri(),
        "key": "prod/shop/terraform.tfstate",
        "source_version": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def test_the_api_and_the_admin_show_where_a_version_is_from(
    tree: Path, client_with: Any, admin_client: Any
) -> None:
    run(tree)
    state = stored("shop/prod")
    ImportedVersion.objects.filter(version__state=state).update(created_by="ada@laptop")
    changed = (tree / "prod/shop/terraform.tfstate").stat().st_mtime
    client = client_with("state:read", "state:write", "state:secrets")
    pushed = document(50, lineage(1))
    path = "/api/v1/state/at/shop/prod"
    assert client.post(path, pushed, "application/json").status_code == 200
    versions = f"/api/v1/states/{state.pk}/versions"

    listed = client.get(versions).json()["versions"]

    assert "imported" not in listed[0]
    assert listed[1]["imported"] == {
        "source": tree.as_uri(),
        "created_at": seen(dt.datetime.fromtimestamp(changed, dt.UTC)),
        "created_by": "ada@laptop",
    }
    assert client.get(f"{versions}/1").json()["version"] == listed[1]
    assert client.get(f"{versions}/2/diff").json()["diff"]["before"]["imported"]
    restored = client.post(f"{versions}/1:restore", "{}", "application/json")
    assert "imported" not in restored.json()["version"]
    page = admin_client.get(f"/admin/states/state/{state.pk}/change/").content.decode()
    assert f"from {tree.as_uri()}, created" in page
    assert "by ada@laptop" in page


def test_a_push_since_is_never_written_over(tree: Path, client_with: Any) -> None:
    run(tree)
    client = client_with("state:write")
    pushed = document(50, lineage(0))
    path = "/api/v1/state/at/network/prod"
    assert client.post(path, pushed, "application/json").status_code == 200
    untouched = run(tree)
    write(tree / "prod/network/terraform.tfstate", document(60, lineage(0)))
    write(tree / "prod/shop/terraform.tfstate", document(60, lineage(1)))

    again = run(tree)

    assert set(untouched.results.values()) == {"unchanged"}
    assert again.error.startswith("not imported: 1 of ")
    assert "have changed since the import" in again.reasons["prod/network/terraform.tfstate"]
    assert again.results["prod/shop/terraform.tfstate"] == "imported"
    assert stored("network/prod").serial == 50


def test_reverted_file_is_reported(tree: Path) -> None:
    path = tree / "prod/network/terraform.tfstate"
    first = path.read_bytes()
    run(tree)
    write(path, document(9, lineage(0)))
    run(tree)
    write(path, first)

    again = run(tree)

    assert "Restore this version" in again.reasons["prod/network/terraform.tfstate"]
    assert stored("network/prod").serial == 9


def test_keys_with_the_same_address_are_both_skipped(tree: Path) -> None:
    write(tree / "prod/NETWORK.tfstate", document(1))

    for _ in range(2):
        done = run(tree)

        assert done.error.startswith("not imported: 2 of 4 states; a map can assign")
        assert done.reasons == {
            "prod/network/terraform.tfstate": "prod/NETWORK.tfstate has the same address.",
            "prod/NETWORK.tfstate": "prod/network/terraform.tfstate has the same address.",
        }
        assert sorted(map(str, State.objects.all())) == ["network in staging", "shop in prod"]


def test_unmatched_keys_are_skipped(tree: Path) -> None:
    write(tree / "a/b/c/d.tfstate", document(1))

    done = run(tree)

    assert done.reasons == {"a/b/c/d.tfstate": "No pattern matches."}
    assert done.error.startswith("not imported: 1 of 4 states; a map can assign")
    assert State.objects.count() == 3


def test_a_state_that_is_there_is_left_out(tree: Path, client_with: Any) -> None:
    client = client_with("state:write")
    path = "/api/v1/state/at/shop/prod"
    assert client.post(path, document(1), "application/json").status_code == 200

    done = run(tree)

    assert "not imported from this source" in done.reasons["prod/shop/terraform.tfstate"]
    assert stored("shop/prod").version_number == 1
    assert State.objects.count() == 3


def test_imported_state_is_rejected_at_another_address(tree: Path) -> None:
    run(tree)
    (tree / "map.toml").write_text(
        '[[map]]\npattern = "{environment}/{name}/terraform.tfstate"\ncomponent = "x-{name}"\n'
    )

    again = run(tree, "--map", tree / "map.toml")

    assert set(again.reasons.values()) == {
        "The state was already imported to another address. Assign it that address with a map."
    }
    assert State.objects.count() == 3


def test_invalid_state_does_not_stop_the_import(tree: Path, settings: Any) -> None:
    settings.STATE_MAX_BYTES = 400
    write(tree / "prod/large/terraform.tfstate", document(1, outputs={"a" * 400: {}}))
    write(tree / "prod/broken/terraform.tfstate", b"{")
    write(tree / "prod/latin/terraform.tfstate", b'{"version": 4, "x": "\xe4"}')
    lock = {"ID": lineage(9), "Who": "ada@laptop", "Operation": "OperationTypeApply"}
    write(tree / "prod/busy/terraform.tfstate", document(1))
    write(tree / "prod/busy/.terraform.tfstate.lock.info", json.dumps(lock).encode())

    done = run(tree)

    assert done.error.startswith("not imported: 4 of ")
    assert done.json["imported"] == 3
    reasons = {key.split("/")[1]: reason for key, reason in done.reasons.items()}
    assert reasons["large"].endswith(
        "but STATE_MAX_BYTES allows 400. Increase STATE_MAX_BYTES for the service and this command."
    )
    assert reasons["broken"].startswith("The document is not a valid state")
    assert reasons["latin"] == "The document is not valid UTF-8."
    assert reasons["busy"].startswith("The state is locked in the source by ada@laptop")
    assert State.objects.count() == 3


def test_empty_file_after_a_migration_is_skipped(tree: Path) -> None:
    """It leaves an empty file where a state was, once the new backend has it."""
    run(tree)
    write(tree / "prod/shop/terraform.tfstate", b"")

    again = run(tree)

    assert again.error == ""
    assert again.results["prod/shop/terraform.tfstate"] == "empty"
    assert (again.json["unchanged"], again.json["empty"]) == (2, 1)


def test_source_lock_matters_only_for_new_versions(tree: Path) -> None:
    run(tree)
    write(tree / "prod/shop/.terraform.tfstate.lock.info", b"{}")

    again = run(tree)

    assert (again.error, set(again.results.values())) == ("", {"unchanged"})
    write(tree / "prod/shop/terraform.tfstate", document(9, lineage(1)))
    reason = run(tree).reasons["prod/shop/terraform.tfstate"]
    assert reason.startswith("The state is locked in the source by an unknown client")


def test_a_state_that_is_locked_here_is_left_alone(tree: Path, client_with: Any) -> None:
    client = client_with("state:write")
    lock = {"ID": lineage(9), "Who": "grace@laptop", "Operation": "OperationTypeApply"}
    path = "/api/v1/state/at/shop/prod"
    assert client.generic("LOCK", path, json.dumps(lock), "application/json").status_code == 200

    done = run(tree)

    assert done.reasons == {
        "prod/shop/terraform.tfstate": "The state is locked by grace@laptop (OperationTypeApply)."
    }
    assert done.json["imported"] == 2


def test_documents_encrypted_by_opentofu_are_imported_unchanged(tree: Path) -> None:
    sealed = json.dumps(
        {"serial": 4, "lineage": lineage(4), "meta": {}, "encrypted_data": "AAAA"}
    ).encode()
    write(tree / "prod/sealed/terraform.tfstate", sealed)

    assert run(tree).error == ""
    state = stored("sealed/prod")
    assert (state.serial, state.lineage) == (4, lineage(4))
    assert state.md5 == hashlib.md5(sealed).hexdigest()


def test_a_dry_run_makes_the_checks_of_the_import(tree: Path) -> None:
    write(tree / "prod/array/terraform.tfstate", b"[]\n")
    write(tree / "prod/serial/terraform.tfstate", b'{"version": 4, "serial": "1"}')
    write(tree / "prod/latin/terraform.tfstate", b'{"version": 4, "x": "\xe4"}')

    rehearsed = run(tree, "--dry-run")
    shown = Run("--from", tree, "--dry-run")
    done = run(tree)

    assert rehearsed.error == "would not be imported: 3 of 6 states"
    assert rehearsed.reasons == done.reasons
    assert [rehearsed.json[name] for name in ("import", "failed")] == [3, 3]
    assert "  failed: The document is not valid UTF-8.\n" in shown.out
    assert (done.json["imported"], done.json["failed"]) == (3, 3)


def test_other_json_does_not_replace_a_state(tree: Path) -> None:
    run(tree)
    write(tree / "prod/shop/terraform.tfstate", b'{"message": "bad gateway"}')

    rehearsed, done = run(tree, "--dry-run"), run(tree)

    assert rehearsed.reasons == done.reasons
    assert "does not replace a state" in done.reasons["prod/shop/terraform.tfstate"]
    assert (rehearsed.error, stored("shop/prod").serial) == (
        "would not be imported: 1 of 3 states",
        2,
    )


def test_terraforms_record_of_its_backend_is_no_state(tmp_path: Path) -> None:
    """It is a copy from outside a ``.terraform`` folder. A state of Terraform 0.11 is imported."""
    old = b'{"version": 3, "serial": 2, "backend": null, "modules": []}'
    write(tmp_path / "prod/old/terraform.tfstate", old)
    pointer = b'{"version": 3, "backend": {"type": "http", "config": {}}}'
    write(tmp_path / "prod/shop/terraform.tfstate", pointer)

    rehearsed, done = run(tmp_path, "--dry-run"), run(tmp_path)

    assert rehearsed.reasons == done.reasons
    assert list(done.reasons) == ["prod/shop/terraform.tfstate"]
    assert "record of its backend" in done.reasons["prod/shop/terraform.tfstate"]
    assert stored("old/prod").serial == State.objects.get().serial == 2


def test_a_dry_run_finds_the_serial_that_cannot_follow(tree: Path) -> None:
    write(tree / "prod/shop/terraform.tfstate", document(MAX_SERIAL, lineage(1)))
    run(tree)
    write(tree / "prod/shop/terraform.tfstate", document(None, lineage(1)))

    rehearsed = run(tree, "--dry-run")

    assert rehearsed.reasons == run(tree).reasons
    assert rehearsed.results["prod/shop/terraform.tfstate"] == "failed"


def test_workspaces_of_the_local_backend_are_imported(tmp_path: Path) -> None:
    write(tmp_path / "terraform.tfstate", document(1, lineage(1)))
    write(tmp_path / "terraform.tfstate.backup", document(1, lineage(1)))
    write(tmp_path / "errored.tfstate", document(2, lineage(1)))
    for number, name in enumerate(("dev", "qa"), 2):
        folder = tmp_path / "terraform.tfstate.d" / name
        write(folder / "terraform.tfstate", document(1, lineage(number)))
        write(folder / "terraform.tfstate.backup", document(1, lineage(number)))

    without = run(tmp_path)
    done = run(tmp_path, "--component", "network")

    assert set(without.results.values()) == {"refused"}
    hint = without.reasons["terraform.tfstate.d/dev/terraform.tfstate"]
    assert hint == without.reasons["terraform.tfstate"]
    assert "--component NAME" in hint
    assert set(done.reasons) == {"errored.tfstate"}
    assert "state push" in done.reasons["errored.tfstate"]
    found = State.objects.values_list("component__slug", "environment__slug")
    assert set(found) == {("network", "default"), ("network", "dev"), ("network", "qa")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--component", "Net work"), "A component must be 1 to 63"),
        (("--component", "net", "--map", "map.toml"), "not allowed with argument"),
    ],
)
def test_missing_component_is_reported(
    tree: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert message in run(tree, *arguments).error


@pytest.mark.parametrize("kind", ["fifo", "link", "device"])
def test_special_files_are_skipped_immediately(tree: Path, kind: str) -> None:
    """A FIFO has no writer, a link may lead anywhere, and a device may be endless."""
    state = tree / "prod/odd/terraform.tfstate"
    lock = tree / "prod/shop/.terraform.tfstate.lock.info"
    state.parent.mkdir()
    for path in (state, lock):
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "link":
            path.symlink_to(tree / "prod/network/terraform.tfstate")
        else:
            path.symlink_to("/dev/zero")

    done = run(tree)

    assert set(done.reasons) == {"prod/odd/terraform.tfstate", "prod/shop/terraform.tfstate"}
    message = "Not a regular file" if kind == "fifo" else "symbolic link"
    assert message in done.reasons["prod/odd/terraform.tfstate"]
    reason = done.reasons["prod/shop/terraform.tfstate"]
    assert reason.startswith("The state is locked in the source by an unknown client")
    assert done.json["imported"] == 2


def test_huge_file_is_refused(tree: Path) -> None:
    with (tree / "prod/large.tfstate").open("wb") as file:
        file.truncate(1 << 40)

    done = run(tree)

    assert set(done.reasons) == {"prod/large.tfstate"}
    assert "STATE_MAX_BYTES" in done.reasons["prod/large.tfstate"]


def test_deeply_nested_folders_are_refused(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(*_: Any, **__: Any) -> Any:
        raise RecursionError

    monkeypatch.setattr(os, "walk", walk)

    assert Run("--from", tree).error == "The folders are nested too deeply."


def test_backend_blocks_follow_no_link(tree: Path) -> None:
    target = tree / "precious"
    target.write_text("precious")
    link = tree / "blocks/network/prod/backend.tf"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)

    done = run(tree, "--write-backends", tree / "blocks", "--url", "https://infra.example")

    assert "symbolic link" in done.error
    assert target.read_text() == "precious"


def test_a_deleted_state_stays_deleted(tree: Path, client_with: Any) -> None:
    run(tree)
    client = client_with("state:admin", "state:read", "state:write")
    assert client.delete("/api/v1/state/at/shop/prod").status_code == 200
    write(tree / "prod/shop/terraform.tfstate", document(70, lineage(1)))

    again = run(tree)

    assert "deleted in this service" in again.reasons["prod/shop/terraform.tfstate"]


def test_a_damaged_document_is_found_when_it_is_read_back(tree: Path) -> None:
    run(tree)
    StateVersion.objects.filter(state=stored("shop/prod")).update(document=b"x" * 99)

    again = run(tree)

    assert again.error.startswith("not imported: 1 of ")
    assert "damaged" in again.reasons["prod/shop/terraform.tfstate"]


def test_a_version_is_imported_once(tree: Path) -> None:
    """The law behind the rule: the constraint, named."""
    run(tree)
    first, second = ImportedVersion.objects.order_by("pk")[:2]

    with (
        pytest.raises(IntegrityError, match=r"importedversion.digest"),
        transaction.atomic(),
    ):
        ImportedVersion.objects.filter(pk=second.pk).update(digest=first.digest)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere", "The directory nowhere does not exist."),
        ("/etc/hosts", "The directory /etc/hosts does not exist."),
    ],
)
def test_missing_source_is_reported(source: str, message: str) -> None:
    assert message in Run("--from", source).error


@pytest.mark.parametrize("history", ["0", "-1", "some"])
def test_history_is_optional(tree: Path, history: str) -> None:
    assert (
        Run("--from", tree, f"--history={history}").error
        == "--history must be a number of versions, or all"
    )


def test_backend_blocks(tree: Path) -> None:
    assert (
        run(tree, "--write-backends", tree / "blocks", "--url", "https://infra.example/").error
        == ""
    )

    block = (tree / "blocks/network/prod/backend.tf").read_text()
    address = '= "https://infra.example/api/v1/state/at/network/prod"\n'
    for name in ("    address        ", "    lock_address   ", "    unlock_address "):
        assert name + address in block
    assert len(list((tree / "blocks").rglob("*.tf"))) == 3


def test_backend_blocks_need_the_services_address(tree: Path) -> None:
    assert "needs --url" in run(tree, "--write-backends", tree / "blocks").error


def test_a_name_that_is_no_text(tree: Path) -> None:
    write(tree / os.fsdecode(b"prod/caf\xe9/terraform.tfstate"), document(1))

    done = run(tree)

    key = r"'prod/caf\udce9/terraform.tfstate'"
    assert done.reasons == {key: "The name is not UTF-8. Rename it."}
    assert (done.json["imported"], done.json["refused"]) == (3, 1)


def test_control_characters_of_keys_are_escaped(tree: Path) -> None:
    write(tree / "prod/\x1b[2Jred/terraform.tfstate", b"{")

    done = Run("--from", tree)

    assert r"prod/\x1b[2Jred/terraform.tfstate" in done.out
    assert "\x1b[2J" not in done.out + done.err


def test_number_of_statements_is_constant(tree: Path) -> None:
    """The number of statements per state limits the states per second."""
    run(tree)
    for number in range(10):
        write(tree / f"prod/new-{number}/terraform.tfstate", document(1, lineage(20 + number)))

    with CaptureQueriesContext(connection) as seen:
        done = run(tree)

    assert (done.json["imported"], done.json["unchanged"]) == (10, 3)
    # The verification also reads the states of each batch of 200 versions.
    per_state = (len(seen) - 1) / 13
    assert per_state <= 22, per_state


def test_into_an_object_store(tree: Path, store: UnsteadyStorage) -> None:
    store.failing = True
    failed = run(tree)
    store.failing = False

    again = run(tree)

    assert failed.error.startswith("not imported: 3 of ")
    assert all("object store" in reason for reason in failed.reasons.values())
    assert (again.error, again.json["imported"]) == ("", 3)
    named = StateVersion.objects.values_list("object_name", flat=True)
    assert set(named) == store.names
    assert len(store.names) == 3
