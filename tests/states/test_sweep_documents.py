"""The command sweep_documents."""

import datetime as dt
import io
import json
import uuid
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.states.conftest import Backend, UnsteadyStorage, document


def sweep(**options: Any) -> Any:
    out, err = io.StringIO(), io.StringIO()
    call_command("sweep_documents", stdout=out, stderr=err, json=True, **options)
    return {**json.loads(out.getvalue()), "names": err.getvalue().split()}


@pytest.fixture
def orphan(backend: Backend, store: UnsteadyStorage) -> str:
    """An object that belongs to no version."""
    backend.push(document())
    return store.save(f"{backend.record.pk}/{uuid.uuid4()}.0", ContentFile(b"x"))


@pytest.fixture
def hours_later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that sets the clock of the store forward."""

    def shift(hours: float) -> None:
        moment = timezone.now() + dt.timedelta(hours=hours)
        monkeypatch.setattr("django.core.files.storage.memory.now", lambda: moment)

    return shift


def test_old_orphans_go(
    backend: Backend, store: UnsteadyStorage, orphan: str, hours_later: Any
) -> None:
    hours_later(25)

    assert sweep() == {"swept": 1, "dry_run": False, "names": [orphan]}

    assert orphan not in store.names
    assert backend.get().content == document()


def test_recent_objects_are_kept(store: UnsteadyStorage, orphan: str, hours_later: Any) -> None:
    hours_later(23)

    assert sweep()["swept"] == 0
    assert sweep(older_than_hours=22)["swept"] == 1


def test_a_dry_run_only_names_them(store: UnsteadyStorage, orphan: str, hours_later: Any) -> None:
    hours_later(25)

    assert sweep(dry_run=True) == {"swept": 1, "dry_run": True, "names": [orphan]}
    assert orphan in store.names


def test_objects_of_a_removed_state_are_deleted(
    store: UnsteadyStorage, db: None, hours_later: Any
) -> None:
    store.save(f"{uuid.uuid4()}/{uuid.uuid4()}.0", ContentFile(b"x"))
    hours_later(25)

    assert sweep()["swept"] == 1


def test_foreign_objects_are_kept(store: UnsteadyStorage, db: None, hours_later: Any) -> None:
    store.save("backups/1", ContentFile(b"x"))
    hours_later(25)

    assert sweep()["swept"] == 0


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(), ClientError({"Error": {"Code": "404"}}, "HeadObject")],
    ids=["django", "boto3"],
)
def test_object_deleted_by_another_sweep_is_skipped(
    store: UnsteadyStorage,
    orphan: str,
    hours_later: Any,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    hours_later(25)
    real = store.get_modified_time

    def gone(name: str) -> dt.datetime:
        if name == orphan:
            raise error
        return real(name)

    monkeypatch.setattr(store, "get_modified_time", gone)

    assert sweep()["swept"] == 0


def test_failing_object_does_not_stop_the_sweep(
    store: UnsteadyStorage, orphan: str, hours_later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours_later(25)
    refused = store.save(f"{orphan.partition('/')[0]}/{uuid.UUID(int=0)}.0", ContentFile(b"x"))
    real = store.get_modified_time

    def denied(name: str) -> dt.datetime:
        if name == refused:
            raise PermissionError("denied")
        return real(name)

    monkeypatch.setattr(store, "get_modified_time", denied)
    out, err = io.StringIO(), io.StringIO()

    with pytest.raises(CommandError, match="1 failed, and the rest succeeded"):
        call_command("sweep_documents", stdout=out, stderr=err, json=True)

    assert (json.loads(out.getvalue())["swept"], err.getvalue()) == (1, f"{orphan}\n")
    assert refused in store.names


def test_refused_deletion_is_reported(
    store: UnsteadyStorage, orphan: str, hours_later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, the credentials lack s3:DeleteObject."""
    hours_later(25)
    refusal = ClientError({"Error": {"Code": "AccessDenied"}}, "DeleteObject")
    monkeypatch.setattr(store, "delete", Mock(side_effect=refusal))
    out, err = io.StringIO(), io.StringIO()

    with pytest.raises(CommandError, match="1 failed, and the rest succeeded"):
        call_command("sweep_documents", stdout=out, stderr=err, json=True)

    assert (json.loads(out.getvalue())["swept"], err.getvalue()) == (0, "")
    assert orphan in store.names


@pytest.mark.parametrize("hours", [-25, 25])
def test_wrong_clock_of_the_command_is_ignored(
    store: UnsteadyStorage, orphan: str, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The object could belong to a push in progress."""
    moment = timezone.now() + dt.timedelta(hours=hours)
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment)

    assert sweep()["swept"] == 0
    assert store.listdir("")[1] == []


def test_new_object_that_the_store_does_not_return(
    store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "get_modified_time", Mock(side_effect=FileNotFoundError))

    with pytest.raises(CommandError, match="stopped after 0 objects"):
        sweep()


@pytest.mark.parametrize("hours", [0.5, -1, 1e300, float("inf"), float("nan")])
def test_unsafe_ages_are_rejected(store: UnsteadyStorage, hours: float) -> None:
    with pytest.raises(CommandError, match="at least 1"):
        sweep(older_than_hours=hours)


def test_there_is_no_store() -> None:
    with pytest.raises(CommandError, match="STATE_STORAGE_URL is not set"):
        sweep()


def test_the_store_is_away(store: UnsteadyStorage) -> None:
    store.failing = True

    with pytest.raises(CommandError, match="stopped after 0 objects"):
        sweep()


@pytest.mark.parametrize(
    ("dry_run", "line"), [(True, "0 objects would be deleted\n"), (False, "0 objects deleted\n")]
)
def test_output_for_people_is_readable(
    store: UnsteadyStorage, db: None, dry_run: bool, line: str
) -> None:
    out = io.StringIO()

    call_command("sweep_documents", stdout=out, dry_run=dry_run)

    assert out.getvalue() == line
