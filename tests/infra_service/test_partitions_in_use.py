"""Partitions are created while another client, such as a backup, reads the default partition."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from infra_service.lib.database.postgresql import lock_waits, partitions
from tests.infra_service.test_partitions import event, remove_months, run
from tests.support.committed import at_once, db  # noqa: F401 - commits, in place of pytest-django's
from tests.support.partitions import TABLE

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about partitions"),
    pytest.mark.usefixtures("db"),
]


def test_removal_of_the_limit_blocks_writers_only_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    remove_months()
    event(timezone.now())
    monkeypatch.setattr(lock_waits, "_WAIT", "100ms")
    monkeypatch.setattr(partitions, "PAUSE", 0.1)
    is_validating, is_reading, is_written = threading.Event(), threading.Event(), threading.Event()
    partitions_run = partitions.run

    def run_with_reader(cursor: object, statement: str, *names: str) -> None:
        if "VALIDATE CONSTRAINT" in statement:
            is_validating.set()
            assert is_reading.wait(10)
        partitions_run(cursor, statement, *names)

    def adopt() -> None:
        with pytest.raises(OperationalError):
            partitions.create_ahead(TABLE)

    def read() -> None:
        assert is_validating.wait(10)
        with transaction.atomic():
            run(f"LOCK TABLE {TABLE}_default IN ACCESS SHARE MODE")
            is_reading.set()
            is_written.wait(10)

    def write() -> None:
        assert is_reading.wait(10)
        time.sleep(1)  # until the removal waits
        started = time.monotonic()
        event(timezone.now())
        is_written.set()
        assert time.monotonic() - started < 5

    monkeypatch.setattr(partitions, "run", run_with_reader)
    at_once([adopt, read, write])

    monkeypatch.undo()
    partitions.create_ahead(TABLE)
    assert run(f"SELECT count(*) FROM {TABLE}_default") == [(0,)]
