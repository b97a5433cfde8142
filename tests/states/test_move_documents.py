"""The command move_documents."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from states.keeping import reading, reencryption, storage
from states.models import StateVersion
from tests.states.conftest import Backend, UnsteadyStorage, document
from tests.states.test_documents import new_key
from tests.support.terminal import Terminal


def move(to: str) -> Any:
    out = io.StringIO()
    call_command("move_documents", to=to, stdout=out, stderr=io.StringIO(), json=True)
    return json.loads(out.getvalue())


@pytest.fixture
def three(backend: Backend) -> Backend:
    """Three versions in the database."""
    for serial in (1, 2, 3):
        backend.push(document(serial))
    return backend


def places() -> set[str]:
    return {v.object_name for v in StateVersion.objects.all()}


def test_round_trip_preserves_the_data(
    three: Backend, seeing: Backend, store: UnsteadyStorage, settings: Any
) -> None:
    assert move("storage") == {"moved": 3, "damaged": 0}
    assert places() == store.names
    assert not StateVersion.objects.filter(document__isnull=False).exists()

    settings.STATE_STORAGE_WRITES = False
    assert move("database") == {"moved": 3, "damaged": 0}
    assert (places(), store.names) == ({""}, set())
    for number in (1, 2, 3):
        assert seeing.look(f"/versions/{number}/document").content == document(number)


def test_repeated_run_is_a_no_op(three: Backend, store: UnsteadyStorage) -> None:
    move("storage")

    assert move("storage") == {"moved": 0, "damaged": 0}


def test_a_run_that_was_stopped_is_continued(three: Backend, store: UnsteadyStorage) -> None:
    next(reencryption.move(to_store=True))
    assert len(store.names) == 1

    assert move("storage") == {"moved": 2, "damaged": 0}


def test_moving_gives_the_first_key_too(
    three: Backend, store: UnsteadyStorage, settings: Any
) -> None:
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]

    move("storage")

    assert not reencryption.outdated().exists()


def test_keys_are_rotated_in_the_store_too(
    three: Backend, store: UnsteadyStorage, settings: Any
) -> None:
    move("storage")
    before = store.names
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]

    call_command("rotate_state_keys", stdout=io.StringIO())

    assert places() == store.names
    assert not store.names & before
    settings.STATE_ENCRYPTION_KEYS = settings.STATE_ENCRYPTION_KEYS[:1]
    assert three.get().content == document(3)


def test_damaged_documents_stay_and_are_named(three: Backend, store: UnsteadyStorage) -> None:
    StateVersion.objects.filter(number=2).update(document=b"\0" * 40)
    out, err = io.StringIO(), io.StringIO()

    with pytest.raises(CommandError, match="1 damaged documents were not moved"):
        call_command("move_documents", to="storage", stdout=out, stderr=err)

    assert out.getvalue() == "2 documents moved\n"
    assert err.getvalue() == f"damaged: state {three.record.pk} version 2\n"
    assert StateVersion.objects.get(number=2).object_name == ""


def test_the_store_goes_away(three: Backend, store: UnsteadyStorage) -> None:
    store.failing = True

    with pytest.raises(CommandError, match="stopped after 0 documents"):
        move("storage")
    with pytest.raises(CommandError, match="stopped after 0 documents"):
        call_command("move_documents", to="storage")

    assert places() == {""}


def test_keys_cannot_be_rotated_while_the_store_is_away(
    three: Backend, store: UnsteadyStorage, settings: Any
) -> None:
    move("storage")
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]
    store.failing = True

    with pytest.raises(CommandError, match="stopped after 0 documents"):
        call_command("rotate_state_keys")


def test_a_change_in_between_is_found_again(
    three: Backend, store: UnsteadyStorage, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are rotated after the mover has read: it deletes its object and reads again."""
    old_keys = settings.STATE_ENCRYPTION_KEYS
    real = storage.put
    pending = [True]

    def put(*given: Any) -> str:
        name = real(*given)
        if pending:
            pending.pop()
            StateVersion.objects.filter(pk=given[2]).update(encryption_key="0" * 16)
            monkeypatch.setattr(reading, "load", restoring)
        return name

    load = reading.load

    def restoring(*ids: Any) -> Any:
        key = StateVersion.objects.exclude(encryption_key="0" * 16).first()
        assert key is not None
        StateVersion.objects.update(encryption_key=key.encryption_key)
        return load(*ids)

    monkeypatch.setattr(storage, "put", put)

    assert move("storage") == {"moved": 3, "damaged": 0}

    assert places() == store.names
    assert old_keys == settings.STATE_ENCRYPTION_KEYS


def test_progress_is_shown(
    three: Backend, store: UnsteadyStorage, each_count_is_drawn: None
) -> None:
    terminal = Terminal()

    call_command("move_documents", to="storage", stdout=io.StringIO(), stderr=terminal)

    assert " 3 of 3, " in terminal.drawn[-1]


def test_contradicting_settings_are_refused(store: UnsteadyStorage, settings: Any) -> None:
    with pytest.raises(CommandError, match="first set STATE_STORAGE_WRITES=false"):
        move("database")
    settings.STATE_STORAGE_WRITES = False
    with pytest.raises(CommandError, match="STATE_STORAGE_WRITES is false"):
        move("storage")


def test_there_is_no_store() -> None:
    with pytest.raises(CommandError, match="STATE_STORAGE_URL is not set"):
        move("storage")
