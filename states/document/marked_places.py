"""The places that a state marks as sensitive, and the reasons to hide values."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from states.document.sensitive_paths import path_text
from states.document.value_names import Name, name_of_member

if TYPE_CHECKING:
    from states.document.format4 import Instance, Resource
    from states.document.sensitive_paths import Step

#: Maximum characters of a name or an address, which each hidden value repeats in a response.
_MOST: Final = 500


class HiddenReason(enum.StrEnum):
    """The reason why a value is hidden.

    ``MARKED_SENSITIVE``: the state marks the output as sensitive. ``CONTAINS_SENSITIVE_VALUE``: the
    item contains a sensitive value. ``TOO_MANY_ESCAPES``: a text has too many nested escapes for a
    search.
    """

    MARKED_SENSITIVE = "MARKED_SENSITIVE"
    CONTAINS_SENSITIVE_VALUE = "CONTAINS_SENSITIVE_VALUE"
    TOO_MANY_ESCAPES = "TOO_MANY_ESCAPES"


class HiddenValue(Struct):
    """The reason why a value is hidden, and the sensitive value that it contains.

    ``output`` or ``attribute`` locates the sensitive value if the reason is
    ``CONTAINS_SENSITIVE_VALUE``. Both are null for other reasons, and for a copy within the
    resource that marks the value.
    """

    reason: Annotated[HiddenReason, Meta(description="The reason why a value is hidden.")]
    output: Annotated[
        str | None, Meta(description=f"The output with the value, cut after {_MOST} characters.")
    ]
    attribute: Annotated[
        str | None,
        Meta(
            description="The address of the attribute with the value, such as "
            f"`random_password.db.result`, cut after {_MOST} characters."
        ),
    ]


@dataclass(frozen=True, slots=True)
class MarkedPlace:
    """A sensitive output, or a path that a resource instance marks as sensitive."""

    output: str = ""
    instance: tuple[Resource, Instance] | None = None
    path: tuple[Step, ...] = ()

    @property
    def name(self) -> Name:
        """Return the classification of the names on the path to the value."""
        return name_of((self.output, *self.path))

    @property
    def attribute(self) -> str:
        """Return the address of the attribute, or an empty string for an output."""
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
    """The reason why a value is hidden, and the marked place of the value that it contains."""

    reason: HiddenReason
    place: MarkedPlace | None = None

    def describe(self) -> HiddenValue:
        """Return the cause in API form."""
        place = self.place or MarkedPlace()
        return HiddenValue(
            reason=self.reason,
            output=place.output[:_MOST] or None,
            attribute=place.attribute[:_MOST] or None,
        )


MARKED: Final = Cause(HiddenReason.MARKED_SENSITIVE)
ESCAPED: Final = Cause(HiddenReason.TOO_MANY_ESCAPES)
