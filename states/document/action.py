"""Kinds of changes: added, changed or removed."""

from __future__ import annotations

import enum
from typing import Self


class ChangeAction(enum.StrEnum):
    """The kind of a change between two versions."""

    ADDED = "ADDED"
    CHANGED = "CHANGED"
    REMOVED = "REMOVED"

    @classmethod
    def of(cls, before: object, after: object) -> Self:
        """Return the kind of a change. An absent value is None."""
        if before is None:
            return cls.ADDED
        return cls.REMOVED if after is None else cls.CHANGED
