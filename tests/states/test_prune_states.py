"""The command prune_states."""

import datetime as dt
import io
import json
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from apikeys.models import AuditEvent
from states.keeping import pruning
from states.models import State, StateVersion
from tests.states.conftest import Backend, UnsteadyStorage, document
from tests.support.terminal import Terminal


def prune(**options: Any) -> Any:
    out = io.StringIO()
    call_command("prune_states", stdout=out, stderr=io.StringIO(), json=True, **options)
    return json.loads(out.getvalue())


def age(days: int, **which: Any) -> None:
    born = timezone.now() - dt.timedelta(days=days)
    StateVersion.objects.filter(**which).update(created_at=born)


def numbers() -> list[int]:
    return list(StateVersion.objects.order_by("number").values_list("number", flat=True))


@pytest.fixture
def six(admin: Backend, settings: Any) -> Backend:
    """Six versions, of which two are kept for their number."""
    settings.STATE_VERSIONS_KEPT = 2
    for serial in range(1, 7):
        admin.push(document(serial))
    return admin


def test_old_versions_beyond_the_newest_go(six: Backend) -> None:
    age(31)

    sizes = sum(len(document(serial)) for serial in (1, 2, 3, 4))
    assert prune() == {"versions": 4, "states": 0, "size_bytes": sizes, "dry_run": False}

    assert numbers() == [5, 6]
    assert six.get().content == document(6)
    event = AuditEvent.objects.get(action="state.prune")
    assert (event.actor_name, event.details) == (
        "command prune_states",
        {"versions": [1, 2, 3, 4]},
    )


def test_recent_versions_are_kept_regardless_of_their_number(six: Backend) -> None:
    age(29)
    age(31, number__in=(1, 3))

    assert prune()["versions"] == 2

    assert numbers() == [2, 4, 5, 6]


def test_numbers_go_on(six: Backend) -> None:
    age(31)
    prune()

    six.push(document(7))

    assert numbers() == [5, 6, 7]


def test_a_dry_run_only_counts(six: Backend) -> None:
    age(31)

    counted = prune(dry_run=True)

    assert counted == {**prune(), "dry_run": True}
    assert prune(dry_run=True)["versions"] == 0


def test_the_current_version_is_never_removed(six: Backend, settings: Any) -> None:
    settings.STATE_VERSIONS_KEPT = 0
    age(31)

    assert prune()["versions"] == 5

    assert numbers() == [6]


