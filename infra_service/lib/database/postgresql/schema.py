"""The schema editor for migrations while the service runs."""

from __future__ import annotations

from typing import Self

from django.db.backends.postgresql import schema

from infra_service.lib.database.postgresql.lock_waits import limit_wait


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    """Django's schema editor with a lock timeout, because its waits block other statements.

    Outside a transaction, there is no timeout, because CONCURRENTLY does not block statements.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        if self.atomic_migration:
            limit_wait(self)
        return self
