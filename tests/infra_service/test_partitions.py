"""Monthly partitions on PostgreSQL: created ahead, and never the reason for a refused insert."""

from __future__ import annotations

import datetime as dt
import os
import uuid

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.utils import timezone

from apikeys.models import AuditEvent
from infra_service.lib.api.identifiers import uuid7_of
from infra_service.lib.database.months import first_id, moment_of, month_of
from infra_service.lib.database.postgresql import partitions
from infra_service.lib.database.postgresql.partitioning import convert
from infra_service.lib.database.postgresql.partitions import (
    AHEAD,
    create_ahead,
    months_ready,
    names_of_partitions,
    partitions_of,
)
from tests.support.partitions import TABLE

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about partitions"),
    pytest.mark.django_db,
]


def run(statement: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture(autouse=True)
def in_the_month_of_the_migration(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database was migrated at the start of the run, and the month may have ended since."""
    ((migrated_at,),) = run("SELECT max(applied) FROM django_migrations WHERE app = 'apikeys'")
    monkeypatch.setattr(timezone, "now", lambda: migrated_at)


def remove_months() -> None:
    """Remove the partitions of all months, as if the owner's job had never run."""
    for partition in partitions_of(TABLE):
        if partition.is_month:
            run(f"DROP TABLE {partition.name}")


def event(moment: dt.datetime) -> AuditEvent:
    return AuditEvent.objects.create(
        id=uuid7_of(moment), occurred_at=moment, action="state.push", resource_id="s"
    )


def place(found: AuditEvent) -> object:
    ((name,),) = run(f"SELECT tableoid::regclass::text FROM {TABLE} WHERE id = '{found.pk}'")
    return name


def test_new_database_has_the_present_and_the_next_months() -> None:
    now = timezone.now()

    assert months_ready(TABLE) == AHEAD
    ends = [partition.upper for partition in partitions_of(TABLE)]
    assert ends == [first_id(month_of(now, later=months)) for months in range(AHEAD + 2)]
    assert create_ahead(TABLE) == 0


def test_event_without_a_partition_is_stored_and_its_partition_created_around_it() -> None:
    remove_months()
    assert months_ready(TABLE) == 0
    made = event(timezone.now())
    assert place(made) == f"{TABLE}_default"

    assert create_ahead(TABLE) == AHEAD  # the first has two months

    assert place(made) == f"{TABLE}_{timezone.now():%Y_%m}"
    assert months_ready(TABLE) == AHEAD
    assert run(f"SELECT count(*) FROM {TABLE}_default") == [(0,)]
    later = event(timezone.now())
    assert place(later) == place(made)
    assert create_ahead(TABLE) == 0


def test_months_without_partitions_become_one_partition() -> None:
    """The owner's job did not run for two months."""
    remove_months()
    first = partitions_of(TABLE)[0]
    with transaction.atomic():
        run(f"ALTER TABLE {TABLE} DETACH PARTITION {first.name}")
        upper = first_id(month_of(timezone.now(), later=-1))
        run(
            f"ALTER TABLE {TABLE} ATTACH PARTITION {first.name} "
            f"FOR VALUES FROM (MINVALUE) TO ('{upper}')"
        )
    previous = event(month_of(timezone.now(), later=-1))
    present = event(timezone.now())

    create_ahead(TABLE)

    assert place(previous) == place(present) == f"{TABLE}_{moment_of(upper):%Y_%m}"
    assert months_ready(TABLE) == AHEAD


def test_event_of_a_clock_in_the_far_future_does_not_extend_a_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock was ten years ahead for a moment."""
    made = event(month_of(timezone.now(), later=120))
    next_month = month_of(timezone.now(), later=1)
    monkeypatch.setattr(timezone, "now", lambda: next_month)

    assert create_ahead(TABLE) == 1

    assert months_ready(TABLE) == AHEAD
    assert partitions_of(TABLE)[-1].upper == first_id(month_of(next_month, later=AHEAD + 1))
    assert place(made) == f"{TABLE}_default"


@pytest.mark.parametrize("failure", [OperationalError, KeyboardInterrupt])
def test_failed_adoption_leaves_no_limit(
    monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    remove_months()
    event(timezone.now())

    def run_until_validation(cursor: object, statement: str, *names: str) -> None:
        if "VALIDATE CONSTRAINT" in statement:
            event(month_of(timezone.now(), later=1))  # the month ends during the adoption
            raise failure
        partitions_run(cursor, statement, *names)

    partitions_run = partitions.run
    monkeypatch.setattr(partitions, "run", run_until_validation)
    with pytest.raises(failure):
        create_ahead(TABLE)
    monkeypatch.undo()

    event(month_of(timezone.now(), later=6))
    create_ahead(TABLE)
    assert run(f"SELECT count(*) FROM {TABLE}_default") == [(0,)]


@pytest.mark.parametrize("role", ["origin", "replica"])
def test_triggers_protect_each_partition_directly(role: str) -> None:
    long_ago = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    of_rows = [place(event(moment)) for moment in (long_ago, timezone.now())]
    run(f"SET LOCAL session_replication_role = {role}")
    statements = [f"TRUNCATE {name}" for name in names_of_partitions(TABLE)]
    statements += [f"UPDATE {name} SET action = 'x'" for name in of_rows]
    statements += [f"DELETE FROM {name}" for name in of_rows]
    assert len(statements) == AHEAD + 3 + 4

    for statement in statements:
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            run(statement)


OLD = "old_events"
#: All databases of a server share its roles.
READER = f"old_reader_{os.getpid()}"


@pytest.fixture
def old_table() -> str:
    """A table as the release before has it, with two events."""
    run(f"CREATE TABLE {OLD} (id uuid CONSTRAINT old_key PRIMARY KEY, name text DEFAULT 'ada')")
    run(f"CREATE INDEX old_by_name ON {OLD} (name, id) WHERE name IS NOT NULL")
    for level, verbs in (("ROW", "UPDATE OR DELETE"), ("STATEMENT", "TRUNCATE")):
        run(
            f"CREATE TRIGGER old_{level} BEFORE {verbs} ON {OLD} FOR EACH {level} "
            "EXECUTE FUNCTION apikeys_auditevent_refuse()"
        )
    run(f"CREATE ROLE {READER}")
    run(f"GRANT SELECT, INSERT ON {OLD} TO {READER}")
    for moment in (timezone.now(), timezone.now() - dt.timedelta(days=300)):
        run(f"INSERT INTO {OLD} (id) VALUES ('{uuid7_of(moment)}')")
    return OLD


def privileges(table: str) -> set[object]:
    found = run(
        f"SELECT verb FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS verb "
        f"WHERE has_table_privilege('{READER}', '{table}', verb)"
    )
    return {verb for (verb,) in found}


def test_table_is_converted_with_all_that_belongs_to_it(old_table: str) -> None:
    convert(old_table)
    convert(old_table)  # does nothing

    first, *months = partitions_of(old_table)
    assert first.upper >= first_id(timezone.now() + dt.timedelta(days=28))
    assert run(f"SELECT count(*) FROM {first.name}") == [(2,)]
    assert months_ready(old_table) == AHEAD
    assert privileges(old_table) == {"SELECT", "INSERT"}
    assert [privileges(name) for name in names_of_partitions(old_table)] == [set()] * (
        len(months) + 2
    )
    run(f"INSERT INTO {old_table} (id) VALUES ('{uuid7_of(timezone.now())}')")
    assert run(f"SELECT DISTINCT name FROM {old_table}") == [("ada",)]
    names = run("SELECT relname FROM pg_class WHERE relname IN ('old_key', 'old_by_name')")
    assert len(names) == 2
    for statement in (f"TRUNCATE {old_table}", f"DELETE FROM {old_table}"):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            run(statement)
    # The limit that proved the ids is gone: it would refuse rows of later months.
    assert run("SELECT conname FROM pg_constraint WHERE conname = 'limit_of_partition'") == []


def test_conversion_continues_after_an_interruption(old_table: str) -> None:
    """A killed process leaves a limit."""
    limit = f"CHECK (id < '{uuid.UUID(int=2**127)}')"
    run(f"ALTER TABLE {old_table} ADD CONSTRAINT limit_of_partition {limit}")

    convert(old_table)

    assert months_ready(old_table) == AHEAD


def test_conversion_without_success_leaves_the_table_as_it_was(old_table: str) -> None:
    future = timezone.now() + dt.timedelta(days=900)
    run(f"INSERT INTO {old_table} (id) VALUES ('{uuid7_of(future)}')")

    with pytest.raises(IntegrityError):
        convert(old_table)

    assert partitions_of(old_table) == []
    assert run("SELECT conname FROM pg_constraint WHERE conname = 'limit_of_partition'") == []
