"""Documents in an object store. With a real S3-speaking server: tests/e2e/test_object_store.py."""

import uuid
from typing import Any

import pytest
from django.db import connection

from states.actions import push
from states.errors import StorageUnavailable
from states.keeping import reading, storage
from states.models import State, StateVersion
from tests.conftest import error_reason
from tests.states.conftest import Backend, UnsteadyStorage, document


def test_a_document_goes_to_the_store(backend: Backend, store: UnsteadyStorage) -> None:
    backend.push(document())

    version = StateVersion.objects.defer(None).get()
    assert version.document is None
    assert version.object_name.startswith(f"{version.state_id}/{version.pk}.")
    assert store.names == {version.object_name}
    assert backend.get().content == document()


def test_it_is_not_readable_at_rest(backend: Backend, store: UnsteadyStorage) -> None:
    backend.push(document(outputs={"password": {"value": "hunter2" * 50}}))

    (name,) = store.names
    payload = store.open(name).read()
    assert b"hunter2" not in payload
    assert not payload.startswith(b"\x1f\x8b")


def test_documents_may_be_in_both_places(
    backend: Backend, seeing: Backend, store: UnsteadyStorage, settings: Any
) -> None:
    backend.push(document(1))
    settings.STATE_STORAGE_WRITES = False
    backend.push(document(2))

    assert [bool(v.object_name) for v in StateVersion.objects.order_by("number")] == [True, False]
    for number in (1, 2):
        assert seeing.look(f"/versions/{number}/document").content == document(number)
    assert backend.look("/versions/2/diff").status_code == 200
    assert backend.call("/versions/1:restore").status_code == 200


def test_push_without_the_store_is_rejected(backend: Backend, store: UnsteadyStorage) -> None:
    backend.push(document(1))
    store.failing = True

    response = backend.push(document(2))

    assert (response.status_code, error_reason(response)) == (503, "STORAGE_UNAVAILABLE")
    assert response["Retry-After"] == "2"
    assert (backend.record.serial, StateVersion.objects.count()) == (1, 1)
    store.failing = False
    assert backend.push(document(2)).status_code == 200
    assert backend.get().content == document(2)


def test_repeated_push_does_not_use_the_store(backend: Backend, store: UnsteadyStorage) -> None:
    backend.push(document())
    store.failing = True

    assert backend.push(document()).status_code == 200


def test_a_read_while_the_store_is_away(backend: Backend, store: UnsteadyStorage) -> None:
    backend.push(document())
    store.failing = True

    response = backend.get()

    assert (response.status_code, error_reason(response)) == (503, "STORAGE_UNAVAILABLE")
    assert response["Retry-After"] == "2"


def test_swapped_objects_are_detected(backend: Backend, store: UnsteadyStorage) -> None:
    backend.push(document(1))
    backend.push(document(2))
    first, second = StateVersion.objects.order_by("number")
    StateVersion.objects.filter(pk=second.pk).update(object_name=first.object_name)

    assert error_reason(backend.get()) == "DOCUMENT_DAMAGED"


def test_no_store_is_configured_any_more(
    backend: Backend, store: UnsteadyStorage, settings: Any
) -> None:
    backend.push(document())
    settings.STORAGES = {k: v for k, v in settings.STORAGES.items() if k != "states"}

    response = backend.get()

    assert (response.status_code, error_reason(response)) == (503, "STORAGE_UNAVAILABLE")
    assert "STATE_STORAGE_URL is not set" in response.json()["error"]["message"]


def test_push_that_loses_the_race_leaves_no_object(
    backend: Backend, store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.push(document(1))
    real = storage.place
    pending = [lambda: backend.push(document(2, outputs={"other": {}}))]

    def place(*given: Any) -> Any:
        placed = real(*given)
        if pending:
            pending.pop()()
        return placed

    monkeypatch.setattr(storage, "place", place)

    assert error_reason(backend.push(document(2))) == "SERIAL_CONFLICT"

    assert store.names == {v.object_name for v in StateVersion.objects.all()}
    assert len(store.names) == 2


def test_failed_deletions_are_left_to_the_sweep(backend: Backend, store: UnsteadyStorage) -> None:
    backend.push(document())
    store.failing = True

    storage.discard(StateVersion.objects.get().object_name)

    store.failing = False
    assert len(store.names) == 1


def test_deleting_a_missing_object_succeeds(store: UnsteadyStorage) -> None:
    storage.discard(f"{uuid.uuid4()}/gone")
    storage.discard("")


def test_concurrently_moved_document_is_read(
    backend: Backend, store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row named an object that was deleted meanwhile, so the row is read again."""
    backend.push(document())
    version = StateVersion.objects.get()
    payload = store.open(version.object_name).read()
    real = storage.fetch

    def fetch(name: str) -> bytes:
        store.delete(name)
        StateVersion.objects.filter(pk=version.pk).update(object_name="", document=payload)
        return real(name)

    monkeypatch.setattr(storage, "fetch", fetch)

    assert backend.get().content == document()


def test_concurrently_pruned_version_is_reported(
    seeing: Backend, backend: Backend, store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.push(document(1))
    backend.push(document(2))
    first = StateVersion.objects.get(number=1)
    real = storage.fetch

    def fetch(name: str) -> bytes:
        StateVersion.objects.filter(pk=first.pk).delete()
        store.delete(name)
        return real(name)

    monkeypatch.setattr(storage, "fetch", fetch)

    response = seeing.look("/versions/1/document")

    assert (response.status_code, error_reason(response)) == (404, "VERSION_NOT_FOUND")


def test_database_storage_needs_no_additional_queries(
    backend: Backend, django_assert_num_queries: Any
) -> None:
    backend.push(document(1))

    # Token and state; swap, version and audit event, on SQLite between begin and commit.
    with django_assert_num_queries(2 if connection.vendor == "postgresql" else 6):
        backend.push(document(2))


def test_a_deleted_row_is_no_document(backend: Backend) -> None:
    assert reading.load(uuid.uuid4(), uuid.uuid4()) == (None, b"")


def test_an_unknown_outcome_keeps_the_object(
    backend: Backend, store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit without a response may have succeeded, so the object must be kept."""

    def lost(*_given: Any, **_details: Any) -> None:
        raise RuntimeError("the connection is gone")

    monkeypatch.setattr(push, "_make_current", lost)

    assert backend.push(document()).status_code == 500

    assert len(store.names) == 1
    assert State.objects.get().current_version is None


@pytest.mark.parametrize(
    ("code", "raised"),
    [("NoSuchKey", storage.ObjectMissingError), ("NoSuchBucket", StorageUnavailable)],
)
def test_object_deleted_during_a_read_is_handled(
    store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch, code: str, raised: type[Exception]
) -> None:
    """The S3 client first checks that the object exists, then reads it."""

    class ClientError(Exception):
        response = {"Error": {"Code": code}}

    def gone(_name: str) -> None:
        raise ClientError

    monkeypatch.setattr(store, "open", gone)

    with pytest.raises(raised):
        storage.fetch("x/y")
