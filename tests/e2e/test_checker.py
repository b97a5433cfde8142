"""The consistency checker detects each kind of contradiction."""

from __future__ import annotations

import uuid

import pytest

from tests.e2e.backend import Backend, document
from tests.e2e.database import Snapshot, contradictions, snapshot


@pytest.fixture
def found(backend: Backend) -> Snapshot:
    """Two versions, under a lock."""
    lock_id = str(uuid.uuid4())
    assert backend.push(document(1)).status == 200
    assert backend.lock(lock_id).status == 200
    assert backend.push(document(2), lock_id).status == 200
    return snapshot(backend.server, backend)


def test_intact_history_passes(backend: Backend, found: Snapshot) -> None:
    assert contradictions(backend.server, found) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("version_number", 1),
        ("current_version_id", uuid.uuid4()),
        ("md5", "0" * 32),
        ("serial", 1),
        ("size_bytes", 1),
        ("lock_info", None),
        ("lock_id", uuid.uuid4()),
        ("id", uuid.uuid4()),
    ],
)
def test_damaged_record(backend: Backend, found: Snapshot, column: str, value: object) -> None:
    found.states[0][column] = value
    assert contradictions(backend.server, found) != []


@pytest.mark.parametrize("column", ["number", "md5", "size_bytes", "encryption_key"])
def test_damaged_version_is_reported(backend: Backend, found: Snapshot, column: str) -> None:
    version = found.versions[found.states[0]["id"]][0]
    version[column] = version[column] * 2
    assert contradictions(backend.server, found) != []


def test_lost_version_is_reported(backend: Backend, found: Snapshot) -> None:
    del found.versions[found.states[0]["id"]][1]
    assert contradictions(backend.server, found) != []


def test_lock_without_an_audit_event_is_reported(backend: Backend, found: Snapshot) -> None:
    found.events["state.lock", str(found.states[0]["id"])] = 0
    assert contradictions(backend.server, found) != []
