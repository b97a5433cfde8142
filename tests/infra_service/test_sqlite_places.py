"""Writers that wait for SQLite's lock leave threads to readers."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError, connection, transaction

from infra_service.api.errors import reason_of
from infra_service.database.failures import failure_of
from infra_service.database.sqlite import base


@pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's own")
@pytest.mark.django_db(transaction=True)
def test_one_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    places = threading.BoundedSemaphore(1)
    monkeypatch.setattr(base, "places", places)
    monkeypatch.setattr(base, "_PATIENCE", 0.01)
    with transaction.atomic():
        assert places.acquire(blocking=False)  # who has the lock holds no place
        places.release()
    with places, pytest.raises(OperationalError) as caught, transaction.atomic():
        raise AssertionError
    failure = failure_of(caught.value)

    assert failure is not None
    assert reason_of(failure) == "DATABASE_BUSY"
    with transaction.atomic():
        pass
