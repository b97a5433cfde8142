"""GET /api/v1/states."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from infra_service.lib.api import rendering
from states.models import Application, Component, Environment, State
from tests.conftest import LONG_AGO, ApiClient, ClientWith, error_reason
from tests.states.conftest import Backend, document, lock_info

PATH = "/api/v1/states"
MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"


@pytest.fixture
def catalogue(db: None) -> dict[str, list[Any]]:
    """Two applications with two components each, two environments, and all eight states."""
    applications = [Application.objects.create(name=name) for name in ("shop", "bank")]
    components = [
        Component.objects.create(name=f"{application.name}-{part}", application=application)
        for application in applications
        for part in ("network", "database")
    ]
    environments = [Environment.objects.create(name=name) for name in ("staging", "production")]
    states = [
        State.objects.create(component=c, environment=e, application=c.application)
        for c in components
        for e in environments
    ]
    return {
        "applications": applications,
        "components": components,
        "environments": environments,
        "states": states,
    }


def listed(reader: ApiClient, text: str = "") -> list[str]:
    """Return the ids that a filter selects."""
    return [state["id"] for state in reader.items(PATH, "states", filter=text)]


def ids(*states: State) -> list[str]:
    return [str(state.pk) for state in states]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="where rows are written as JSON")
def test_columns_are_compiled_once_and_values_are_parameters(
    reader: ApiClient, catalogue: dict[str, list[Any]]
) -> None:
    statements: list[tuple[str, Any]] = []

    def keep(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append((sql, params))
        return execute(sql, params, many, context)

    def send(environment: Environment, token: str = "") -> str:
        query = {"filter": f"field['environment_id'] = '{environment.pk}'", "page_token": token}
        answer = reader.get(PATH, {**query, "page_size": 2})
        assert answer.status_code == 200
        return str(answer.json()["next_page_token"])

    first, second = catalogue["environments"]
    tokens = send(first), send(second)
    compiled = rendering._declared_columns.cache_info().misses
    for follows in (False, True):
        del statements[:]
        with connection.execute_wrapper(keep):
            send(first, tokens[0] if follows else "")
            send(second, tokens[1] if follows else "")
        (text, values), (other, others) = [s for s in statements if "states_state" in s[0]]
        assert text == other
        assert text.count("SELECT") == 2  # the page, and its joined rows
        assert first.pk in values
        assert second.pk in others
        assert len(values) == 1 + follows
    assert rendering._declared_columns.cache_info().misses == compiled


def test_empty_list(reader: ApiClient) -> None:
    answer = reader.get(PATH)

    assert (answer.status_code, answer.content) == (200, b'{"states":[],"next_page_token":""}')
    assert answer["Content-Type"] == "application/json"


def test_pushed_state_is_listed(backend: Backend, reader: ApiClient) -> None:
    body = document(7)
    backend.push(body)

    state = backend.record
    assert reader.get(PATH).json() == {
        "states": [
            {
                "id": str(state.pk),
                "component_id": str(backend.component_id),
                "component_name": "",
                "component_slug": None,
                "application_slug": None,
                "environment_id": str(backend.environment_id),
                "environment_name": "",
                "environment_slug": None,
                "serial": 7,
                "md5": state.md5,
                "lineage": state.lineage,
                "size_bytes": len(body),
                "engine": None,
                "client_encrypted": False,
                "failing_checks": None,
                "created_at": state.created_at.strftime(MOMENT),
                "updated_at": state.updated_at.strftime(MOMENT),
            }
        ],
        "next_page_token": "",
    }


def test_locked_state_without_a_version_is_listed(
    backend: Backend, reader: ApiClient, lock_id: uuid.UUID
) -> None:
    backend.lock(lock_id, Who='ada "the first" \\ \u2028 \x01', Version="1.11.4")

    state = backend.record
    assert state.lock_acquired_at is not None
    (shown,) = reader.get(PATH).json()["states"]
    assert list(shown.items()) == [
        ("id", str(state.pk)),
        ("component_id", str(backend.component_id)),
        ("component_name", ""),
        ("component_slug", None),
        ("application_slug", None),
        ("environment_id", str(backend.environment_id)),
        ("environment_name", ""),
        ("environment_slug", None),
        ("serial", None),
        ("md5", None),
        ("lineage", None),
        ("size_bytes", None),
        ("engine", None),
        ("client_encrypted", False),
        ("failing_checks", None),
        (
            "lock",
            {
                "lock_id": str(lock_id),
                "operation": "OperationTypeApply",
                "who": 'ada "the first" \\ \u2028 \x01',
                "version": "1.11.4",
                "door": "http",
                "acquired_at": state.lock_acquired_at.strftime(MOMENT),
            },
        ),
        ("created_at", state.created_at.strftime(MOMENT)),
        ("updated_at", state.updated_at.strftime(MOMENT)),
    ]


def test_names_are_those_of_now(reader: ApiClient, catalogue: dict[str, list[Any]]) -> None:
    """Also where some index finds few rows, which are then looked through."""
    network, database = catalogue["components"][:2]
    Component.objects.filter(pk=database.pk).update(name='"db" \\ \u2028')
    of_two = f"field['component_id'] IN ('{network.pk}', '{database.pk}')"

    for text in ("", of_two):
        shown = reader.items(PATH, "states", filter=text)[:4]
        assert [(s["component_name"], s["environment_name"]) for s in shown] == [
            ("shop-network", "staging"),
            ("shop-network", "production"),
            ('"db" \\ \u2028', "staging"),
            ('"db" \\ \u2028', "production"),
        ]


def test_deleted_states_are_hidden(backend: Backend, admin: Backend, reader: ApiClient) -> None:
    backend.push(document(1))
    admin.delete()

    assert listed(reader) == []


def test_pages_follow_the_order_of_creation(
    reader: ApiClient, catalogue: dict[str, list[Any]]
) -> None:
    expected = ids(*catalogue["states"])

    for size in (1, 3, 4, 8, 100):
        assert [s["id"] for s in reader.items(PATH, "states", page_size=size)] == expected


def test_in_the_order_of_change(
    backend: Backend, reader: ApiClient, catalogue: dict[str, list[Any]]
) -> None:
    states = catalogue["states"]
    for at, state in enumerate(states):  # some equal times, and an order unlike that of creation
        changed = LONG_AGO + dt.timedelta(hours=at * 5 % 4)
        State.objects.filter(pk=state.pk).update(updated_at=changed)
    expected = ids(*State.objects.order_by("updated_at", "id"))

    for size in (1, 3, 100):
        for order, wanted in {"updated_at": expected, "updated_at desc": expected[::-1]}.items():
            found = reader.items(PATH, "states", page_size=size, order_by=order)
            assert [state["id"] for state in found] == wanted
    here = f"field['component_id'] = '{states[0].component_id}'"
    assert [
        s["id"] for s in reader.items(PATH, "states", filter=here, order_by="updated_at desc")
    ] == [found for found in expected[::-1] if found in ids(*states[:2])]


@pytest.mark.both
def test_in_the_order_of_locks(reader: ApiClient, catalogue: dict[str, list[Any]]) -> None:
    """States without a lock are last in both directions."""
    locked = ids(*catalogue["states"][::2])
    for at, pk in enumerate(locked):  # some equal times
        lock = {"lock_id": uuid.uuid4(), "lock_info": lock_info(uuid.uuid4())}
        acquired_at = LONG_AGO - dt.timedelta(hours=at // 2)
        State.objects.filter(pk=pk).update(**lock, lock_acquired_at=acquired_at)
    taken = ids(*State.objects.exclude(lock_id=None).order_by("lock_acquired_at", "id"))
    free = ids(*State.objects.filter(lock_id=None).order_by("id"))

    for size in (1, 2, 3, 100):
        found = reader.items(PATH, "states", page_size=size, order_by="lock.acquired_at")
        assert [state["id"] for state in found] == [*taken, *free]
        found = reader.items(PATH, "states", page_size=size, order_by="lock.acquired_at desc")
        assert [state["id"] for state in found] == [*taken[::-1], *free[::-1]]
    here = f"field['component_id'] = '{catalogue['states'][0].component_id}'"
    found = reader.items(PATH, "states", filter=here, order_by="lock.acquired_at")
    own = ids(*State.objects.filter(component_id=catalogue["states"][0].component_id))
    assert [state["id"] for state in found] == [pk for pk in (*taken, *free) if pk in own]


def test_ordering_by_a_nullable_field_is_rejected(reader: ApiClient) -> None:
    answer = reader.get(PATH, {"order_by": "size_bytes"})

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")
    assert answer.json()["error"]["message"] == (
        "order_by: The list cannot be sorted in this order. The supported orders are 'id', 'id "
        "desc', 'updated_at', "
        "'updated_at desc', 'lock.acquired_at', 'lock.acquired_at desc'."
    )


def test_specified_filters_select_states(
    reader: ApiClient, catalogue: dict[str, list[Any]]
) -> None:
    states = catalogue["states"]
    shop, bank = catalogue["applications"]
    staging, production = catalogue["environments"]
    network = catalogue["components"][0]

    assert listed(reader, f"field['component_id'] = '{network.pk}'") == ids(*states[:2])
    assert listed(reader, f"field['environment_id'] = '{staging.pk}'") == ids(*states[::2])
    assert listed(reader, f"field['application_id'] = '{shop.pk}'") == ids(*states[:4])
    both = f"field['application_id'] = '{bank.pk}' AND field['environment_id'] = '{production.pk}'"
    assert listed(reader, both) == ids(states[5], states[7])
    assert listed(reader, f"field['component_id'] = '{uuid.uuid4()}'") == []


def test_other_filters_select_states(
    backend: Backend, reader: ApiClient, lock_id: uuid.UUID
) -> None:
    backend.push(document(7))
    backend.lock(lock_id)
    other = Backend(backend.client)
    other.push(document(8, lineage="other", more="x" * 500))
    first, second = backend.record, other.record

    for text, expected in {
        f"field['id'] = '{first.pk}'": [first],
        "field['serial'] = 7": [first],
        "field['serial'] > 7": [second],
        "field['serial'] BETWEEN 7 AND 8": [first, second],
        "field['lineage'] = 'other'": [second],
        "field['lineage'] != 'other'": [first],
        "field['size_bytes'] > 500": [second],
        f"field['size_bytes'] = {first.size_bytes}": [first],
        f"field['created_at'] > '{first.created_at.isoformat()}'": [second],
        # Finer than the column, so no row has this time.
        "field['created_at'] = '2026-01-31T12:00:00.0000005Z'": [],
        "field['created_at'] != '2026-01-31T12:00:00.0000005Z'": [first, second],
        f"field['updated_at'] <= '{first.updated_at.isoformat()}'": [first],
        "field['locked'] = true": [first],
        "field['locked'] = false": [second],
        f"field['serial'] = 8 OR field['id'] = '{first.pk}'": [first, second],
        f"NOT (field['serial'] = 7 AND field['id'] = '{first.pk}')": [second],
    }.items():
        assert listed(reader, text) == ids(*expected), text


def test_a_lineage_is_compared_as_a_whole(reader: ApiClient) -> None:
    answer = reader.get(PATH, {"filter": "field['lineage'] CONTAINS 'x'"})

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FILTER")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"filter": "field['nam'] = 'x'"}, "INVALID_FILTER"),
        ({"page_size": "101"}, "INVALID_FIELDS"),
        ({"page_size": "-1"}, "INVALID_FIELDS"),
        ({"page_token": "x"}, "INVALID_PAGE_TOKEN"),
        ({"filters": "x"}, "INVALID_FIELDS"),
    ],
)
def test_invalid_queries_are_rejected(
    reader: ApiClient, query: dict[str, str], reason: str
) -> None:
    answer = reader.get(PATH, query)

    assert (answer.status_code, error_reason(answer)) == (400, reason)


def test_scopes_are_required(anonymous: Client, client_with: ClientWith) -> None:
    assert error_reason(anonymous.get(PATH)) == "CREDENTIALS_MISSING"
    answer = client_with("cluster:read").get(PATH)
    assert (answer.status_code, error_reason(answer)) == (403, "SCOPE_INSUFFICIENT")
    answer = client_with("state:read").post(PATH)
    assert (answer.status_code, error_reason(answer)) == (405, "METHOD_NOT_ALLOWED")


def test_bound_token_sees_states_inside_its_binding(
    client_with: ClientWith, catalogue: dict[str, list[Any]]
) -> None:
    states = catalogue["states"]
    component, environment = states[2].component_id, states[2].environment_id

    def seen(**binding: Any) -> list[str]:
        return listed(client_with("state:read", **binding))

    of_component = {"bound_component_ids": [str(component)]}
    of_environment = {"bound_environment_ids": [str(environment)]}
    assert seen(**of_component) == ids(*states[2:4])
    assert seen(**of_environment) == ids(*states[::2])
    assert seen(**of_component, **of_environment) == ids(states[2])
    assert seen(bound_cluster_id=uuid.uuid4()) == []


def test_queries_do_not_grow_with_the_rows(
    reader: ApiClient, catalogue: dict[str, list[Any]]
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert reader.get(PATH, {"filter": "field['locked'] = false"}).status_code == 200
        return len(captured)

    reader.get(PATH)  # the token's use is noted once a minute
    # The token, the page, and, because it is not full, whether the list ends there.
    assert queries() == 3
    for environment in [Environment.objects.create() for _ in range(2)]:
        for component in catalogue["components"]:
            State.objects.create(component=component, environment=environment)
    assert queries() == 3


def test_changes_between_pages_cause_no_duplicates_or_gaps(
    reader: ApiClient, catalogue: dict[str, list[Any]]
) -> None:
    """States added or deleted between two pages cause no duplicates and no gaps."""
    states = catalogue["states"]
    first = reader.get(PATH, {"page_size": 4}).json()
    State.objects.filter(pk__in=[states[1].pk, states[5].pk]).update(deleted_at=timezone.now())
    State.objects.filter(pk=states[0].pk).update(updated_at=timezone.now() + dt.timedelta(1))

    rest = reader.get(PATH, {"page_token": first["next_page_token"]}).json()

    assert [s["id"] for s in rest["states"]] == ids(states[4], states[6], states[7])
    assert rest["next_page_token"] == ""
