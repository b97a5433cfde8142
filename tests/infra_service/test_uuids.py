"""UUIDv7 and the clock."""

from __future__ import annotations

import time
import uuid
from types import SimpleNamespace

import pytest
from django.apps import apps
from uuid_utils import compat

from infra_service.lib import uuids
from infra_service.lib.uuids import uuid7

YEAR = 365 * 24 * 3600 * 1000


def milliseconds(of: uuid.UUID) -> int:
    return of.int >> 80


def test_ids_increase() -> None:
    ids = [uuid7() for _ in range(10_000)]

    assert ids == sorted(set(ids))


def test_ids_follow_a_clock_that_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is set back from the present by a year."""
    before = uuid7()
    clock = SimpleNamespace(time_ns=lambda: time.time_ns() - YEAR * 1_000_000)
    monkeypatch.setattr(uuids, "time", clock)

    ids = [uuid7() for _ in range(10_000)]

    assert ids == sorted(set(ids))
    assert {(one.version, one.variant) for one in ids} == {(7, uuid.RFC_4122)}
    assert 0 <= milliseconds(ids[0]) - (milliseconds(before) - YEAR) < 60_000
    assert milliseconds(ids[-1]) < milliseconds(before)


def test_models_use_ids_that_follow_the_clock() -> None:
    defaults = [
        field.default for model in apps.get_models() for field in model._meta.concrete_fields
    ]

    assert uuid7 in defaults
    assert compat.uuid7 not in defaults
