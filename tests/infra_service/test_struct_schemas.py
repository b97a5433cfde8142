"""Schemas of responses, derived from structs."""

from __future__ import annotations

import enum
from typing import Annotated

import msgspec
from msgspec import Meta

from infra_service.lib.api.openapi_words import Named
from infra_service.lib.api.struct_schemas import page_of, schema_of


class Colour(enum.StrEnum):
    """A colour of ``Part``."""

    RED = "RED"


class Part(msgspec.Struct):
    """A part.

    Of a whole,
    in lines.
    """

    colour: Annotated[Colour, Meta(description="Red.")]


class Whole(msgspec.Struct):
    """A whole."""

    size: Annotated[int, Meta(ge=0, description="In bytes.")]
    key: Annotated[int | str | None, Meta(description="Null without a key.")]
    first: Part
    last: Annotated[Part | None, Meta(description="Null without a part.")]


COLOUR = {"type": "string", "description": "A colour of `Part`.", "enum": ["RED"]}
PART = {
    "type": "object",
    "description": "A part.\n\nOf a whole, in lines.",
    "properties": {"colour": {"allOf": [COLOUR], "description": "Red."}},
    "required": ["colour"],
}
WHOLE = {
    "type": "object",
    "description": "A whole.",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "description": "In bytes."},
        "key": {"type": ["integer", "string", "null"], "description": "Null without a key."},
        "first": PART,
        "last": {"anyOf": [PART, {"type": "null"}], "description": "Null without a part."},
    },
    "required": ["size", "key", "first", "last"],
}


def test_schema_describes_a_struct() -> None:
    schema = schema_of(Whole)

    assert schema == WHOLE
    first = schema["properties"]["first"]
    assert [each.name for each in (schema, first)] == ["Whole", "Part"]
    (colour,) = first["properties"]["colour"]["allOf"]
    assert isinstance(colour, Named)
    assert colour.name == "Colour"


def test_page_schema_describes_a_struct() -> None:
    page = page_of(Whole, "red_wholes", count={"type": "integer"})

    assert page.name == "WholePage"
    assert page["description"] == "A page of red wholes."
    assert page["required"] == [*page["properties"]] == ["red_wholes", "count", "next_page_token"]
    assert page["properties"]["red_wholes"]["items"] == WHOLE
