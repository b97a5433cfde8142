"""Which index a page is read in, as the statement tells it. What comes of it: test_plans.py."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.db.models import F, Q

from apikeys.leading import is_selective, ordered
from states.models import State

VALUE = uuid.UUID(int=7)
COLUMNS = ("application_id", "serial")


def order_and_where(queryset: Any) -> tuple[str, str]:
    sql = str(ordered(queryset, COLUMNS, ("id",)).query)
    where = sql.partition(" WHERE ")[2].partition(" ORDER BY ")[0]
    order = sql.partition(" ORDER BY ")[2]
    return order.replace('"states_state".', ""), where.replace('"states_state".', "")


BY_APPLICATION = '"application_id" ASC, "id" ASC'
BY_ID = '"id" ASC'


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner")
@pytest.mark.parametrize(
    ("condition", "order"),
    [
        (Q(application_id=VALUE), BY_APPLICATION),
        (Q(Q(deleted_at=None), Q(Q(serial=3), Q(application_id=VALUE))), BY_APPLICATION),
        (Q(serial=3), '"serial" ASC, "id" ASC'),
        (Q(environment_id=VALUE), BY_ID),
        (Q(serial__gt=3), BY_ID),
        (~Q(application_id=VALUE), BY_ID),
        (Q(application_id=VALUE) | Q(serial=3), BY_ID),
        (Q(application_id=F("component_id")), BY_ID),
        (Q(), BY_ID),
    ],
)
def test_a_fixed_column_leads(condition: Q, order: str) -> None:
    queryset = State.objects.filter(condition)
    before = str(queryset.query)

    found, where = order_and_where(queryset)
    assert found == order
    assert ("= ANY (ARRAY[" in where) is (order != BY_ID)
    assert str(queryset.query) == before


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner")
def test_a_column_with_a_minus_is_read_downwards() -> None:
    found = ordered(State.objects.filter(serial=3), ("-serial",), ("-id",))

    order = str(found.query).partition(" ORDER BY ")[2]
    assert order.replace('"states_state".', "") == '"serial" DESC, "id" DESC'


@pytest.mark.django_db
@pytest.mark.parametrize("columns", [(), COLUMNS])
def test_the_rows_are_the_same(columns: tuple[str, ...]) -> None:
    assert list(ordered(State.objects.filter(serial=3), columns, ("id",))) == []


@pytest.mark.skipif(connection.vendor == "postgresql", reason="about the other databases")
def test_elsewhere_the_order_is_the_page_key() -> None:
    order, where = order_and_where(State.objects.filter(serial=3))

    assert (order, where) == (BY_ID, '"serial" = 3')


@pytest.mark.parametrize(
    ("condition", "selective"),
    [
        (Q(), False),
        (Q(deleted_at=None), False),
        (Q(lock_id__isnull=False, deleted_at=None), False),
        (Q(deleted_at=None, serial=3), True),
        (~Q(deleted_at=None) | Q(lineage__in=["a"]), True),
    ],
)
def test_what_is_planned_for_its_values(condition: Q, selective: bool) -> None:
    assert is_selective(State.objects.filter(condition)) is selective
