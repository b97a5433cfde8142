"""States filtered by the names, or parts of the names, of their catalogue entries."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from filterlang.lookups import Piece
from states.models import Application, Component, Environment, State, of_state
from tests.conftest import ApiClient, error_reason

pytestmark = pytest.mark.both
PATH = "/api/v1/states"


@pytest.fixture
def states(db: None) -> dict[str, State]:
    """States by ``component/environment``; only the components of the shop have an application."""
    shop = Application.objects.create(name="Shop 100%")
    made = {}
    for environment in (Environment.objects.create(name=name) for name in ("prod-eu", "staging")):
        for name, application in (("Network", shop), ("network_2", shop), ("database", None)):
            component, _ = Component.objects.get_or_create(name=name, application=application)
            made[f"{name}/{environment.name}"] = State.objects.create(
                component=component, environment=environment, application=application
            )
    return made


def listed(reader: ApiClient, states: dict[str, State], text: str) -> set[str]:
    names = {str(state.pk): name for name, state in states.items()}
    found = [names[s["id"]] for s in reader.items(PATH, "states", page_size=2, filter=text)]
    assert len(found) == len(set(found))
    return set(found)


PRODUCTION = {"Network/prod-eu", "network_2/prod-eu", "database/prod-eu"}
DATABASES = {"database/prod-eu", "database/staging"}
SECOND = {"network_2/prod-eu", "network_2/staging"}
FIRST = {"Network/prod-eu", "Network/staging"}


@pytest.fixture(params=[(50_000, 1_000), (2, 1_000), (50_000, 1)])
def _limits(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of the look-up, and two that are exceeded: of names, and of matches."""
    most_names, most_ids = request.param
    monkeypatch.setattr(of_state, "_MOST_NAMES", most_names)
    monkeypatch.setattr(of_state, "_MOST_IDS", most_ids)


@pytest.mark.usefixtures("_limits")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("field['component_name'] ~= 'NETWORK'", FIRST | SECOND),
        ("field['component_name'] CONTAINS 'network'", SECOND),
        ("field['component_name'] CONTAINS 'k_'", SECOND),
        ("field['component_name'] STARTS_WITH 'Net'", FIRST),
        ("field['component_name'] ENDS_WITH 'base'", DATABASES),
        ("field['component_name'] = 'database'", DATABASES),
        ("NOT field['component_name'] ~= 'network'", DATABASES),
        ("field['component_name'] ~= 'nothing'", set()),
        ("field['environment_name'] CONTAINS 'prod'", PRODUCTION),
        (
            "field['environment_name'] ~= 'PROD' AND field['component_name'] ~= 'data'",
            {"database/prod-eu"},
        ),
        ("field['application_name'] CONTAINS '0%'", FIRST | SECOND),
        # Missing values: a comparison is false, and its negation is true.
        ("NOT field['application_name'] ~= 'shop'", DATABASES),
        ("NOT field['application_name'] CONTAINS ''", DATABASES),
        ("field['application_name'] IS NULL", DATABASES),
        ("field['application_name'] EXISTS", FIRST | SECOND),
    ],
)
def test_parts_of_names(
    reader: ApiClient, states: dict[str, State], text: str, expected: set[str]
) -> None:
    assert listed(reader, states, text) == expected


@pytest.mark.parametrize(
    ("piece", "limits", "found"),
    [
        (Piece("etwork"), (3, 2), {"Network", "network_2"}),
        (Piece("etwork"), (3, 1), None),
        (Piece("etwork"), (2, 2), None),
        (Piece("network", at_start=True), (2, 2), {"network_2"}),
        (Piece("network", at_start=True, ignore_case=True), (2, 2), None),
    ],
)
def test_limits_of_the_look_up(
    states: dict[str, State],
    monkeypatch: pytest.MonkeyPatch,
    piece: Piece,
    limits: tuple[int, int],
    found: set[str] | None,
) -> None:
    """There are three names of components. The limits are of names, and of matches."""
    for name, limit in zip(("_MOST_NAMES", "_MOST_IDS"), limits, strict=True):
        monkeypatch.setattr(of_state, name, limit)

    ids = of_state.with_part_of_name(Component, piece)

    names = {component.pk: component.name for component in Component.objects.all()}
    assert (ids if ids is None else {names[pk] for pk in ids}) == found


def test_names_are_looked_up_once_for_a_page(reader: ApiClient, states: dict[str, State]) -> None:
    def statements(text: str) -> int:
        with CaptureQueriesContext(connection) as sent:
            assert reader.get(PATH, {"filter": text}).status_code == 200
        return len(sent)

    reader.get(PATH)  # records the token's use
    by_id = statements(f"field['component_id'] = '{states['Network/staging'].component_id}'")

    # Whether there are too many names, and the ids of those that match.
    assert statements("field['component_name'] CONTAINS 'Net'") == by_id + 2
    assert statements("field['component_name'] STARTS_WITH 'Net'") == by_id + 1


def test_a_slug_is_compared_as_a_whole(reader: ApiClient, db: Any) -> None:
    answer = reader.get(PATH, {"filter": "field['component'] CONTAINS 'net'"})

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FILTER")
