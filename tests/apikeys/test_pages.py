"""Pages of a list under any filter: every row that passes, once and in order, piece by piece."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apikeys.actors import Actor
from apikeys.audit import authorize_and_record
from apikeys.models import AuditEvent
from infra_service.lib.database import citus
from infra_service.lib.database.bounded_pages import NamedBy, read_page, reading
from infra_service.lib.database.bounded_pages.conditions import Kind, conditions_of
from infra_service.lib.database.bounded_pages.indexes import walk
from infra_service.lib.database.bounded_pages.partitions import within_partitions
from infra_service.lib.database.bounded_pages.planning import is_selective, planned_for_values
from infra_service.lib.database.bounded_pages.semi_joins import in_order
from infra_service.lib.database.months import moment_of
from states.models import Application, Component, Environment, State

WORDS = st.sampled_from(["a", "b", "c"])
COLUMNS = st.sampled_from(["action", "token_id", "resource_id", "actor_name"])
CONDITIONS = st.recursive(
    st.one_of(
        st.builds(lambda column, word: Q((column, word)), COLUMNS, WORDS),
        st.builds(lambda column, words: Q((f"{column}__in", words)), COLUMNS, st.lists(WORDS)),
        st.builds(lambda column, word: Q((f"{column}__gte", word)), COLUMNS, WORDS),
    ),
    lambda inner: st.one_of(
        st.builds(lambda one: ~one, inner),
        st.builds(lambda one, other: one & other, inner, inner),
        st.builds(lambda one, other: one | other, inner, inner),
    ),
    max_leaves=4,
)
ROWS = st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS), max_size=25)


def all_pages(queryset: Any, key: tuple[str, ...], size: int) -> tuple[list[Any], int]:
    """Return the rows, and the number of pages that it took."""
    rows: list[Any] = []
    position: Any = None
    for number in range(1, 200):
        page = read_page(queryset, key=key, position=position, size=size)
        assert len(page.rows) <= size
        rows += page.rows
        position = page.position
        if position is None:
            return rows, number
    raise AssertionError("the list does not end")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=ROWS,
    condition=CONDITIONS,
    key=st.sampled_from([("-occurred_at", "-id"), ("occurred_at", "id"), ("id",)]),
    size=st.integers(1, 7),
    most=st.integers(1, 9),
    is_on_citus=st.booleans(),
)
def test_any_filter_returns_every_match(
    db: None, monkeypatch: pytest.MonkeyPatch, **given: Any
) -> None:
    """The statements for Citus return the same rows without Citus."""
    monkeypatch.setattr(reading, "MOST_ROWS", given["most"])
    monkeypatch.setattr(reading, "_LEAST_ROWS", 1)
    with transaction.atomic(), monkeypatch.context() as patch:
        # Rolled back, because the audit log is append-only.
        if given["is_on_citus"]:
            patch.setattr(citus, "joins_laterally", lambda: False)
        for action, token_id, resource_id, actor_name in given["rows"]:
            authorize_and_record(Actor(name=actor_name, token_id=token_id), action, resource_id)
        events = AuditEvent.objects.filter(given["condition"])

        found, _ = all_pages(events, given["key"], given["size"])

        assert found == list(events.order_by(*given["key"]))
        transaction.set_rollback(True)


@pytest.fixture
def events(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty events, of which the oldest is rare, read in pieces of ten rows."""
    monkeypatch.setattr(reading, "MOST_ROWS", 10)
    monkeypatch.setattr(reading, "_LEAST_ROWS", 1)
    for number in range(40):
        name = "common" if number else "rare"
        authorize_and_record(Actor(name=name, token_id=name), "test.done", "one", number=number)


def pages(**condition: Any) -> int:
    rows, number = all_pages(
        AuditEvent.objects.filter(**condition), ("-occurred_at", "-id"), size=5
    )
    assert rows == list(AuditEvent.objects.filter(**condition).order_by("-occurred_at", "-id"))
    return number


