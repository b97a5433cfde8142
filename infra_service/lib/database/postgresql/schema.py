"""Schema changes while the service runs."""

from __future__ import annotations

from typing import Any, Final, Self

from django.db.backends.postgresql import schema

#: A change that waits for a table, for example during a backup, blocks all later statements. Less
#: than DATABASE_LOCK_TIMEOUT, so that those do not time out.
_WAIT: Final = "5s"


def limit_wait(editor: Any) -> None:
    """Limit the wait for a table's lock in the transaction, which can be repeated."""
    editor.execute(f"SET LOCAL lock_timeout = '{_WAIT}'")


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    """Django's schema editor with a lock timeout in transactions, because others queue behind it.

    Outside of a transaction there is no limit: CONCURRENTLY blocks no statements.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        if self.atomic_migration:
            limit_wait(self)
        return self
