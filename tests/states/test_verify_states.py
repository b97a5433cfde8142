"""The command verify_states."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from infra_service import key_rotation
from infra_service.lib import encryption
from states.document import sealing
from states.keeping import reading
from states.models import State, StateVersion
from tests.states.conftest import Backend, UnsteadyStorage, document
from tests.support.terminal import Terminal


def verify(**options: Any) -> Any:
    """Run the command and return its output, also after a failure."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("verify_states", stdout=out, stderr=err, json=True, **options)
    except CommandError as error:
        return {**json.loads(out.getvalue()), "error": str(error), "stderr": err.getvalue()}
    return json.loads(out.getvalue())


def all_well(**counts: int) -> dict[str, Any]:
    """Return the outcome without a problem, and without a value of an older key."""
    kinds = ["documents", *(kind.name for kind in key_rotation.KINDS)]
    return {**counts, "problems": [], "need_older_keys": dict.fromkeys(kinds, 0)}


@pytest.fixture
def both(backend: Backend, store: UnsteadyStorage, settings: Any) -> Backend:
    """A document in the object store and another in the database."""
    backend.push(document(1))
    settings.STATE_STORAGE_WRITES = False
    backend.push(document(2))
    return backend


def test_all_is_well(both: Backend) -> None:
    assert verify() == all_well(checked=2, unnumbered=0)


def test_versions_are_read_without_a_join(backend: Backend) -> None:
    """For each batch, Citus would read all versions on all workers."""
    backend.push(document())
    with CaptureQueriesContext(connection) as queries:
        verify()
    of_versions = [q["sql"] for q in queries if 'FROM "states_stateversion"' in q["sql"]]
    assert of_versions
    assert not any("JOIN" in sql for sql in of_versions)


def test_problems_in_both_stores(both: Backend, store: UnsteadyStorage) -> None:
    name = StateVersion.objects.get(number=1).object_name
    store.delete(name)
    StateVersion.objects.filter(number=2).update(md5="0" * 32)

    found = verify()

    state_id = str(both.record.pk)
    missing = "The object that contains the document is missing."
    wrong = "The document does not match its recorded digest and size."
    assert found["checked"] == 2
    assert found["problems"] == [
        {"state": state_id, "version": 1, "stored_in": name, "problem": missing},
        {"state": state_id, "version": 2, "stored_in": "database", "problem": wrong},
    ]
    assert found["error"] == "2 of 2 documents cannot be read"
    assert found["stderr"] == (f"{state_id} 1 {name} {missing}\n{state_id} 2 database {wrong}\n")


@pytest.mark.both
@pytest.mark.parametrize(
    "change",
    [{"size_bytes": 1}, {"document": b"\0" * 40}, {"encryption_key": "0" * 16}],
)
def test_damage_is_reported(both: Backend, change: Any) -> None:
    StateVersion.objects.filter(number=2).update(**change)

    assert [p["version"] for p in verify()["problems"]] == [2]


@pytest.mark.parametrize("change", [{"serial": 1}, {"lineage": "other"}])
def test_other_serial_or_lineage_is_reported(both: Backend, change: Any) -> None:
    """Pushes would be compared with the changed columns."""
    StateVersion.objects.filter(number=2).update(**change)
    State.objects.filter(pk=both.record.pk).update(**change)

    (problem,) = verify()["problems"]
    assert problem["problem"] == "The document does not match its recorded serial and lineage."


def test_documents_without_serial_and_lineage_are_well(both: Backend) -> None:
    both.push(b'{"version": 4}')

    assert verify() == all_well(checked=3, unnumbered=0)


def test_the_store_is_away(both: Backend, store: UnsteadyStorage, settings: Any) -> None:
    """Three documents in a row without an answer stop the check."""
    settings.STATE_STORAGE_WRITES = True
    for serial in (3, 4, 5):
        both.push(document(serial))
    store.failing = True

    with pytest.raises(CommandError, match="stopped after"):
        call_command("verify_states")


def test_store_fails_for_a_single_document(
    both: Backend, store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.STATE_STORAGE_WRITES = True
    both.push(document(3))
    refused = StateVersion.objects.get(number=1).object_name
    real = UnsteadyStorage.open

    def open_others(self: UnsteadyStorage, name: str, mode: str = "rb") -> Any:
        if name == refused:
            raise PermissionError("denied")
        return real(self, name, mode)

    monkeypatch.setattr(UnsteadyStorage, "open", open_others)

    found = verify()

    assert (found["checked"], [problem["version"] for problem in found["problems"]]) == (3, [1])


def test_concurrently_pruned_version_is_skipped(
    both: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "load", lambda *_ids: (None, b""))

    assert verify() == all_well(checked=0, unnumbered=0)


def test_progress_is_shown(both: Backend, each_count_is_drawn: None) -> None:
    out, terminal = io.StringIO(), Terminal()

    call_command("verify_states", stdout=out, stderr=terminal)

    assert " 2 of 2, " in terminal.drawn[-1]
    assert out.getvalue().startswith("2 documents checked, 0 problems\n")


MOVED = (
    "The current version of the state is not its newest version, or the state's serial, lineage, "
    "digest or size differs from that version."
)


def test_moved_pointer_is_reported(both: Backend) -> None:
    old = StateVersion.objects.get(number=1)
    State.objects.filter(pk=both.record.pk).update(
        current_version=old, serial=old.serial, md5=old.md5, size_bytes=old.size_bytes
    )

    assert [(p["version"], p["problem"]) for p in verify()["problems"]] == [(1, MOVED), (2, MOVED)]

    State.objects.filter(pk=both.record.pk).update(version_number=1)
    assert verify()["problems"][0]["problem"] == MOVED


def test_figures_of_another_version_are_reported(both: Backend) -> None:
    State.objects.filter(pk=both.record.pk).update(serial=1)

    assert [p["problem"] for p in verify()["problems"]] == [MOVED]


def test_exchanged_numbers_are_reported(both: Backend) -> None:
    both.push(document(3))
    for number, other in ((1, 9), (2, 1), (9, 2)):
        StateVersion.objects.filter(number=number).update(number=other)

    problems = verify()["problems"]

    assert sorted(p["version"] for p in problems) == [1, 2]
    assert both.get().status_code == 200


def test_documents_of_before_numbers_were_a_part_are_read(both: Backend) -> None:
    version = StateVersion.objects.get(number=2)
    key_name, cipher = next(iter(encryption.keyring().items()))
    nonce, ids = b"n" * 12, version.state_id.bytes + version.pk.bytes
    version.document = nonce + cipher.encrypt(nonce, sealing.compress(document(2)), ids)
    version.encryption_key = key_name
    version.save()
    assert both.get().content == document(2)
    assert verify() == all_well(checked=2, unnumbered=1)

    call_command("rotate_state_keys", "--all", stdout=io.StringIO(), stderr=io.StringIO())

    assert both.get().content == document(2)
    assert verify()["unnumbered"] == 0
    StateVersion.objects.filter(pk=version.pk).update(number=7)
    assert [p["version"] for p in verify()["problems"]] == [7]
