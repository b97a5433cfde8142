"""States in the order of the age of their locks, and filters by it."""

import datetime as dt
import uuid

import pytest

from states.models import Component, Environment, State
from tests.conftest import LONG_AGO, ApiClient, error_reason

pytestmark = pytest.mark.both
PATH = "/api/v1/states"
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def states(db: None) -> list[State]:
    """Eight states; every second is locked, the later the longer, and two at the same time."""
    environment = Environment.objects.create(name="production")
    made = [
        State.objects.create(
            component=Component.objects.create(name=f"c{number}"), environment=environment
        )
        for number in range(8)
    ]
    for number, hours in {1: 4, 3: 3, 5: 3, 7: 1}.items():
        State.objects.filter(pk=made[number].pk).update(
            lock_id=uuid.uuid4(), lock_info={}, lock_acquired_at=LONG_AGO + hours * HOUR
        )
    return made


def listed(reader: ApiClient, states: list[State], **query: str) -> list[int]:
    """Return the numbers of the states that the query lists."""
    numbers = {str(state.pk): number for number, state in enumerate(states)}
    pages = [
        [numbers[s["id"]] for s in reader.items(PATH, "states", page_size=size, **query)]  # type: ignore[arg-type]
        for size in (1, 2, 3, 100)
    ]
    assert all(page == pages[0] for page in pages)
    return pages[0]


def test_the_oldest_lock_is_first_and_unlocked_states_are_last(
    reader: ApiClient, states: list[State]
) -> None:
    assert listed(reader, states, order_by="lock.acquired_at") == [7, 3, 5, 1, 0, 2, 4, 6]


def test_the_newest_lock_is_first_and_unlocked_states_are_last(
    reader: ApiClient, states: list[State]
) -> None:
    found = listed(reader, states, order_by="lock.acquired_at desc")

    assert found == [1, 5, 3, 7, 6, 4, 2, 0]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("< '{0}'", [7]),
        ("<= '{0}'", [3, 5, 7]),
        ("> '{0}'", [1]),
        ("= '{0}'", [3, 5]),
        ("!= '{0}'", [0, 1, 2, 4, 6, 7]),
        ("BETWEEN '{0}' AND '{0}'", [3, 5]),
        ("IS NULL", [0, 2, 4, 6]),
        ("EXISTS", [1, 3, 5, 7]),
    ],
)
def test_filters_by_lock_age(
    reader: ApiClient, states: list[State], operation: str, expected: list[int]
) -> None:
    moment = (LONG_AGO + 3 * HOUR).isoformat()
    text = f"field['lock.acquired_at'] {operation.format(moment)}"

    assert listed(reader, states, filter=text) == expected


def test_order_and_filter_combine(reader: ApiClient, states: list[State]) -> None:
    """A position in the order continues behind the same lock age."""
    moment = (LONG_AGO + 4 * HOUR).isoformat()
    text = f"NOT field['lock.acquired_at'] = '{moment}'"

    found = listed(reader, states, filter=text, order_by="lock.acquired_at")

    assert found == [7, 3, 5, 0, 2, 4, 6]


def test_a_position_of_another_order_is_refused(reader: ApiClient, states: list[State]) -> None:
    first = reader.get(PATH, {"order_by": "lock.acquired_at", "page_size": "1"}).json()

    answer = reader.get(PATH, {"order_by": "id", "page_token": first["next_page_token"]})

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_PAGE_TOKEN")
