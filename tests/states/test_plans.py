"""A page of states takes an index scan in PostgreSQL and reads only the rows that it shows."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from filterlang.versions import sort_key
from infra_service.lib.database.bounded_pages.reading import MOST_ROWS
from states.models import Application, Component, Environment, State, UsedVersion
from tests.conftest import ApiClient, ClientWith
from tests.states.many import STATES, make_many_states
from tests.support.plans import plans_of, rows_of_a_module

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's planner"),
    pytest.mark.usefixtures("states"),
]

PATH = "/api/v1/states"
NEWEST = 2_000
_USE = """
WITH used AS (
  SELECT current_version_id, id, row_number() OVER (ORDER BY id) - 1 AS turn, %s::text[] AS later
  FROM states_state
)
INSERT INTO states_usedversion (version_id, state_id, kind, source, sort_key)
SELECT current_version_id, id, 'provider', 'hashicorp/aws',
  CASE WHEN turn %% 100 = 0 THEN %s ELSE later[1 + turn %% 30] END
FROM used
UNION ALL SELECT current_version_id, id, 'provider', 'hashicorp/random', %s FROM used
"""


@pytest.fixture(scope="module")
def states(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """States for all tests of this module, which each roll back to them."""
    models = (Application, Component, Environment, State, UsedVersion)
    yield from rows_of_a_module(django_db_blocker, make_states, *models)


def make_states() -> None:
    """Make 20,000 states, the last tenth in an environment and application of its own.

    Thousands of empty environments are added: PostgreSQL scans a table of two pages even to look up
    two rows, so name lookups would appear as table scans.
    """
    make_many_states()
    Environment.objects.bulk_create(
        Environment(name=f"empty-{turn}", slug=f"empty-{turn}") for turn in range(5_000)
    )
    environments = [Environment.objects.create(name=f"new-{turn}") for turn in range(4)]
    application = Application.objects.create(name="new")
    newest = sorted(State.objects.order_by("-id").values_list("pk", flat=True)[:NEWEST])
    for turn, environment in enumerate(environments):
        # Each component has four states; the four environments keep them apart.
        last = newest[turn::4]
        State.objects.filter(pk__in=last).update(environment=environment, application=application)
    use_versions()
    State.objects.update(engine="TERRAFORM")
    oldest = State.objects.order_by("id")[:20].values("pk")
    State.objects.filter(pk__in=list(oldest.values_list("pk", flat=True))).update(
        engine="OPENTOFU", is_client_encrypted=True, failing_checks=["check.a"]
    )


def use_versions() -> None:
    """Let 1 % use AWS 4 and the rest 5 or 6; all use another provider too."""
    later = [sort_key(f"{5 + turn % 2}.{turn}.0") for turn in range(30)]
    with connection.cursor() as cursor:
        cursor.execute(_USE, [later, sort_key("4.67.0"), sort_key("3.6.3")])


def test_versions_are_found_by_an_index(reader: ApiClient) -> None:
    aws = "field['provider.hashicorp/aws.version']"
    few = STATES // 100
    environment = Environment.objects.get(name="new-0").pk
    for text, rows, used in [
        # Few match: each state is looked up and checked again.
        (f"{aws} < '5'", few, 2 * few + 1),
        (f"{aws} < '5' AND field['environment_id'] = '{environment}'", few, 2 * few + 1),
        # Many match: states are scanned in order, each with a check.
        (f"{aws} >= '5'", MOST_ROWS, MOST_ROWS),
        ("field['provider.hashicorp/random.version'] EXISTS", MOST_ROWS, MOST_ROWS),
        (f"{aws} != '4.67.0'", MOST_ROWS, MOST_ROWS),
    ]:
        with plans_of("states_state", analyze=True) as plans:
            answer = reader.get(PATH, {"filter": text, "page_size": "100"})
        assert len(answer.json()["states"]) >= min(few, 10), text
        read = sum((p.rows_by_table for p in plans), Counter[str]())
        assert not any(plan.reads_a_table for plan in plans), text
        assert read["states_state"] <= rows, text
        assert read["states_usedversion"] <= used, text


def rows_read(reader: ApiClient, text: str, **query: str) -> int:
    """Return the number of states that the page read; fail if it scanned the table.

    In addition it looks up the component and environment of each state shown, for name and slug,
    and those of the next state.
    """
    with plans_of("states_state", analyze=True) as plans:
        answer = reader.get(PATH, {"filter": text, "page_size": "100", **query})
    assert answer.status_code == 200, answer.content
    for plan in plans:
        assert not plan.reads_a_table, text
    rows = sum((p.rows_by_table for p in plans if "Seq Scan" not in p.types), Counter[str]())
    for names in ("states_component", "states_environment"):
        assert rows[names] <= 2 * (len(answer.json()["states"]) + 1), text
    return rows["states_state"]


def test_each_filter_is_served_by_an_index(reader: ApiClient) -> None:
    first, middle, last = (State.objects.order_by("id")[n] for n in (0, STATES // 2, STATES - 1))
    new = f"field['application_id'] = '{last.application_id}'"
    rare = Environment.objects.get(name="sandbox").pk
    at_once, counted = 101, MOST_ROWS + 1
    # Where it is twice as many, they are counted in the index first.
    for text, rows in {
        "": at_once,
        f"field['component_id'] = '{middle.component_id}'": 2 * 4,
        f"field['component_id'] = '{last.component_id}'": 2 * 4,
        f"field['environment_id'] = '{first.environment_id}'": at_once,
        # The newest of all: walking the primary key would read 18,000 rows before the first.
        f"field['environment_id'] = '{last.environment_id}'": at_once,
        f"field['environment_id'] = '{rare}'": at_once,
        f"field['application_id'] = '{middle.application_id}'": at_once,
        new: at_once,
        f"{new} AND field['environment_id'] = '{last.environment_id}'": NEWEST // 4,
        f"{new} AND field['environment_id'] = '{first.environment_id}'": at_once,
        f"{new} AND field['component_id'] = '{last.component_id}'": 3 * NEWEST,
        f"field['component_id'] = '{middle.component_id}' "
        f"AND field['environment_id'] = '{middle.environment_id}'": 1,
        f"field['id'] = '{middle.pk}'": 1,
        f"field['lineage'] = '{last.lineage}'": 1,
        "field['serial'] = 1": at_once,
        "field['serial'] = 99999": 0,
        "field['serial'] > 99999": 0,
        "field['serial'] BETWEEN 1 AND 2": counted + MOST_ROWS,
        f"field['component_id'] IN ('{middle.component_id}', '{last.component_id}')": 16,
        f"field['id'] IN ('{middle.pk}', '{last.pk}')": 4,
        f"field['size_bytes'] = {first.size_bytes}": at_once,
        "field['size_bytes'] > 999999": 0,
        "field['updated_at'] > '2099-01-01T00:00:00Z'": 0,
        "field['updated_at'] < '2025-01-01T00:10:00Z'": 2 * at_once,
        "field['locked'] = true": at_once,
        "field['failing_checks'] = true": 20,
        "field['failing_checks'] = false": MOST_ROWS,
        "field['client_encrypted'] = true": 20,
        "field['engine'] = 'OPENTOFU'": 20,
        "field['engine'] = 'MIXED'": 0,
        "field['engine'] = 'TERRAFORM'": at_once,
        f"field['engine'] = 'OPENTOFU' AND field['environment_id'] = '{first.environment_id}'": 40,
        "field['lock.acquired_at'] < '2099-01-01T00:00:00Z'": 2 * at_once,
        f"field['component_name'] ~= '{middle.component.name.upper()}'": 2 * 4,
        "field['environment_name'] CONTAINS 'ew-0'": at_once,
        "field['locked'] = false": MOST_ROWS,
        "field['locked'] != true": MOST_ROWS,
        f"{new} AND field['locked'] = true": 2 * NEWEST,
        f"field['environment_id'] = '{rare}' AND field['serial'] = 99999": counted,
        # Nothing in common: walked, a piece at a time.
        f"field['environment_id'] = '{first.environment_id}' AND {new}": NEWEST,
        "field['serial'] >= 0 AND field['size_bytes'] >= 0": 2 * counted + MOST_ROWS,
        f"NOT field['environment_id'] = '{last.environment_id}'": MOST_ROWS,
        f"{new} OR field['serial'] = 99999": 2 * MOST_ROWS,
    }.items():
        assert rows_read(reader, text) <= rows, text


def test_the_newest_and_the_last_pages(reader: ApiClient) -> None:
    # 1. A time bounds the primary key to within a day, in which the demo data has 8,640 states.
    last = State.objects.order_by("id")[STATES - 50]
    text = f"field['created_at'] >= '{last.created_at.isoformat()}'"
    assert rows_read(reader, text) <= 2 * MOST_ROWS + 101
    # 2. A late page costs as much as the first page.
    environment = State.objects.order_by("id")[0].environment_id
    for text in ("", f"field['environment_id'] = '{environment}'"):
        token = ""
        for _ in range(4):
            answer = reader.get(PATH, {"filter": text, "page_size": 100, "page_token": token})
            token = answer.json()["next_page_token"]
        assert rows_read(reader, text, page_token=token) <= 101


def test_other_orders_are_read_in_an_index(reader: ApiClient) -> None:
    first = State.objects.order_by("id")[0]
    here = f"field['environment_id'] = '{first.environment_id}'"
    for order in ("updated_at", "updated_at desc", "id desc"):
        token = ""
        for _ in range(3):  # each page as cheap as the first
            assert rows_read(reader, "", order_by=order, page_token=token) <= 101, order
            query = {"order_by": order, "page_size": 100, "page_token": token}
            token = reader.get(PATH, query).json()["next_page_token"]
        # The environment has more than are looked through, so the index of the order is walked.
        assert rows_read(reader, here, order_by=order) <= 3 * MOST_ROWS, order


def test_locked_states_are_read_in_the_order_of_their_locks(reader: ApiClient) -> None:
    locked = "field['lock.acquired_at'] < '2099-01-01T00:00:00Z'"
    number = State.objects.exclude(lock_id=None).count()
    assert 0 < number < 100
    for order in ("lock.acquired_at", "lock.acquired_at desc"):
        # The locked states, and the first of the unlocked states.
        assert rows_read(reader, "", order_by=order) <= 2 * 101, order
        # No unlocked state can match, so none is read.
        assert rows_read(reader, locked, order_by=order) <= 2 * number, order
        answer = reader.get(PATH, {"filter": locked, "order_by": order, "page_size": "100"}).json()
        assert (len(answer["states"]), answer["next_page_token"]) == (number, "")


@pytest.mark.django_db
def test_a_page_is_planned_for_its_own_values(client_with: ClientWith) -> None:
    """A generic plan would scan the whole table for a rare value."""
    reader = client_with("state:read")
    for _ in range(12):
        reader.get(PATH, {"filter": "field['serial'] > 0"})

    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        prepared = [statement for (statement,) in cursor.fetchall()]
    assert prepared, "the token's look-up is prepared, and stays so"
    assert not [statement for statement in prepared if "CONCAT" in statement]
