"""export_states: an export can be imported without loss."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, BinaryIO
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command

from apikeys.models import AuditEvent
from infra_service.lib.commandline.private_files import PrivateDirectory
from states.models import (
    Application,
    Component,
    Environment,
    ImportedVersion,
    Installation,
    SlugClaim,
    State,
    StateVersion,
)
from states.models.imported_versions import with_imported
from states.moving import export_bucket, exporting
from states.moving.manifest import UNFINISHED
from tests.conftest import ApiClient
from tests.states.conftest import UnsteadyStorage, document
from tests.states.test_import_states import Run, lineage, run

pytestmark = pytest.mark.django_db
UUIDS = (
    "0190b1c0-0000-7000-8000-000000000001",
    "0190b1c0-0000-7000-8000-000000000002",
)
ADDRESSES = {
    "network/prod": "at/network/prod",
    "shop/cart/prod": "at/shop/cart/prod",
    "/".join(UUIDS): f"{UUIDS[0]}/env/{UUIDS[1]}",
}


def export(to: Path | str, *arguments: str) -> Any:
    out, err = StringIO(), StringIO()
    call_command("export_states", "--to", str(to), "--json", *arguments, stdout=out, stderr=err)
    return {**json.loads(out.getvalue()), "said": err.getvalue()}


def push_three_of_each(client: ApiClient) -> None:
    for number, address in enumerate(ADDRESSES.values()):
        for serial in (3, 4, 9):
            body = document(serial, lineage(number), outputs={str(serial): {"value": 1}})
            answer = client.post(f"/api/v1/state/{address}", body, "application/json")
            assert answer.status_code == 200


@pytest.fixture
def client(client_with: Any) -> ApiClient:
    client: ApiClient = client_with("state:read", "state:write", "state:admin", "state:secrets")
    push_three_of_each(client)
    return client


def wipe() -> None:
    """Delete everything except the audit log, which also covers other areas."""
    State.objects.update(
        version_number=0, current_version=None, serial=None, lineage=None, md5=None, size_bytes=None
    )
    for model in (StateVersion, State, SlugClaim, Component, Environment, Application):
        model.objects.all().delete()
    assert not ImportedVersion.objects.exists()


def promised(*, of_source: bool) -> Any:
    """Return the address, number, digest, time and author that an export must restore."""
    return {
        (
            version.state.component_id,
            version.state.environment_id,
            version.number,
            version.serial,
            version.lineage,
            version.md5,
            version.size_bytes,
            version.imported_created_at if of_source else version.created_at,
            version.imported_created_by if of_source else version.created_by,
        )
        for version in with_imported(StateVersion.objects.all()).select_related("state")
    }


def test_plain_files_by_name(client: ApiClient, tmp_path: Path) -> None:
    done = export(tmp_path / "out", "--history")

    assert done == {"states": 3, "versions": 9, "locked": 0, "unreadable": 0, "said": ""}
    for place, address in ADDRESSES.items():
        current = tmp_path / "out" / f"{place}.tfstate"
        assert current.read_bytes() == client.get(f"/api/v1/state/{address}").content
        assert stat.S_IMODE(current.stat().st_mode) == 0o600
        history = tmp_path / "out" / f"{place}.history"
        assert sorted(path.name for path in history.iterdir()) == ["1.tfstate", "2.tfstate"]
        assert stat.S_IMODE(history.stat().st_mode) == 0o700


def test_manifest_describes_the_export(client: ApiClient, tmp_path: Path) -> None:
    export(tmp_path / "out")

    header, *lines = map(json.loads, (tmp_path / "out/manifest.jsonl").read_text().splitlines())
    assert (header["infra_service_export"], header["installation"]) == (2, str(Installation.here()))
    by_path = {line["path"]: line for line in lines}
    line = by_path["shop/cart/prod.tfstate"]
    state = State.objects.get(component__slug="cart")
    version = state.versions.get(number=3)
    assert line == {
        "id": str(state.pk),
        "application_id": str(state.application_id),
        "component_id": str(state.component_id),
        "environment_id": str(state.environment_id),
        "application": "shop",
        "component": "cart",
        "environment": "prod",
        "application_name": "shop",
        "component_name": "cart",
        "environment_name": "prod",
        "path": "shop/cart/prod.tfstate",
        "workspace": None,
        "versions": [
            {
                "id": str(version.pk),
                "number": 3,
                "serial": 9,
                "lineage": lineage(1),
                "md5": state.md5,
                "size_bytes": state.size_bytes,
                "created_at": version.created_at.isoformat().replace("+00:00", "Z"),
                "created_by": "operator",
                "path": "shop/cart/prod.tfstate",
            }
        ],
    }
    assert by_path[f"{'/'.join(UUIDS)}.tfstate"]["component"] is None


def test_export_is_imported_into_a_new_service(client: ApiClient, tmp_path: Path) -> None:
    """The promise: digests, numbers, times and authors are the same, and so are addresses."""
    before = promised(of_source=False)
    documents = {a: client.get(f"/api/v1/state/{a}").content for a in ADDRESSES.values()}
    export(tmp_path / "out", "--history")
    wipe()

    done = run(tmp_path / "out", "--history", "all")

    assert done.error == ""
    assert promised(of_source=True) == before
    assert {a: client.get(f"/api/v1/state/{a}").content for a in documents} == documents
    assert not State.objects.exclude(lock_id=None).exists()
    # A second export of the imported states gives the same again.
    export(tmp_path / "again", "--history")
    wipe()
    assert run(tmp_path / "again", "--history", "all").error == ""
    assert promised(of_source=True) == before


def test_import_restores_names_unless_they_were_changed(client: ApiClient, tmp_path: Path) -> None:
    Component.objects.filter(slug="network").update(name="Network & DNS")
    Environment.objects.filter(slug="prod").update(name="Production")
    Application.objects.filter(slug="shop").update(name="The shop")
    export(tmp_path / "out")
    wipe()
    Environment.objects.create(slug="prod", name="Live")

    assert run(tmp_path / "out").error == ""
    assert Component.objects.get(slug="network").name == "Network & DNS"
    assert Application.objects.get(slug="shop").name == "The shop"
    assert Environment.objects.get(slug="prod").name == "Live"
    assert Component.objects.get(pk=UUIDS[0]).name == ""


def test_of_the_newest_alone_numbers_stay(client: ApiClient, tmp_path: Path) -> None:
    export(tmp_path / "out")
    wipe()

    assert run(tmp_path / "out").error == ""
    assert {state.version_number for state in State.objects.all()} == {3}
    path = f"/api/v1/state/{ADDRESSES['network/prod']}"
    assert client.post(path, document(10, lineage(0)), "application/json").status_code == 200
    assert set(State.objects.get(component__slug="network").versions.values_list("number")) == {
        (3,),
        (4,),
    }


def test_later_export_adds_new_versions(client: ApiClient, tmp_path: Path) -> None:
    """Wherever the files are: a directory may be copied to another machine."""
    export(tmp_path / "first", "--history")
    pushed = document(12, lineage(0), outputs={"12": {"value": 1}})
    path = f"/api/v1/state/{ADDRESSES['network/prod']}"
    assert client.post(path, pushed, "application/json").status_code == 200
    export(tmp_path / "second", "--history")
    wipe()
    run(tmp_path / "first", "--history", "all")

    again = run(tmp_path / "second", "--history", "all")

    assert again.json["imported"] == 1
    assert client.get(path).content == pushed


def test_history_is_locked_until_all_of_it_is_here(client: ApiClient, tmp_path: Path) -> None:
    export(tmp_path / "out", "--history")
    wipe()
    broken = tmp_path / "out/network/prod.history/2.tfstate"
    whole = broken.read_bytes()
    broken.write_bytes(b"{}")

    done = run(tmp_path / "out", "--history", "all")

    assert done.reasons == {
        "network/prod.tfstate": "The document does not match the size or digest that the source "
        "reports. 1 version imported. The state stays locked until another run "
        "imports the remaining versions."
    }
    state = State.objects.get(component__slug="network")
    assert (state.version_number, state.lock_info["Who"]) == (1, "import_states")
    pushed = client.post(
        f"/api/v1/state/{ADDRESSES['network/prod']}", document(99, lineage(0)), "application/json"
    )
    assert pushed.status_code == 423
    broken.write_bytes(whole)
    again = run(tmp_path / "out", "--history", "all")
    assert (again.error, again.json["imported"]) == ("", 1)
    state.refresh_from_db()
    assert (state.version_number, state.lock_id) == (3, None)


@pytest.mark.parametrize("history", [(), ("--history",)], ids=["current", "history"])
def test_version_that_is_replaced_and_pruned_during_the_export(
    client: ApiClient, tmp_path: Path, settings: Any, monkeypatch: Any, history: tuple[str, ...]
) -> None:
    settings.STATE_VERSIONS_KEPT, settings.STATE_VERSIONS_DAYS = 1, 0
    pushed = document(10, lineage(0))

    def in_batches(states: Any) -> Any:
        batch = list(states.order_by("pk"))
        path = f"/api/v1/state/{ADDRESSES['network/prod']}"
        assert client.post(path, pushed, "application/json").status_code == 200
        call_command("prune_states", stdout=StringIO())
        return batch

    monkeypatch.setattr(exporting, "in_batches", in_batches)

    assert export(tmp_path / "out", *history)["states"] == 3
    assert (tmp_path / "out/network/prod.tfstate").read_bytes() == pushed


def test_state_that_takes_over_names_during_the_export_overwrites_no_file(
    client: ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = document(1, lineage(7))
    client.post("/api/v1/state/at/other/prod", other, "application/json")

    def in_batches(states: Any) -> Any:
        yield states.get(component__slug="network")
        Component.objects.filter(slug="network").update(slug="renamed")
        Component.objects.filter(slug="other").update(slug="network")
        yield states.get(component__slug="network")

    monkeypatch.setattr(exporting, "in_batches", in_batches)

    export(tmp_path / "out")

    former = client.get("/api/v1/state/at/renamed/prod").content
    taken_over = State.objects.get(component__slug="network")
    by_ids = f"{taken_over.component_id}/{taken_over.environment_id}.tfstate"
    assert (tmp_path / "out/network/prod.tfstate").read_bytes() == former
    assert (tmp_path / "out" / by_ids).read_bytes() == other
    wipe()
    assert run(tmp_path / "out").error == ""
    documents = {bytes(client.get(f"/api/v1/state/{one}").content) for one in (
        "at/network/prod", f"{taken_over.component_id}/env/{taken_over.environment_id}",
    )}  # fmt: skip
    assert documents == {former, other}


def test_failed_first_version_leaves_no_records(
    client: ApiClient, tmp_path: Path, store: UnsteadyStorage, settings: Any
) -> None:
    settings.STATE_STORAGE_WRITES = False
    export(tmp_path / "out", "--history")
    wipe()
    settings.STATE_STORAGE_WRITES = store.failing = True

    done = run(tmp_path / "out", "--history", "all")

    assert set(done.results.values()) == {"failed"}
    assert not State.objects.exists()
    assert not Component.objects.exists()
    assert not Environment.objects.exists()


def test_workspaces_keep_their_names_and_tags(client: ApiClient, tmp_path: Path) -> None:
    State.objects.filter(component__slug="network").update(
        workspace={"name": "Network-PROD", "tags": {"team": "web"}}
    )
    State.objects.filter(component__slug="cart").update(
        workspace={"name": "Cart-PROD", "tags": {"team": "shop"}}
    )
    export(tmp_path / "out")
    wipe()
    (tmp_path / "map.toml").write_text(
        '[[map]]\npattern = "shop/{component}/{environment}.tfstate"\nenvironment = "dev"\n'
    )

    assert run(tmp_path / "out", "--map", tmp_path / "map.toml").error == ""

    records = dict(State.objects.values_list("component__slug", "workspace"))
    assert records.pop("network") == {"name": "Network-PROD", "tags": {"team": "web"}}
    # At another address, the name would not find the state.
    assert records.pop("cart") == {"tags": {"team": "shop"}}
    assert set(records.values()) == {None}


def test_versions_older_than_the_current_are_not_imported(
    client: ApiClient, tmp_path: Path
) -> None:
    export(tmp_path / "out", "--history")
    wipe()
    run(tmp_path / "out", "--history", "2")

    again = run(tmp_path / "out", "--history", "all")

    assert set(again.results.values()) == {"unchanged"}
    assert StateVersion.objects.count() == 6


def test_map_assigns_another_address_to_an_occupied_one(client: ApiClient, tmp_path: Path) -> None:
    export(tmp_path / "out", "--history")
    wipe()
    body = document(1, lineage(7))
    path = f"/api/v1/state/{ADDRESSES['network/prod']}"
    assert client.post(path, body, "application/json").status_code == 200
    first = run(tmp_path / "out", "--history", "all")
    assert first.results["network/prod.tfstate"] == "refused"
    assert "a map can assign addresses" in first.error
    (tmp_path / "map.toml").write_text(
        '[[map]]\npattern = "network/{environment}.tfstate"\ncomponent = "network-copy"\n'
    )

    again = run(tmp_path / "out", "--history", "all", "--map", tmp_path / "map.toml")

    assert again.error == ""
    assert again.results["shop/cart/prod.tfstate"] == "unchanged"
    copy = State.objects.get(component__slug="network-copy", environment__slug="prod")
    assert [version.number for version in copy.versions.order_by("number")] == [1, 2, 3]


def test_component_is_refused(client: ApiClient, tmp_path: Path) -> None:
    export(tmp_path / "out")

    assert "The source is an export" in run(tmp_path / "out", "--component", "network").error


def test_locks_are_reported_but_not_exported(client: ApiClient, tmp_path: Path) -> None:
    lock = {"ID": lineage(9), "Who": "ada@laptop", "Operation": "OperationTypeApply"}
    path = f"/api/v1/state/{ADDRESSES['network/prod']}"
    assert client.generic("LOCK", path, json.dumps(lock), "application/json").status_code == 200

    done = export(tmp_path / "out")

    assert done["locked"] == 1
    assert done["said"] == "network/prod.tfstate: the state is locked; the lock is not exported\n"


def test_deleted_and_empty_states_are_left_out(client: ApiClient, tmp_path: Path) -> None:
    assert client.delete(f"/api/v1/state/{ADDRESSES['network/prod']}").status_code == 200
    lock = {"ID": lineage(9), "Who": "ada@laptop", "Operation": "OperationTypeApply"}
    answer = client.generic(
        "LOCK", "/api/v1/state/at/new/prod", json.dumps(lock), "application/json"
    )
    assert answer.status_code == 200

    assert export(tmp_path / "out")["states"] == 2


def test_damaged_document_is_reported_and_skipped(client: ApiClient, tmp_path: Path) -> None:
    state = State.objects.get(component__slug="network")
    StateVersion.objects.filter(pk=state.current_version_id).update(document=b"x" * 99)

    with pytest.raises(CommandError, match="1 damaged document skipped"):
        export(tmp_path / "out")
    lines = (tmp_path / "out/manifest.jsonl").read_text().splitlines()
    assert len(lines) == 3


def test_older_version_is_not_imported_in_place_of_a_damaged_one(
    client: ApiClient, tmp_path: Path
) -> None:
    state = State.objects.get(component__slug="network")
    StateVersion.objects.filter(pk=state.current_version_id).update(document=b"x" * 99)
    with pytest.raises(CommandError, match="1 damaged document skipped"):
        export(tmp_path / "out", "--history")
    wipe()

    done = run(tmp_path / "out", "--history", "all")

    assert done.results["network/prod.tfstate"] == "failed"
    assert "newest version of the state is not" in done.reasons["network/prod.tfstate"]
    assert State.objects.count() == 2


def test_store_fails_for_a_single_document(
    client: ApiClient, store: UnsteadyStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_command("move_documents", to="storage")
    state = State.objects.get(component__slug="network")
    refused = StateVersion.objects.get(pk=state.current_version_id).object_name
    real = UnsteadyStorage.open

    def open_others(self: UnsteadyStorage, name: str, mode: str = "rb") -> Any:
        if name == refused:
            raise PermissionError("denied")
        return real(self, name, mode)

    monkeypatch.setattr(UnsteadyStorage, "open", open_others)

    with pytest.raises(CommandError, match="1 damaged document skipped"):
        export(tmp_path / "out")
    assert len((tmp_path / "out/manifest.jsonl").read_text().splitlines()) == 3
    store.failing = True
    with pytest.raises(CommandError, match="stopped: "):
        export(tmp_path / "again")


def test_no_link_is_followed(client: ApiClient, tmp_path: Path) -> None:
    """Another user may have created links in the target directory."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    out = tmp_path / "made/out"
    (out / "network").mkdir(parents=True)
    for name in ("manifest.jsonl.partial", "network/.prod.tfstate.partial", "network/prod.tfstate"):
        (out / name).symlink_to(precious)

    export(out)

    assert precious.read_text() == "precious"
    assert not any(path.is_symlink() for path in out.rglob("*"))
    folders = [out, *(path for path in out.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_new_parents_are_closed_too(client: ApiClient, tmp_path: Path) -> None:
    export(tmp_path / "made/by/us")

    for name in ("made", "made/by", "made/by/us"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700


def test_unknown_targets_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CommandError, match="gs:// is not supported"):
        export("gs://bucket/exported")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported(
    client: ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = PrivateDirectory.create

    def full(directory: PrivateDirectory, name: str) -> BinaryIO:
        is_manifest = name == UNFINISHED
        return open("/dev/full", "wb") if is_manifest else create(directory, name)  # noqa: PTH123

    monkeypatch.setattr(PrivateDirectory, "create", full)

    with pytest.raises(CommandError, match="No space left on device"):
        export(tmp_path / "exported")


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_full_temporary_directory_is_reported(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """The manifest for a bucket is a temporary file until the end of the export."""
    folder = Mock(return_value=Mock(**{"first.return_value": None}))
    monkeypatch.setattr(export_bucket, "Folder", folder)
    monkeypatch.setattr(export_bucket, "located", lambda _text: ())
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(Path.open, Path("/dev/full"), "r+b"))
    monkeypatch.setattr(exporting, "Header", lambda *_values: "x" * size)

    with pytest.raises(CommandError, match="No space left on device"):
        export("s3://bucket/exported")


@pytest.mark.parametrize("kind", ["a link", "a folder of others", "a link below"])
def test_targets_writable_by_other_users_are_rejected(
    client: ApiClient, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    out = tmp_path / "out"
    if kind == "a link":
        out.symlink_to(tmp_path / "elsewhere")
    else:
        out.mkdir()
    if kind == "a folder of others":
        out.chmod(0o777)
    if kind == "a link below":
        (out / "manifest.jsonl.partial").touch()
        (out / "network").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(CommandError):
        export(out)

    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["manifest.jsonl", "network/prod.tfstate"])
def test_fifo_in_an_export_is_refused(client: ApiClient, tmp_path: Path, name: str) -> None:
    export(tmp_path / "out")
    wipe()
    (tmp_path / "out" / name).unlink()
    os.mkfifo(tmp_path / "out" / name)

    done = run(tmp_path / "out")

    message = done.error if name == "manifest.jsonl" else done.reasons["network/prod.tfstate"]
    assert "Not a regular file" in message


def test_export_is_audited(client: ApiClient, tmp_path: Path) -> None:
    export(tmp_path / "out", "--history")

    events = AuditEvent.objects.filter(action="state.export")
    assert {(e.actor_name, tuple(e.details["versions"])) for e in events} == {
        ("command export_states", (1, 2, 3))
    }
    assert events.count() == 3


def test_non_empty_target_is_rejected(client: ApiClient, tmp_path: Path) -> None:
    export(tmp_path / "out")

    with pytest.raises(CommandError, match="is not empty"):
        export(tmp_path / "out")


def test_interrupted_export_is_restarted(client: ApiClient, tmp_path: Path) -> None:
    export(tmp_path / "out")
    (tmp_path / "out/manifest.jsonl").rename(tmp_path / "out/manifest.jsonl.partial")

    assert "is incomplete" in Run("--from", tmp_path / "out").error
    assert export(tmp_path / "out")["states"] == 3
    assert run(tmp_path / "out", "--dry-run").json["refused"] == 3  # they are here already


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "manifest.jsonl is damaged"),
        (b'{"infra_service_export": 3, "exported_at": "2026-01-01T00:00:00Z"}', "has format 3"),
        (
            b'{"infra_service_export": 2, "exported_at": "2026-01-01T00:00:00Z"}',
            "does not name an installation",
        ),
    ],
)
def test_other_manifest_is_refused(tmp_path: Path, line: bytes, message: str) -> None:
    (tmp_path / "manifest.jsonl").write_bytes(line)

    assert message in Run("--from", tmp_path).error


def test_a_path_leads_out_of_the_export(client: ApiClient, tmp_path: Path) -> None:
    export(tmp_path / "out")
    wipe()
    (tmp_path / "secret.tfstate").write_bytes(document(1))
    manifest = tmp_path / "out/manifest.jsonl"
    manifest.write_text(manifest.read_text().replace("network/prod.tfs", "../secret.tfs"))

    done = run(tmp_path / "out")

    assert "is outside the export" in next(iter(done.reasons.values()))
