"""The plan of an import and its results: one row per state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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


class Plan:
    """The rows of all states, in the order of the source."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._first_at: dict[str, str] = {}

    def add(self, row: Row) -> None:
        self._rows[row.key] = row
        self._first_at.setdefault(row.address, row.key)

    def change(self, row: Row) -> None:
        """Replace the row with the same key."""
        self._rows[row.key] = row

    def find(self, key: str) -> Row | None:
        return self._rows.get(key)

    def at(self, address: str) -> Row | None:
        """Return the first row with this address."""
        key = self._first_at.get(address)
        return None if key is None else self._rows[key]

    def rows(self, *results: str) -> Iterator[Row]:
        """Yield the rows with any of these results, or all rows if no result is given."""
        for row in self._rows.values():
            if not results or row.result in results:
                yield row

    def count(self, *results: str) -> int:
        return sum(1 for _row in self.rows(*results))

    def width(self, name: str) -> int:
        """Return the width of a printed column."""
        return max((len(getattr(row, name)) for row in self.rows()), default=0)
