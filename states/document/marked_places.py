"""The places that a state marks, and the reason why a value is not shown."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from states.document.sensitive_paths import path_text
from states.document.value_names import Name, name_of_member

if TYPE_CHECKING:
    from states.document.format4 import Instance, Resource
    from states.document.sensitive_paths import Step

#: Characters of a name or an address in an answer: each hidden value repeats them.
_MOST: Final = 500


class Reason(enum.StrEnum):
    """Why a value is not shown."""

    MARKED_SENSITIVE = "MARKED_SENSITIVE"
    CONTAINS_SENSITIVE_VALUE = "CONTAINS_SENSITIVE_VALUE"
    TOO_MANY_ESCAPES = "TOO_MANY_ESCAPES"


@dataclass(frozen=True, slots=True)
class MarkedPlace:
    """A sensitive output, or a path that a resource instance marks."""

    output: str = ""
    instance: tuple[Resource, Instance] | None = None
    path: tuple[Step, ...] = ()

    @property
    def name(self) -> Name:
        """The classification of the names on the path to the value."""
        return name_of((self.output, *self.path))

    @property
    def attribute(self) -> str:
        """The address of the attribute; empty for an output."""
        if self.instance is None:
            return ""
        resource, instance = self.instance
        return f"{resource.address(instance)}.{path_text(self.path)}"


def name_of(path: tuple[Step, ...]) -> Name:
    """Return the classification of the names on the path to a value."""
    name = Name.NEUTRAL
    for step in path:
        if isinstance(step, str):
            name = name_of_member(step, name)
    return name


class Cause(NamedTuple):
    """The reason why a value is hidden, and the marked place whose value it contains."""

    reason: Reason
    place: MarkedPlace | None = None

    def describe(self) -> dict[str, str | None]:
        """Return the cause as an answer has it."""
        place = self.place or MarkedPlace()
        return {
            "reason": self.reason.value,
            "output": place.output[:_MOST] or None,
            "attribute": place.attribute[:_MOST] or None,
        }


MARKED: Final = Cause(Reason.MARKED_SENSITIVE)
ESCAPED: Final = Cause(Reason.TOO_MANY_ESCAPES)
