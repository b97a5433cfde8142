"""The database enforces that the audit log is append-only."""

import pytest
from django.db import DatabaseError, connection, transaction

from apikeys import audit
from apikeys.actors import Actor
from apikeys.models import AuditEvent

TABLE = AuditEvent._meta.db_table


@pytest.fixture
def event(db: None) -> AuditEvent:
    audit.authorize_and_record(Actor(name="ada"), "state.push", "s1", version=1)
    return AuditEvent.objects.get()


@pytest.mark.both
@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE {TABLE} SET actor_name = 'bob'",
        f"DELETE FROM {TABLE}",
        pytest.param(f"TRUNCATE {TABLE}", id="truncate"),
    ],
)
def test_raw_sql_cannot_change_it(event: AuditEvent, statement: str) -> None:
    if statement.startswith("TRUNCATE") and connection.vendor == "sqlite":
        pytest.skip("SQLite has no TRUNCATE")

    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)

    assert AuditEvent.objects.get().actor_name == "ada"


def test_neither_can_the_orm(event: AuditEvent) -> None:
    event.actor_name = "bob"
    for change in (
        event.save,
        event.delete,
        AuditEvent.objects.all().delete,
        lambda: AuditEvent.objects.update(actor_name="bob"),
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()

    assert AuditEvent.objects.get().actor_name == "ada"


def test_event_is_shown_by_action_and_resource(event: AuditEvent) -> None:
    assert str(event) == "state.push s1"
