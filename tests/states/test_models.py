"""The constraints of the state tables, each by its name."""

import uuid
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from states.models import Application, Component, Environment, State, StateVersion
from tests.conftest import LONG_AGO

LOCK = uuid.UUID(int=1)


@pytest.fixture
def state(db: None) -> State:
    component, environment = Component.objects.create(), Environment.objects.create()
    return State.objects.create(component=component, environment=environment)


def version(state: State, **changes: Any) -> StateVersion:
    fields = {"number": 1, "serial": 1, "md5": "0" * 32, "size_bytes": 2, "document": b"x"}
    return StateVersion.objects.create(state=state, **{**fields, **changes})


def refused(name: str) -> Any:
    """Expect a violation of this constraint; for a unique constraint SQLite names the columns."""
    return pytest.raises(IntegrityError, match=name)


def test_component_has_one_state_in_an_environment(state: State) -> None:
    unique = "state_of_component_and_environment|states_state.component_id"
    with refused(unique), transaction.atomic():
        State.objects.create(component=state.component, environment=state.environment)


@pytest.mark.both
@pytest.mark.parametrize(
    "fields",
    [
        {"lock_id": LOCK},
        {"lock_info": {"ID": "x"}},
        {"lock_acquired_at": LONG_AGO},
        {"lock_id": LOCK, "lock_acquired_at": LONG_AGO},
    ],
)
def test_a_lock_is_whole_or_absent(state: State, fields: dict[str, Any]) -> None:
    with refused("state_lock_whole_or_absent"), transaction.atomic():
        State.objects.filter(pk=state.pk).update(**fields)


@pytest.mark.both
@pytest.mark.parametrize(
    "fields",
    [
        {"version_number": 1},
        {"serial": 1},
        {"md5": "0" * 32},
        {"size_bytes": 5},
        {"version_number": 1, "serial": 1, "md5": "0" * 32, "size_bytes": 5},
    ],
)
def test_a_version_is_whole_or_absent(state: State, fields: dict[str, Any]) -> None:
    with refused("state_version_whole_or_absent"), transaction.atomic():
        State.objects.filter(pk=state.pk).update(**fields)


def test_a_current_version_needs_its_figures(state: State) -> None:
    current = version(state)
    with refused("state_version_whole_or_absent"), transaction.atomic():
        State.objects.filter(pk=state.pk).update(current_version=current)


def test_version_numbers_do_not_repeat(state: State) -> None:
    version(state)
    unique = "stateversion_number|states_stateversion.state_id"
    with refused(unique), transaction.atomic():
        version(state)


@pytest.mark.parametrize("fields", [{"number": 0}, {"serial": -1}, {"size_bytes": 0}])
def test_version_stores_its_figures(state: State, fields: dict[str, int]) -> None:
    with refused("stateversion_figures"), transaction.atomic():
        version(state, **fields)


def test_md5_has_its_length(state: State) -> None:
    with refused("stateversion_md5_form"), transaction.atomic():
        version(state, md5="0")


@pytest.mark.parametrize(
    "fields",
    [
        {"document": None},
        {"object_name": "x"},
        {"document": None, "object_name": ""},
    ],
)
def test_document_is_stored_in_a_single_place(state: State, fields: dict[str, Any]) -> None:
    with refused("stateversion_document_in_one_place"), transaction.atomic():
        version(state, **fields)


def test_version_is_current_in_a_single_state(state: State) -> None:
    figures = {"version_number": 1, "serial": 1, "md5": "0" * 32, "size_bytes": 5}
    current = version(state)
    other = State.objects.create(
        component=state.component, environment=Environment.objects.create()
    )
    State.objects.filter(pk=state.pk).update(current_version=current, **figures)

    unique = "state_current_version|states_state.current_version_id"
    with refused(unique), transaction.atomic():
        State.objects.filter(pk=other.pk).update(current_version=current, **figures)


def test_lists_of_versions_read_no_documents(state: State) -> None:
    version(state)

    assert "document" in StateVersion.objects.get().get_deferred_fields()


def test_names_are_readable(state: State) -> None:
    assert str(Application(name="shop")) == "shop"
    assert str(state.component) == str(state.component.pk)
    assert str(state) == f"{state.component_id} in {state.environment_id}"
    assert str(version(state)) == f"{state.pk} #1"


@pytest.mark.usefixtures("db")
def test_migrations_match_the_models() -> None:
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
