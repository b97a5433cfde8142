"""Two exports never overwrite each other: an origin names the installation and the state."""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from states.models import Component, ImportedVersion, Installation, State, StateVersion
from tests.conftest import ApiClient
from tests.states.conftest import document
from tests.states.test_export_states import export, wipe
from tests.states.test_import_states import lineage, run

pytestmark = pytest.mark.django_db
PATH = "net/prod.tfstate"
_OCCUPIED = "The address belongs to an existing state that was not imported from this source."


def exported(
    directory: Path,
    *,
    installation: uuid.UUID | None,
    state_id: uuid.UUID,
    numbers: dict[int, bytes],
    ids: dict[int, uuid.UUID] | None = None,
) -> Path:
    """Write a one-state export like ``export_states``; without an installation, in format 1."""
    header: dict[str, Any] = {"infra_service_export": 1, "exported_at": "2026-11-25T15:13:45Z"}
    if installation is not None:
        header |= {"infra_service_export": 2, "installation": str(installation)}
    versions = []
    for number, body in numbers.items():
        path = PATH if number == max(numbers) else f"net/prod.history/{number}.tfstate"
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
        versions.append({
            "id": str((ids or {}).get(number) or uuid.uuid4()),
            "number": number,
            "serial": number,
            "lineage": lineage(1),
            "md5": hashlib.md5(body).hexdigest(),
            "size_bytes": len(body),
            "created_at": "2026-11-25T15:13:29Z",
            "created_by": "operator",
            "path": path,
        })  # fmt: skip
    state = {
        "id": str(state_id),
        "application_id": None,
        "component_id": str(uuid.uuid4()),
        "environment_id": str(uuid.uuid4()),
        "application": None,
        "component": "net",
        "environment": "prod",
        "application_name": None,
        "component_name": "net",
        "environment_name": "prod",
        "path": PATH,
        "versions": versions,
    }
    lines = "".join(json.dumps(line) + "\n" for line in (header, state))
    (directory / "manifest.jsonl").write_text(lines)
    return directory


def net() -> State:
    return State.objects.get(component__slug="net")


@pytest.mark.parametrize("installations", [(None, None), (uuid.uuid4(), uuid.uuid4())])
@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_the_export_of_another_installation_is_refused(
    tmp_path: Path, installations: Any, dry_run: Any
) -> None:
    """Both have a state at the same names; the manifests are of the old and of the new format."""
    first, second = (
        exported(
            tmp_path / str(number),
            installation=installation,
            state_id=uuid.uuid4(),
            numbers={number: document(number, lineage(number))},
        )
        for number, installation in enumerate(installations, 1)
    )
    assert run(first).error == ""

    done = run(second, *dry_run)

    assert (done.results, done.reasons) == ({PATH: "refused"}, {PATH: _OCCUPIED})
    assert (net().serial, net().version_number) == (1, 1)
    assert run(first).results == {PATH: "unchanged"}


def test_a_later_export_of_the_same_state_follows(tmp_path: Path) -> None:
    given: Any = {"installation": uuid.uuid4(), "state_id": uuid.uuid4()}
    run(exported(tmp_path / "1", **given, numbers={500: document(1)}))

    done = run(exported(tmp_path / "2", **given, numbers={1000: document(2)}))

    assert done.results == {PATH: "imported"}
    assert list(net().versions.order_by("number").values_list("number", flat=True)) == [500, 1000]


def test_states_with_exchanged_names_are_recognized(client_with: Any, tmp_path: Path) -> None:
    client: ApiClient = client_with("state:read", "state:write", "state:admin")
    for number, name in enumerate(("one", "two")):
        push(client, name, document(1, lineage(number)))
    export(tmp_path / "first")
    for former, name in (("one", "x"), ("two", "one"), ("x", "two")):
        Component.objects.filter(slug=former).update(slug=name)
    for number, name in enumerate(("two", "one")):
        push(client, name, document(2, lineage(number)))
    export(tmp_path / "second")
    export(tmp_path / "history", "--history")
    wipe()
    assert run(tmp_path / "first").error == ""

    for source, reason in (
        ("second", _OCCUPIED),
        (
            "history",
            "The state was already imported to another address. Assign it that address with a map.",
        ),
    ):
        done = run(tmp_path / source, "--history", "all")

        assert set(done.reasons.values()) == {reason}
        found = State.objects.values_list("component__slug", "lineage", "serial")
        assert set(found) == {("one", lineage(0), 1), ("two", lineage(1), 1)}


