"""Schema changes while the service runs."""

from __future__ import annotations

from typing import Self

from django.db.backends.postgresql import schema

from infra_service.lib.database.postgresql.lock_waits import limit_wait


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    """Django's schema editor with a lock timeout in transactions, because others queue behind it.

    Outside of a transaction there is no limit: CONCURRENTLY blocks no statements.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        if self.atomic_migration:
            limit_wait(self)
        return self
