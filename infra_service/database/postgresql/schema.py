"""Changes of the schema while the service runs."""

from __future__ import annotations

from typing import Any, Final, Self

from django.db.backends.postgresql import schema

#: A change that waits for a table, such as for a backup that reads it, has everybody else wait
#: behind it. Less than DATABASE_LOCK_TIMEOUT, so that nobody is refused.
_WAIT: Final = "5s"


def limit_wait(editor: Any) -> None:
    """Let the transaction give up when a table is not free in time; it can be run again."""
    editor.execute(f"SET LOCAL lock_timeout = '{_WAIT}'")


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    """Django's, with a limit on how long it waits, and others behind it, in a transaction.

    Without one it waits as it is told: what is done concurrently has nobody wait.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        if self.atomic_migration:
            limit_wait(self)
        return self