def push(client: ApiClient, name: str, body: bytes) -> None:
    path = f"/api/v1/state/at/{name}/prod"
    assert client.post(path, body, "application/json").status_code == 200


@pytest.mark.parametrize("key", ["path", "state"])
def test_states_imported_by_earlier_releases_are_recognized(tmp_path: Path, key: str) -> None:
    """It recorded neither the installation nor, at first, the state."""
    state_id, ids = uuid.uuid4(), {1: uuid.uuid4()}
    old = exported(
        tmp_path / "1", installation=None, state_id=state_id, numbers={1: document(1)}, ids=ids
    )
    run(old)
    if key == "path":
        imported = ImportedVersion.objects.get()
        digest = ImportedVersion.digest_of("export", PATH, str(ids[1]))
        ImportedVersion.objects.filter(pk=imported.pk).update(key=PATH, digest=digest)
    assert run(old).results == {PATH: "unchanged"}

    new = exported(
        tmp_path / "2",
        installation=uuid.uuid4(),
        state_id=state_id,
        numbers={1: document(1), 2: document(2)},
        ids=ids,
    )
    done = run(new, "--history", "all")

    assert (done.error, done.json["imported"]) == ("", 1)
    assert (net().version_number, net().serial) == (2, 2)


def test_a_copy_of_the_installation_has_gone_another_way(tmp_path: Path) -> None:
    """A copy of the database has the same identity, and the same IDs up to the copy."""
    given: Any = {"installation": uuid.uuid4(), "state_id": uuid.uuid4(), "ids": {1: uuid.uuid4()}}
    documents = {1: document(1), 2: document(2)}
    run(exported(tmp_path / "1", **given, numbers=documents), "--history", "all")
    copy = exported(tmp_path / "2", **given, numbers={**documents, 3: document(9)})

    done = run(copy, "--history", "all")

    assert "version 2 differs from the imported version" in done.reasons[PATH]
    assert (net().version_number, net().serial) == (2, 2)


def test_other_json_in_a_history_does_not_replace_a_state(tmp_path: Path) -> None:
    given: Any = {"installation": uuid.uuid4(), "state_id": uuid.uuid4()}
    source = exported(
        tmp_path / "1", **given, numbers={1: b'{"any": 1}', 2: document(2), 3: b'{"any": 3}'}
    )

    rehearsed = run(source, "--history", "all", "--dry-run")
    done = run(source, "--history", "all")

    assert done.reasons[PATH].startswith(rehearsed.reasons[PATH])
    assert "does not replace a state" in rehearsed.reasons[PATH]
    assert (net().serial, net().version_number) == (2, 2)


def test_the_identity_is_in_the_manifest_and_stays(client_with: Any, tmp_path: Path) -> None:
    push(client_with("state:write"), "net", document(1))
    for name in ("1", "2"):
        export(tmp_path / name)

    headers = [
        json.loads((tmp_path / name / "manifest.jsonl").read_text().splitlines()[0])
        for name in ("1", "2")
    ]
    assert {header["installation"] for header in headers} == {str(Installation.here())}
    Installation.objects.update(identity=uuid.uuid4())
    assert str(Installation.here()) != headers[0]["installation"]


def test_installation_is_a_single_row() -> None:
    """The law behind the rule: the constraint, named."""
    with pytest.raises(IntegrityError, match="installation_only_one"), transaction.atomic():
        Installation.objects.create(pk=2)


def test_gaps_between_numbers_are_no_versions(tmp_path: Path, settings: Any) -> None:
    settings.STATE_VERSIONS_KEPT, settings.STATE_VERSIONS_DAYS = 2, 0
    given: Any = {"installation": None, "state_id": uuid.uuid4()}
    for number in (500, 1000):
        run(exported(tmp_path / str(number), **given, numbers={number: document(number)}))

    call_command("prune_states")

    assert StateVersion.objects.count() == 2
    run(exported(tmp_path / "3", **given, numbers={1001: document(1001)}))
    call_command("prune_states")
    numbers = net().versions.order_by("number").values_list("number", flat=True)
    assert list(numbers) == [1000, 1001]
