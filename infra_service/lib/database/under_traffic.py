"""Migration operations for large tables that do not interrupt the service.

On PostgreSQL, their locks block reads and writes only briefly, if at all. On other databases, they
are equivalent to the ordinary operations. Migrations that use them set ``atomic = False``. They can
be repeated, because each operation first drops the leftovers of an interrupted run.
"""

from __future__ import annotations

from typing import Any

from django.contrib.postgres import operations
from django.db import transaction
from django.db.migrations.operations import AddConstraint, AddIndex

from infra_service.lib.database.postgresql.lock_waits import limit_wait


def _is_elsewhere(schema_editor: Any) -> bool:
    """Return whether the database is not PostgreSQL."""
    return bool(schema_editor.connection.vendor != "postgresql")


class AddIndexUnderTraffic(operations.AddIndexConcurrently):
    """``CREATE INDEX CONCURRENTLY`` on PostgreSQL, an ordinary index on other databases."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        name = schema_editor.quote_name(self.index.name)
        if _is_elsewhere(schema_editor):
            schema_editor.execute(f"DROP INDEX IF EXISTS {name}")
            AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
            return
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        operation = AddIndex if _is_elsewhere(schema_editor) else operations.AddIndexConcurrently
        operation.database_backwards(self, app_label, schema_editor, from_state, to_state)


class AddConstraintUnderTraffic(AddConstraint):
    """A CHECK that applies to new rows immediately, and is then validated for existing rows."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Add the constraint, then validate it. On PostgreSQL, this does not block writes."""
        where = (app_label, schema_editor, from_state, to_state)
        if _is_elsewhere(schema_editor):
            # SQLite copies the table atomically.
            with transaction.atomic(schema_editor.connection.alias):
                super().database_forwards(*where)
            return
        table, name = (
            schema_editor.quote_name(text)
            for text in (
                from_state.apps.get_model(app_label, self.model_name)._meta.db_table,
                self.constraint.name,
            )
        )
        with transaction.atomic(schema_editor.connection.alias):
            limit_wait(schema_editor)
            schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
            add = operations.AddConstraintNotValid(self.model_name, self.constraint)
            add.database_forwards(*where)
        operations.ValidateConstraint(self.model_name, self.constraint.name).database_forwards(
            *where
        )
