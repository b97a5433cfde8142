"""The limit of waits for a table's lock during changes of the schema."""

from __future__ import annotations

from typing import Any, Final

#: A change that waits for a table, for example during a backup, blocks all later statements. Less
#: than DATABASE_LOCK_TIMEOUT, so that those do not time out.
_WAIT: Final = "5s"


def limit_wait(editor: Any) -> None:
    """Limit the wait for a table's lock in the transaction, which can be repeated."""
    editor.execute(f"SET LOCAL lock_timeout = '{_WAIT}'")
