"""A bound on ``created_at`` is a bound on the id, and a constraint makes it right."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from hypothesis import given
from hypothesis import strategies as st

from infra_service.lib.database.bounded_pages import read_page
from infra_service.lib.database.bounded_pages.conditions import Kind, conditions_of
from states.fields import TOLERANCE, first_id, last_id
from states.models import Component, Environment, State
from tests.conftest import LONG_AGO

SECOND = dt.timedelta(seconds=1)


def id_of(moment: dt.datetime, rest: int = 0) -> uuid.UUID:
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    milliseconds = since // dt.timedelta(milliseconds=1)
    return uuid.UUID(int=milliseconds << 80 | rest)


_FIRST, _LAST = dt.datetime(1970, 1, 3), dt.datetime(9999, 12, 29)  # noqa: DTZ001 - hypothesis' form


@given(st.datetimes(_FIRST, _LAST, timezones=st.just(dt.UTC)))
def test_ids_are_derived_from_a_time(moment: dt.datetime) -> None:
    near = moment - TOLERANCE, moment, moment + TOLERANCE
    for time in near:
        assert first_id(moment) <= id_of(time)
        assert id_of(time, 2**80 - 1) <= last_id(moment)
    assert not first_id(moment) <= id_of(near[0] - 2 * SECOND)
    assert not id_of(near[2] + 2 * SECOND) <= last_id(moment)


def test_times_outside_the_range_have_no_ids() -> None:
    assert first_id(dt.datetime.min.replace(tzinfo=dt.UTC) + 2 * TOLERANCE) == uuid.UUID(int=0)
    assert last_id(dt.datetime.max.replace(tzinfo=dt.UTC) - 2 * TOLERANCE).int >> 80 < 2**48


@pytest.fixture
def state(db: None) -> State:
    component, environment = Component.objects.create(), Environment.objects.create()
    return State.objects.create(component=component, environment=environment)


def page_of(states: Any) -> list[State]:
    return read_page(states, key=("id",), position=None, size=5).rows


@pytest.mark.parametrize("off", [-TOLERANCE - SECOND, TOLERANCE + SECOND])
def test_a_state_is_created_with_its_id(state: State, off: dt.timedelta) -> None:
    with pytest.raises(IntegrityError, match="state_created_with_its_id"), transaction.atomic():
        State.objects.filter(pk=state.pk).update(created_at=state.created_at + off)


@pytest.mark.parametrize("off", [-TOLERANCE + SECOND, TOLERANCE - SECOND])
def test_clocks_may_differ(state: State, off: dt.timedelta) -> None:
    moved = state.created_at + off
    State.objects.filter(pk=state.pk).update(created_at=moved)

    for name, value, found in [
        ("exact", moved, True),
        ("gte", moved, True),
        ("gt", moved, False),
        ("lte", moved, True),
        ("lt", moved, False),
        ("lt", moved + SECOND, True),
        ("in", [LONG_AGO, moved], True),
        ("in", [LONG_AGO], False),
        ("range", (moved - SECOND, moved), True),
        ("range", (moved + SECOND, moved + 2 * SECOND), False),
    ]:
        states = State.objects.filter((f"created_at__{name}", value))
        assert bool(page_of(states)) is found, name
        others = State.objects.exclude((f"created_at__{name}", value))
        assert bool(page_of(others)) is not found


def implied(**condition: Any) -> list[str]:
    """Return the bounds on the ID that the lists derive from the condition."""
    found = conditions_of(State.objects.filter(**condition).query)
    return sorted(c.lookup.lookup_name for c in found.of("id", Kind.RANGE))


def test_bounds_follow_from_a_comparison() -> None:
    assert implied(created_at__gte=LONG_AGO) == ["gte"]
    assert implied(created_at__lt=LONG_AGO) == ["lte"]
    assert implied(created_at__range=(LONG_AGO, LONG_AGO + SECOND)) == ["gte", "lte"]
    assert implied(created_at__in=[LONG_AGO]) == ["gte", "lte"]


def test_a_comparison_with_a_column_has_no_bounds(state: State) -> None:
    assert implied(created_at__lte=F("updated_at") + SECOND) == []
