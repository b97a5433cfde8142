"""Changes of the schema while the service runs."""

from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models
from django.db.migrations.state import ProjectState

from infra_service.lib.database.under_traffic import AddConstraintUnderTraffic

pytestmark = pytest.mark.django_db
on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="with SQLite the service stands while it is migrated"
)


def statements(operation: Any) -> list[str]:
    """Return what an operation would do to the database."""
    before = ProjectState.from_apps(apps)
    after = before.clone()
    operation.state_forwards("states", after)
    with connection.schema_editor(collect_sql=True, atomic=False) as editor:
        operation.database_forwards("states", editor, before, after)
    return [line for line in editor.collected_sql if not line.startswith("--")]


@on_postgresql
def test_a_migration_gives_up_when_a_table_is_not_free() -> None:
    with connection.schema_editor(), connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("5s",)


@on_postgresql
def test_constraint_is_validated_without_blocking_writes_and_can_be_added_again() -> None:
    condition = models.CheckConstraint(condition=models.Q(serial__gte=-1), name="state_new")

    assert statements(AddConstraintUnderTraffic("state", condition)) == [
        "SET LOCAL lock_timeout = '5s';",
        'ALTER TABLE "states_state" DROP CONSTRAINT IF EXISTS "state_new";',
        'ALTER TABLE "states_state" ADD CONSTRAINT "state_new" CHECK ("serial" >=  -1) NOT VALID;',
        'ALTER TABLE "states_state" VALIDATE CONSTRAINT "state_new";',
    ]
