"""The plan of an import and its results: one row per state.

The rows are in a temporary file, because there may be too many for memory.
"""

from __future__ import annotations

import sqlite3
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The planned or completed action for a state.
IMPORT: Final = "import"
IMPORTED: Final = "imported"
UNCHANGED: Final = "unchanged"
#: The source has no document for the state, for example after Terraform migrated the state.
EMPTY: Final = "empty"
FAILED: Final = "failed"
#: The state has no unique address in this service; a map can assign one.
REFUSED: Final = "refused"


@dataclass(frozen=True, slots=True)
class Row:
    """A state: its key in the source, its address here, and the planned or completed action.

    ``address`` is human-readable, and ``path`` is the path of the backend. ``versions`` counts the
    versions in the source, up to the requested number. ``size_bytes`` is their total size if the
    source reports it. ``outstanding`` counts the versions still to be imported, and ``imported``
    the versions that this run imported.
    """

    key: str
    address: str = ""
    path: str = ""
    versions: int = 0
    outstanding: int = 0
    size_bytes: int | None = None
    result: str = IMPORT
    reason: str = ""
    imported: int = 0
    state_id: str = ""


_NAMES: Final = [field.name for field in fields(Row)]
_COLUMNS: Final = ", ".join(_NAMES)
_SET: Final = ", ".join(f"{name} = ?" for name in _NAMES)


class Plan:
    """The rows of all states, in the order of the source."""

    def __init__(self) -> None:
        # An empty name creates an unnamed file in the directory for temporary files.
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.execute(
            f"CREATE TABLE plan (position INTEGER PRIMARY KEY, {_COLUMNS}, UNIQUE (key))"
        )
        self._file.execute("CREATE INDEX by_address ON plan (address)")

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, row: Row) -> None:
        self._file.execute(
            f"INSERT INTO plan ({_COLUMNS}) VALUES ({', '.join('?' * len(_NAMES))})",  # noqa: S608 - our own names
            astuple(row),
        )

    def change(self, row: Row) -> None:
        """Replace the row with the same key."""
        self._file.execute(f"UPDATE plan SET {_SET} WHERE key = ?", (*astuple(row), row.key))  # noqa: S608 - our own names

    def find(self, key: str) -> Row | None:
        return next(self._rows("WHERE key = ?", key), None)

    def at(self, address: str) -> Row | None:
        """Return the first row with this address."""
        return next(self._rows("WHERE address = ? ORDER BY position LIMIT 1", address), None)

    def rows(self, *results: str) -> Iterator[Row]:
        """Yield the rows with any of these results, or all rows if no result is given."""
        if not results:
            return self._rows("ORDER BY position")
        wanted = ", ".join("?" * len(results))
        return self._rows(f"WHERE result IN ({wanted}) ORDER BY position", *results)

    def count(self, *results: str) -> int:
        wanted = ", ".join("?" * len(results))
        return int(self._one(f"SELECT COUNT(*) FROM plan WHERE result IN ({wanted})", results))  # noqa: S608 - our own names

    def width(self, name: str) -> int:
        """Return the width of a printed column."""
        return int(self._one(f"SELECT COALESCE(MAX(LENGTH({name})), 0) FROM plan", ()))  # noqa: S608 - our own names

    def _rows(self, condition: str, *values: Any) -> Iterator[Row]:
        sql = f"SELECT {_COLUMNS} FROM plan {condition}"  # noqa: S608 - our own names
        for row in self._file.execute(sql, values):
            yield Row(*row)

    def _one(self, sql: str, values: tuple[Any, ...]) -> Any:
        return self._file.execute(sql, values).fetchone()[0]
