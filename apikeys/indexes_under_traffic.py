"""Migrations of indexes on large tables while the service runs."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres import operations
from django.db.migrations.operations import AddIndex, RemoveIndex


class AddIndexUnderTraffic(operations.AddIndexConcurrently):
    """``CREATE INDEX CONCURRENTLY`` on PostgreSQL, an ordinary index elsewhere.

    Reads and writes go on meanwhile. What a run that was stopped has left of the index is dropped
    first, so that the migration can be run again. Its migration is ``atomic = False``.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Build the index."""
        if schema_editor.connection.vendor != "postgresql":
            AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
            return
        name = schema_editor.quote_name(self.index.name)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Drop the index."""
        here = schema_editor.connection.vendor == "postgresql"
        operation = operations.AddIndexConcurrently if here else AddIndex
        operation.database_backwards(self, app_label, schema_editor, from_state, to_state)


class RemoveIndexUnderTraffic(operations.RemoveIndexConcurrently):
    """``DROP INDEX CONCURRENTLY`` on PostgreSQL, an ordinary one elsewhere."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Drop the index."""
        here = schema_editor.connection.vendor == "postgresql"
        operation = operations.RemoveIndexConcurrently if here else RemoveIndex
        operation.database_forwards(self, app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Build the index again."""
        here = schema_editor.connection.vendor == "postgresql"
        operation = operations.RemoveIndexConcurrently if here else RemoveIndex
        operation.database_backwards(self, app_label, schema_editor, from_state, to_state)
