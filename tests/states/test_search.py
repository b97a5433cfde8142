"""Finding states by names, as the admin does."""

from __future__ import annotations

import uuid

import pytest

from states.admin.search import MOST_NAMES, search
from states.models import Application, Component, Environment, State

pytestmark = pytest.mark.django_db


def state(component: str, environment: str, application: str = "") -> State:
    group = Application.objects.get_or_create(name=application)[0] if application else None
    place = Environment.objects.get_or_create(name=environment)[0]
    part = Component.objects.get_or_create(name=component, defaults={"application": group})[0]
    return State.objects.create(component=part, environment=place, application=part.application)


def names(text: str) -> list[str]:
    found = State.objects.filter(search(text).condition).order_by("id")
    return [f"{s.component.name} {s.environment.name}" for s in found]


@pytest.fixture(autouse=True)
def states() -> list[State]:
    return [
        state("network", "production", "billing"),
        state("network", "staging"),
        state("network-edge", "production", "search"),
        state("Ünder the sea", "staging", "search engine"),
    ]


def test_each_word_is_the_beginning_of_a_name() -> None:
    assert names("netw") == ["network production", "network staging", "network-edge production"]
    assert names("bill") == ["network production", "network staging"]
    assert names("net prod") == ["network production", "network-edge production"]
    assert names("prod") == ["network production", "network-edge production"]
    assert names("net prod search") == ["network-edge production"]
    assert names("Ün") == ["Ünder the sea staging"]
    assert names("") == names("   ") == [*names("netw"), "Ünder the sea staging"]


def test_each_word_is_a_piece_of_a_name_in_any_case() -> None:
    assert names("etwork") == names("NETW") == names("netw")
    assert names("UCTION") == names("prod")


def test_text_without_match_returns_no_states() -> None:
    assert names("net%") == names("_etwork") == names("nothing") == []
    assert names("network nothing") == []


def test_a_name_that_is_just_the_word_is_meant_alone() -> None:
    assert names("network") == ["network production", "network staging"]
    assert names("search") == ["network-edge production"]


def test_quotes_preserve_spaces() -> None:
    assert names('"search engine"') == ["Ünder the sea staging"]
    assert names("'Ünder the'") == ["Ünder the sea staging"]
    assert names("'Ünder") == names('"') == []
    assert names("''") == names("")


def test_ids_are_searched(states: list[State]) -> None:
    first = states[0]
    assert names(str(first.pk)) == ["network production"]
    assert names(str(first.component_id).upper()) == ["network production", "network staging"]
    assert names(f"{first.environment_id} search") == ["network-edge production"]
    assert names(str(first.application_id)) == ["network production", "network staging"]
    assert names(str(uuid.UUID(int=1))) == []


def test_incomplete_searches_are_reported() -> None:
    for number in range(MOST_NAMES + 1):
        state(f"queue-{number:03}", "production")

    found = search("queue production")
    assert found.notes == [
        (
            f"More than {MOST_NAMES} components have “queue” in their names. "
            "The list is incomplete; use a more specific word."
        )
    ]
    assert State.objects.filter(found.condition).count() == MOST_NAMES
    assert search("queue-000 prod a b c").notes == ["Only the first 4 words are used."]
    assert search("queue-000 prod").notes == []
