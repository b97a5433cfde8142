"""Writers that wait for SQLite's lock leave threads for readers and block no other work."""

from __future__ import annotations

import gc
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from django.db import OperationalError, connection, transaction

from infra_service.lib.api.errors import reason_of
from infra_service.lib.database.failures import failure_of
from infra_service.lib.database.sqlite import base


@pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's own")
@pytest.mark.django_db(transaction=True)
def test_writer_above_the_limit_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    places = threading.BoundedSemaphore(1)
    monkeypatch.setattr(base, "places", places)
    monkeypatch.setattr(base, "_QUEUE_TIMEOUT", 0.01)
    with transaction.atomic():
        assert places.acquire(blocking=False)  # the owner of the lock holds no place
        places.release()
    with places, pytest.raises(OperationalError) as caught, transaction.atomic():
        raise AssertionError
    failure = failure_of(caught.value)

    assert failure is not None
    assert reason_of(failure) == "DATABASE_BUSY"
    with transaction.atomic():
        pass


@pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's own")
@pytest.mark.django_db
def test_garbage_collection_of_a_rejected_writer_does_not_block(tmp_path: Path) -> None:
    """Any thread may collect garbage: the worker's loop, or a thread that answers /healthz."""
    path, again, began = tmp_path / "db.sqlite3", threading.Event(), threading.Event()

    def write() -> None:
        own = connection.copy()
        own.settings_dict |= {"NAME": path, "OPTIONS": {**own.settings_dict["OPTIONS"]}}
        own.settings_dict["OPTIONS"]["timeout"] = 0.01
        begin = {"autocommit": False, "force_begin_transaction_with_broken_autocommit": True}
        with closing(own):
            left: list[object] = []
            with pytest.raises(OperationalError) as caught:
                own.set_autocommit(**begin)
            left += [left, caught.value]
            del left, caught
            with own.cursor() as cursor:
                cursor.execute("PRAGMA busy_timeout = 10000")
            again.set()
            own.set_autocommit(**begin)
            began.set()

    gc.disable()
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("PRAGMA journal_mode = WAL")
            holder.execute("BEGIN IMMEDIATE")
            writer = threading.Thread(target=write)
            writer.start()
            assert again.wait(60)
            time.sleep(0.2)  # its second wait has begun
            gc.collect()
            holder.execute("ROLLBACK")
            writer.join()
    finally:
        gc.enable()
    assert began.is_set()
