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
    """Django's editor; in a transaction it waits for a lock only so long, as others wait behind it.

    Outside of a transaction there is no limit: CONCURRENTLY makes nobody wait.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        if self.atomic_migration:
            limit_wait(self)
        return self
