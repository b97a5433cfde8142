"""A bound on ``created_at`` is a bound on the id, and a constraint makes it right."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from hypothesis import given
from hypothesis import strategies as st

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
def test_ids_of_a_time(moment: dt.datetime) -> None:
    near = moment - TOLERANCE, moment, moment + TOLERANCE
    for time in near:
        assert first_id(moment) <= id_of(time)
        assert id_of(time, 2**80 - 1) <= last_id(moment)
    assert not first_id(moment) <= id_of(near[0] - 2 * SECOND)
    assert not id_of(near[2] + 2 * SECOND) <= last_id(moment)


def test_times_without_ids() -> None:
    assert first_id(dt.datetime.min.replace(tzinfo=dt.UTC) + 2 * TOLERANCE) == uuid.UUID(int=0)
    assert last_id(dt.datetime.max.replace(tzinfo=dt.UTC) - 2 * TOLERANCE).int >> 80 < 2**48


@pytest.fixture
def state(db: None) -> State:
    component, environment = Component.objects.create(), Environment.objects.create()
    return State.objects.create(component=component, environment=environment)


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
        assert states.exists() is found, name
        assert State.objects.exclude((f"created_at__{name}", value)).exists() is not found


def test_a_comparison_with_a_column_has_no_bounds(state: State) -> None:
    assert State.objects.filter(created_at__lte=F("updated_at") + SECOND).exists()


def sql(**condition: Any) -> str:
    return str(State.objects.filter(**condition).query)


def test_the_bounds_are_in_the_statement() -> None:
    id_column = connection.ops.quote_name("id")
    assert f"{id_column} >=" in sql(created_at__gte=LONG_AGO)
    assert f"{id_column} <=" not in sql(created_at__gte=LONG_AGO)
    assert f"{id_column} <=" in sql(created_at__lt=LONG_AGO)
    assert f"{id_column} >=" not in sql(created_at__lt=LONG_AGO)
    both = sql(created_at__range=(LONG_AGO, LONG_AGO + SECOND))
    assert f"{id_column} >=" in both
    assert f"{id_column} <=" in both