def test_indexed_filter_takes_a_single_page(events: None) -> None:
    assert pages(token_id="rare") == 1
    assert pages(token_id="rare", action="test.done") == 1
    assert pages(token_id__in=["rare", "other"], resource_id="one") == 1
    assert pages(token_id="other", actor_name="rare") == 1
    assert pages(pk__in=[AuditEvent.objects.all()[7].pk], actor_name="common") == 1


def test_unindexed_filter_takes_a_page_per_segment(events: None) -> None:
    assert pages(actor_name="rare") == 5  # the fifth is behind the last full piece
    assert pages(actor_name="nobody", action="test.done") == 5
    assert pages(token_id="common", actor_name="nobody") == 4


def test_missing_value_is_the_first_column_of_an_index(db: None) -> None:
    environment = Environment.objects.create(name="prod")
    shop = Application.objects.create(name="shop")
    for application in (None, shop, None):
        component = Component.objects.create(application=application)
        State.objects.create(component=component, environment=environment, application=application)
    states = State.objects.filter(deleted_at=None, application=None)

    found, _ = all_pages(states, ("id",), size=1)

    assert found == list(states.order_by("id"))
    assert len(found) == 2


def test_a_piece_is_smaller_when_each_row_is_searched_often() -> None:
    from filterlang.lookups import Piece  # noqa: PLC0415 - only here

    pieces = Q(*[("actor_name__filterlang_matches", Piece(str(n))) for n in range(24)])
    assert reading.weight(AuditEvent.objects.filter(pieces).query) == 24
    labels = Q(("details__filterlang_label_in", {"a": ("b", "c", "d")}))
    assert reading.weight(AuditEvent.objects.filter(labels).query) == 3
    label = Q(("details__filterlang_label_equals", {"a": "b"}))
    assert reading.weight(AuditEvent.objects.filter(label).query) == 1
    assert reading.weight(AuditEvent.objects.filter(action="a").query) == 0


def test_selective_index_takes_a_single_statement(events: None) -> None:
    with CaptureQueriesContext(connection) as captured:
        read_page(
            AuditEvent.objects.filter(token_id="rare"),
            key=("-occurred_at", "-id"), position=None, size=5,
        )  # fmt: skip
    (query,) = captured.captured_queries
    assert query["sql"].count("SELECT") == 1
    if connection.vendor == "postgresql":
        assert "= ANY (ARRAY['rare'])" in query["sql"]
        order = query["sql"].partition("ORDER BY ")[2].replace('"apikeys_auditevent".', "")
        assert order == '"token_id" DESC, "occurred_at" DESC, "id" DESC LIMIT 6'


@pytest.mark.parametrize(
    ("condition", "key", "order"),
    [
        (Q(application_id=uuid.uuid4()), ("id",), ("application_id", "id")),
        (Q(application_id=uuid.uuid4()), ("-id",), ("-application_id", "-id")),
        (Q(Q(Q(serial=3), Q(lineage__gt="a"))), ("id",), ("serial", "id")),
        (Q(serial__gt=3), ("id",), ("id",)),
        (~Q(serial=3), ("id",), ("id",)),
        (Q(serial=F("size_bytes")), ("id",), ("id",)),
        (Q(serial=3) | Q(lineage="a"), ("id",), ("id",)),
        (Q(component_id=uuid.uuid4()), ("id",), ("id",)),
    ],
)
def test_expected_index_is_used(condition: Q, key: Any, order: Any) -> None:
    query = State.objects.visible().filter(condition).query
    assert walk(State, conditions_of(query), key).order == order