def test_pruning_works_in_small_batches(six: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_BATCH", 3)
    age(31)
    run = pruning.prune(actor=pruning_actor())

    assert next(run).versions == 3
    assert numbers() == [4, 5, 6]
    run.close()  # stopped, and continued by the next

    assert prune()["versions"] == 1


def pruning_actor() -> Any:
    from apikeys.actors import Actor  # noqa: PLC0415 - for this test alone

    return Actor(name="test")


def test_objects_go_with_their_rows(six: Backend, store: UnsteadyStorage, settings: Any) -> None:
    settings.STATE_VERSIONS_KEPT = 1
    six.push(document(7))
    six.push(document(8))
    age(31)

    prune()

    assert numbers() == [8]
    assert store.names == {StateVersion.objects.get().object_name}


def test_store_that_is_away_delays_a_batch_only_once(
    six: Backend, store: UnsteadyStorage, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request to such a store takes as long as its timeout."""
    for serial in (7, 8, 9):
        six.push(document(serial))
    settings.STATE_VERSIONS_KEPT = 1
    age(31)
    deletion = Mock(side_effect=ConnectionError)
    monkeypatch.setattr(store, "delete", deletion)

    prune()

    assert (numbers(), len(store.names), deletion.call_count) == ([9], 3, 1)


def delete(backend: Backend, days: int) -> None:
    backend.delete()
    gone = timezone.now() - dt.timedelta(days=days)
    State.objects.filter(component=backend.component_id).update(deleted_at=gone)


def test_a_deleted_state_goes_with_its_history(six: Backend) -> None:
    delete(six, 91)
    state_id = six.record.pk

    assert prune(dry_run=True)["versions"] == 6
    assert {k: v for k, v in prune().items() if k != "size_bytes"} == {
        "versions": 6,
        "states": 1,
        "dry_run": False,
    }

    assert (State.objects.count(), StateVersion.objects.count()) == (0, 0)
    event = AuditEvent.objects.get(action="state.purge")
    assert (event.resource_id, event.details) == (str(state_id), {"version": 6})


def test_dry_run_counts_versions_of_deleted_states_once(six: Backend) -> None:
    age(31)
    delete(six, 91)

    counted = prune(dry_run=True)

    assert (counted["versions"], counted["states"]) == (6, 1)
    assert counted == {**prune(), "dry_run": True}


def test_push_after_a_purge_starts_a_new_history(six: Backend) -> None:
    delete(six, 91)
    prune()

    assert six.push(document(1)).status_code == 200

    assert numbers() == [1]


def test_its_retention_is_waited_for(six: Backend) -> None:
    delete(six, 89)

    assert prune()["states"] == 0

    assert six.call(":undelete").status_code == 200
    assert numbers() == [1, 2, 3, 4, 5, 6]


def test_locked_deleted_state_is_kept(six: Backend, lock_id: Any) -> None:
    delete(six, 91)
    six.lock(lock_id)

    assert prune()["states"] == 0


def test_locked_state_without_a_version_is_kept(admin: Backend, lock_id: Any) -> None:
    """Nothing was ever pushed; a deletion of nothing is refused, so it stays."""
    admin.lock(lock_id)
    admin.unlock(lock_id)

    assert prune() == {"versions": 0, "states": 0, "size_bytes": 0, "dry_run": False}


@pytest.mark.parametrize("moment", ["between batches", "at the end"])
def test_state_restored_during_the_run(
    six: Backend, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The push restores the current version; versions pruned before stay deleted."""
    monkeypatch.setattr(pruning, "_BATCH", 3)
    delete(six, 91)
    run = pruning.prune(actor=pruning_actor())
    assert next(run).versions == 3
    if moment == "at the end":
        assert next(run).versions == 2

    six.push(document(9))
    assert list(run) == []

    assert six.get().content == document(9)
    assert numbers() == ([4, 5, 6, 7] if moment == "between batches" else [6, 7])


@pytest.mark.parametrize("dry_run", [True, False])
def test_failing_state_does_not_stop_the_run(
    six: Backend, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    other = Backend(six.client)
    for serial in (1, 2, 3):
        other.push(document(serial))
    deleted = Backend(six.client)
    deleted.push(document(1))
    delete(deleted, 91)
    age(31)
    states = [six.record.pk, other.record.pk]
    real = pruning._prune_versions

    def prune_others(state: State, *args: Any, **options: Any) -> Any:
        if state.pk == min(states):
            raise RuntimeError("unforeseen")
        yield from real(state, *args, **options)

    monkeypatch.setattr(pruning, "_prune_versions", prune_others)
    out = io.StringIO()

    with pytest.raises(CommandError, match="1 failed, and the rest succeeded"):
        call_command("prune_states", stdout=out, json=True, dry_run=dry_run)

    done = json.loads(out.getvalue())
    expected = 1 if min(states) == six.record.pk else 4
    assert (done["versions"], done["states"]) == (expected + 1, 1)


def test_progress_is_shown(
    six: Backend, monkeypatch: pytest.MonkeyPatch, each_count_is_drawn: None
) -> None:
    monkeypatch.setattr(pruning, "_BATCH", 1)
    age(31)
    out, terminal = io.StringIO(), Terminal()

    call_command("prune_states", dry_run=True, stdout=io.StringIO(), stderr=terminal)
    assert terminal.drawn[-1].startswith("versions 4, ")
    call_command("prune_states", stdout=out, stderr=terminal)

    assert " 4 of 4, " in terminal.drawn[-1]
    size = sum(len(document(serial)) for serial in (1, 2, 3, 4))
    assert out.getvalue() == (
        f"removed: 4 versions and 0 deleted states, {size} bytes of documents\n"
    )
