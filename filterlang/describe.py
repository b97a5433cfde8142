"""A description of a field set in Markdown, for the OpenAPI description of ``filter``."""

import functools
from typing import Any

from django_filters import FilterSet

from filterlang.fields import field_set
from filterlang.fieldtypes import EnumType

_INTRODUCTION = """\
A filter of the listed items: terms such as `field['name'] = 'value'`, combined with `AND`, `OR`, \
`NOT` and parentheses. Values are quoted text, integers, `true` or `false`. `BETWEEN a AND b` \
takes two values, `IN (a, b)` a list, and `EXISTS`, `IS NULL` and `IS NOT NULL` no value.

| field | type | operators |
|---|---|---|
"""


# Cached, because each list request reads the names of its parameters.
@functools.cache
def described_fields(filterset: type[FilterSet]) -> dict[str, dict[str, Any]]:
    """Return the type, operators, enum values and description of each field as data."""
    described = {}
    for field in field_set(filterset).values():  # type: ignore[arg-type]  # type[Any] is hashable
        about: dict[str, Any] = {"type": field.type.name, "operators": list(field.operators)}
        if isinstance(field.type, EnumType):
            about["values"] = list(field.type.choices)
        if field.description:
            about["description"] = field.description
        described[field.written] = about
    return described


@functools.cache
def describe(filterset: type[FilterSet]) -> str:
    """Return a short description of the language, with a table of the fields."""
    rows = []
    for field in field_set(filterset).values():  # type: ignore[arg-type]  # type[Any] is hashable
        kind = field.type.name
        if isinstance(field.type, EnumType):
            kind += f": {', '.join(f'`{choice}`' for choice in field.type.choices)}"
        if field.description:
            kind += f"; {field.description}"
        operators = " ".join(f"`{operator}`" for operator in field.operators)
        rows.append(f"| `{field.written}` | {kind} | {operators} |")
    return _INTRODUCTION + "\n".join(rows)