def test_a_beginning_is_a_range_in_the_order_of_bytes() -> None:
    from filterlang.lookups import Piece  # noqa: PLC0415 - only here

    def ranges(model: Any, column: str, **piece: bool) -> int:
        condition = Q((f"{column}__filterlang_matches", Piece("a", **piece)))
        found = conditions_of(model.objects.filter(condition).query)
        assert found.others == 1
        return len(found.of(column, Kind.RANGE))

    assert ranges(Component, "name", at_start=True) == 2
    assert ranges(Component, "name", at_end=True) == 0
    assert ranges(Component, "name", at_start=True, ignore_case=True) == 0
    assert ranges(AuditEvent, "action", at_start=True) == 0


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
def test_selective_conditions_are_recognized(condition: Q, selective: bool) -> None:
    assert is_selective(State.objects.filter(condition)) is selective


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no prepared statements")
@pytest.mark.django_db
@pytest.mark.parametrize(("condition", "threshold"), [({"serial": 1}, None), ({"serial": None}, 2)])
def test_statements_with_values_are_not_prepared(
    condition: dict[str, Any], threshold: int | None
) -> None:
    states = State.objects.filter(**condition)
    with planned_for_values(states):
        list(states)
        assert connection.connection.prepare_threshold == threshold

    assert connection.connection.prepare_threshold == 2


@pytest.mark.parametrize("lookup", ["environment", "environment__in"])
def test_rows_that_other_rows_refer_to_are_complete(db: None, lookup: str) -> None:
    environment, other = (Environment.objects.create(name=name) for name in ("dev", "prod"))
    for number in range(7):
        component = Component.objects.create(name=f"component {number}")
        State.objects.create(component=component, environment=environment if number % 3 else other)
    value = [environment] if lookup.endswith("__in") else environment
    states = State.objects.filter(**{lookup: value}, deleted_at=None)
    components = Component.objects.filter(NamedBy(states, "component_id"))
    conditions = conditions_of(components.query)

    rows, _ = all_pages(components, ("id",), size=2)

    assert in_order(Component, conditions, ("id",)) is not None
    assert rows == list(components.order_by("id"))
    assert len(rows) == 4


MARCH, APRIL, MAY = (dt.datetime(2026, month, 15, tzinfo=dt.UTC) for month in (3, 4, 5))
NEWEST, OLDEST = ("-occurred_at", "-id"), ("occurred_at", "id")
NO_LIMIT = (None, None)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about partitions")
@pytest.mark.parametrize(
    ("condition", "after", "months"),
    [
        (Q(occurred_at=APRIL), None, (4, 5)),
        (Q(occurred_at__in=[APRIL, MARCH, MAY]), None, (3, 6)),
        (Q(occurred_at__range=(MARCH, MAY)), None, (3, 6)),
        (Q(occurred_at__gt=MARCH), None, (3, None)),
        (Q(occurred_at__gte=MARCH), None, (3, None)),
        (Q(occurred_at__lt=MAY), None, (None, 6)),
        (Q(occurred_at__lte=MAY), None, (None, 6)),
        (Q(occurred_at__gt=MARCH) & Q(occurred_at__gt=APRIL), None, (4, None)),
        (Q(occurred_at__lt=MAY) & Q(occurred_at__lt=APRIL), None, (None, 5)),
        (Q(occurred_at__gt=Now()), None, NO_LIMIT),
        (Q(occurred_at__isnull=False), None, NO_LIMIT),
        (Q(occurred_at__gt=MARCH) | Q(action="a"), None, NO_LIMIT),
        (Q(action="a"), None, NO_LIMIT),
        (Q(), (NEWEST, (str(MAY), "")), (None, 6)),
        (Q(), (OLDEST, (str(MARCH), "")), (3, None)),
        (Q(), (("id",), ("",)), NO_LIMIT),
        (Q(occurred_at__gt=MARCH), (NEWEST, (str(APRIL), "")), (3, 5)),
    ],
)
def test_times_limit_the_months_of_the_ids(condition: Q, after: Any, months: Any) -> None:
    """The months are the first month and the month after the last."""
    events = AuditEvent.objects.filter(condition)

    rows = within_partitions(events, events, after)

    given = len(events.query.where.children)
    found = {
        lookup.lookup_name: moment_of(lookup.rhs).month
        for lookup in rows.query.where.children[given:]
    }
    assert (found.get("gte"), found.get("lt")) == months
    assert len(found) == sum(month is not None for month in months)
