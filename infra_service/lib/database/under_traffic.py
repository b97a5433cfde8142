"""Migration operations for large tables that do not interrupt the service.

On PostgreSQL, their locks block reads and writes only briefly, if at all. On other databases, they
are equivalent to the ordinary operations. Migrations that use them set ``atomic = False``. They can
be repeated, because each operation first drops the leftovers of an interrupted run.
"""

from __future__ import annotations

from typing import Any

from django.contrib.postgres import operations
from django.db import transaction
from django.db.migrations.operations import (
    AddConstraint,
    AddIndex,
    RemoveConstraint,
    RemoveIndex,
)

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


class RemoveIndexUnderTraffic(operations.RemoveIndexConcurrently):
    """``DROP INDEX CONCURRENTLY`` on PostgreSQL, ``DROP INDEX`` on other databases."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._suited_to(schema_editor).database_forwards(
            self, app_label, schema_editor, from_state, to_state
        )

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._suited_to(schema_editor).database_backwards(
            self, app_label, schema_editor, from_state, to_state
        )

    def _suited_to(self, schema_editor: Any) -> Any:
        return RemoveIndex if _is_elsewhere(schema_editor) else operations.RemoveIndexConcurrently


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


class AddUniqueUnderTraffic(AddConstraint):
    """A unique constraint with a condition: an index built without blocking writes."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Drop the leftovers of an interrupted run, then build the index."""
        if _is_elsewhere(schema_editor):
            name = schema_editor.quote_name(self.constraint.name)
            schema_editor.execute(f"DROP INDEX IF EXISTS {name}")
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        name = schema_editor.quote_name(self.constraint.name)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        text = str(self.constraint.create_sql(model, schema_editor))
        schema_editor.execute(
            text.replace("CREATE UNIQUE INDEX", "CREATE UNIQUE INDEX CONCURRENTLY", 1), None
        )


class RemoveConstraintUnderTraffic(RemoveConstraint):
    """The removal of a CHECK with a short lock. The reverse adds the CHECK under traffic."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        with transaction.atomic(schema_editor.connection.alias):
            if not _is_elsewhere(schema_editor):
                limit_wait(schema_editor)
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        model = to_state.models[app_label, self.model_name_lower]
        added = AddConstraintUnderTraffic(self.model_name, model.get_constraint_by_name(self.name))
        added.database_forwards(app_label, schema_editor, from_state, to_state)
