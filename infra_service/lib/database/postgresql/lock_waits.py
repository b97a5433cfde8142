"""Limit the wait for the lock on a table during schema changes."""

from __future__ import annotations

from typing import Any, Final

#: A schema change that waits for a table, for example during a backup, blocks all later statements.
#: The limit is less than DATABASE_LOCK_TIMEOUT, so that these statements do not time out.
_WAIT: Final = "5s"


def limit_wait(editor: Any) -> None:
    """Limit lock waits in the transaction. The transaction can be repeated after a timeout."""
    editor.execute(f"SET LOCAL lock_timeout = '{_WAIT}'")
