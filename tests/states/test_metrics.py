"""Pushes, bytes and locks, counted."""

import datetime as dt
import gzip
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from states import metrics
from states.metrics import FreezeCollector, LockCollector
from states.models import State
from tests.states.conftest import Backend, document
from tests.support import figures
from tests.support.figures import Since
from tests.support.plans import analyze, plans_of
from tools.bench.bulk_states import load_states

PUSHES = "infra_state_pushes_total"
ERRORS = "infra_errors_total"
POST = {"view": "state-backend", "method": "POST"}


def test_pushes_are_counted(backend: Backend) -> None:
    counted, body = Since(), document(1)

    assert [backend.push(body).status_code, backend.push(body).status_code] == [200, 200]

    assert counted(PUSHES, result="stored") == 1
    assert counted(PUSHES, result="unchanged") == 1
    assert counted("infra_state_pushed_bytes_total") == 2 * len(body)


def test_rejected_pushes_are_counted(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.push(document(5))
    counted = Since()

    assert backend.push(document(4)).status_code == 409
    assert backend.push(document(6, lineage="another")).status_code == 409
    assert backend.push(b"[]").status_code == 400
    assert backend.lock(lock_id).status_code == 200
    assert backend.push(document(6)).status_code == 423
    assert backend.lock(uuid.uuid4()).status_code == 423

    assert counted(PUSHES, result="stored") == 0
    assert counted(ERRORS, reason="SERIAL_CONFLICT", **POST) == 1
    assert counted(ERRORS, reason="LINEAGE_MISMATCH", **POST) == 1
    assert counted(ERRORS, reason="INVALID_DOCUMENT", **POST) == 1
    assert counted(ERRORS, reason="STATE_LOCKED", **POST) == 1
    assert counted(ERRORS, reason="STATE_LOCKED", view="state-backend", method="LOCK") == 1


def test_pulled_bytes_are_those_that_were_sent(backend: Backend) -> None:
    body = document(1, filler="x" * 10_000)
    backend.push(body)

    counted = Since()
    backend.get()
    assert counted("infra_state_pulled_bytes_total") == len(body)

    counted = Since()
    packed = backend.get(headers={"Accept-Encoding": "gzip"})
    assert counted("infra_state_pulled_bytes_total") == len(packed.content) < len(body)
    assert gzip.decompress(packed.content) == body

    counted = Since()
    backend.client.head(backend.path)
    assert counted("infra_state_pulled_bytes_total") == 0


def locks() -> tuple[float, float]:
    """Return how many locks there are, and the age of the oldest."""
    found = figures.of(LockCollector())
    return (
        figures.value(found, "infra_state_locks"),
        figures.value(found, "infra_state_oldest_lock_age_seconds"),
    )


def test_locks_are_counted(backend: Backend, lock_id: uuid.UUID) -> None:
    assert locks() == (0, 0)

    backend.lock(lock_id)
    other = Backend(backend.client)
    other.lock(uuid.uuid4())
    hour_ago = timezone.now() - dt.timedelta(hours=1)
    State.objects.filter(pk=other.record.pk).update(lock_acquired_at=hour_ago)
    count, age = locks()
    assert (count, age) == (2, pytest.approx(3600, abs=60))

    backend.unlock(lock_id)
    assert locks()[0] == 1


def test_freezes_are_counted(admin: Backend) -> None:
    def counted() -> tuple[float, float]:
        found = figures.of(FreezeCollector())
        names = ("infra_state_freezes", "infra_state_overdue_freezes")
        return figures.value(found, names[0]), figures.value(found, names[1])

    assert counted() == (0, 0)
    for _ in range(2):
        state = Backend(admin.client)
        state.push(document())
        options = {"reason": "upgrade", "expected_until": "2999-01-01T00:00:00Z"}
        assert state.call(":freeze", options).status_code == 200
    assert counted() == (2, 0)

    ended = timezone.now() - dt.timedelta(minutes=1)
    State.objects.filter(pk=state.record.pk).update(freeze_expected_until=ended)

    assert counted() == (2, 1)


def test_no_more_locks_are_looked_at_than_that(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MAX_LOCKS", 2)
    for _ in range(3):
        Backend(backend.client).lock(uuid.uuid4())

    with CaptureQueriesContext(connection) as queries:
        assert locks()[0] == 2

    assert len(queries) == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner")
def test_only_the_locks_are_read(db: None) -> None:
    load_states(5_000, lambda _done: None)
    analyze(State)
    held = State.objects.visible().filter(lock_id__isnull=False).count()

    with plans_of("states_state", analyze=True) as plans:
        assert locks()[0] == held

    (plan,) = plans
    assert plan.indexes == ["state_locked"]
    assert plan.rows_read == held
    assert 0 < held < 500
